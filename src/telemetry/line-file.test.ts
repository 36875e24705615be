/** Files of lines: what is no file does not hold the threads that write the others. */
import { execFileSync } from 'node:child_process'
import { closeSync, constants, openSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { temporaryDirectory } from '../../test/api/running-node.ts'
import { LineFile } from './line-file.ts'

const directory = temporaryDirectory()

function lineFile(name: string, more: { truncate?: boolean } = {}) {
  const told: string[] = []
  const path = join(directory, name)
  const file = new LineFile({ path, ...more, onLost: (count, { message }) => told.push(`${count}: ${message}`) })
  return { file, path, told }
}

test('lines for named pipes are lost with the cause, whether somebody reads or not, and other files are written', async () => {
  const pipes = Array.from({ length: 12 }, (_, i) => lineFile(`pipe-${i}`, { truncate: i % 2 === 0 }))
  for (const { path } of pipes) execFileSync('mkfifo', [path])
  const readers = pipes.slice(6).map(({ path }) => openSync(path, constants.O_RDONLY | constants.O_NONBLOCK))
  for (const { file } of pipes) file.append('one')
  const usual = lineFile('usual')
  usual.file.append('one')
  await usual.file.written()
  expect(readFileSync(usual.path, 'utf8')).toBe('one\n')
  for (const { file, path, told } of pipes) {
    await file.written()
    expect(told).toEqual([
      `1: ${path} is a named pipe, a socket or a device that is not there: lines are written to files`,
    ])
  }
  readers.forEach(closeSync)
})

test('a file is made for nobody else to read, and goes on where it ended', async () => {
  const first = lineFile('own')
  first.file.append('one')
  await first.file.written()
  expect(statSync(first.path).mode & 0o777).toBe(0o600)
  const next = lineFile('own')
  next.file.append('two')
  await next.file.written()
  expect(readFileSync(next.path, 'utf8')).toBe('one\ntwo\n')
  const anew = lineFile('own', { truncate: true })
  anew.file.append('three')
  await anew.file.written()
  expect(readFileSync(anew.path, 'utf8')).toBe('three\n')
})
