/** Hearing that the reader of a pipe or socket has gone, without writing into it. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { afterAll, expect, test } from 'vitest'
import { settle } from '../../../test/harness/waiting.ts'
import { packageRoot } from '../../package-root.ts'
import { native } from './native.ts'

const directory = mkdtempSync(join(tmpdir(), 'penstock-hangup-'))
/** Held: a file that nobody refers to is closed. */
const files: FileHandle[] = []
afterAll(async () => {
  for (const file of files) await file.close()
  rmSync(directory, { recursive: true })
})

/** A reader of a pipe and the descriptor that writes to it. */
async function reader(name: string): Promise<{ child: ChildProcess; fd: number }> {
  const pipe = join(directory, name)
  execFileSync('mkfifo', [pipe])
  const child = spawn('cat', [pipe], { stdio: 'ignore' })
  const file = await open(pipe, 'w')
  files.push(file)
  return { child, fd: file.fd }
}

test('tells once the reader has gone, also when it went before; not while it is there', async () => {
  const { child, fd } = await reader('a')
  let told = 0
  const heard = new Promise<void>((resolve) => {
    const is = native.watchHangup(fd, () => {
      told++
      resolve()
    })
    expect(is).toBe(true)
  })
  writeSync(fd, 'still there')
  await settle(1)
  expect(told).toBe(0)
  child.kill('SIGKILL')
  await heard
  await new Promise<void>((resolve) => native.watchHangup(fd, resolve))
  expect(told).toBe(1)
})

test('says what has no reader, and refuses what is no descriptor or no function', () => {
  const file = openSync('/dev/null', 'w')
  expect(native.watchHangup(file, () => {})).toBe(false)
  closeSync(file)
  expect(() => native.watchHangup(1_000_000, () => {})).toThrow(/EBADF/)
  expect(() => native.watchHangup(-1, () => {})).toThrow(/watchHangup.*fd/)
  expect(() => native.watchHangup(1, null as never)).toThrow(/watchHangup.*callback/)
})

test('a thread that watches can end', async () => {
  const { child, fd } = await reader('b')
  const code = `
    const native = require('node-gyp-build')(${JSON.stringify(packageRoot())})
    native.watchHangup(${fd}, () => {})
    require('node:worker_threads').parentPort.postMessage('watching')
    setInterval(() => {}, 1000)`
  const worker = new Worker(code, { eval: true })
  await new Promise((resolve) => worker.once('message', resolve))
  await worker.terminate()
  // One with nothing else to do ends by itself.
  const idle = new Worker(code.replace(/setInterval.*/, ''), { eval: true })
  expect(await new Promise((resolve) => idle.once('exit', resolve))).toBe(0)
  child.kill('SIGKILL')
})
