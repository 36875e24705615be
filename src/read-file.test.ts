/** Regular files of a bounded length, and what is none. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readRegularFile } from './read-file.ts'

let root: string
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'penstock-files-'))
})
afterAll(() => rmSync(root, { recursive: true }))

test('a file is read whole up to its limit, through links too', () => {
  const path = join(root, 'five')
  writeFileSync(path, 'abcde')
  symlinkSync(path, join(root, 'link'))
  expect(`${readRegularFile(path, 5)}`).toBe('abcde')
  expect(`${readRegularFile(join(root, 'link'), 5)}`).toBe('abcde')
  expect(() => readRegularFile(path, 4)).toThrow(expect.objectContaining({ code: 'TOO_LONG', bytes: 5 }))
})

test('a file that the system makes up is read to its end', () => {
  expect(readRegularFile('/proc/self/status', 100_000).toString()).toMatch(
    /^Name:[\s\S]*nonvoluntary_ctxt_switches:\t\d+\n$/,
  )
  expect(() => readRegularFile('/proc/self/status', 100)).toThrow(expect.objectContaining({ code: 'TOO_LONG' }))
})

test('a directory, a device and a pipe without a writer are refused at once', () => {
  const pipe = join(root, 'pipe')
  execFileSync('mkfifo', [pipe])
  for (const path of [root, '/dev/zero', pipe]) {
    expect(() => readRegularFile(path, 5)).toThrow(expect.objectContaining({ code: 'NOT_REGULAR' }))
  }
})

test('who reads may look at a file first', () => {
  const path = join(root, 'looked')
  writeFileSync(path, '')
  const inspect = ({ mode }: { mode: number }) => {
    throw new Error(`mode ${(mode & 0o700).toString(8)}`)
  }
  expect(() => readRegularFile(path, 5, { inspect })).toThrow('mode 600')
})
