/** Locks on files and room for files, as the kernel gives them. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { native } from './native.ts'

const directory = mkdtempSync(join(tmpdir(), 'penstock-native-'))
const path = join(directory, 'file')
afterAll(() => rmSync(directory, { recursive: true }))

test('a lock is held by one at a time, and by no child', async () => {
  const first = native.ownerOpen()
  const second = native.ownerOpen()
  native.lockOpen(first, path)
  const child = spawn('sleep', ['60'])
  await once(child, 'spawn')
  try {
    expect(() => native.lockOpen(second, path)).toThrow(expect.objectContaining({ code: 'EAGAIN', syscall: 'flock' }))
    native.ownerRelease(first)
    native.close(native.lockOpen(second, path))
  } finally {
    native.ownerRelease(first)
    native.ownerRelease(second)
    child.kill()
  }
  expect(native.openDescriptors()).toBe(0)
})

test('room is reserved beyond the end of a file, whose size and bytes stay', () => {
  writeFileSync(path, 'abc')
  if (!native.fileReserve(path, 1 << 20)) {
    console.warn('SKIPPED: the file system of the temporary directory cannot reserve room')
    return
  }
  expect(readFileSync(path, 'utf8')).toBe('abc')
  expect(statSync(path).blocks * 512).toBeGreaterThanOrEqual(1 << 20)
  expect(() => native.fileReserve('/nowhere/file', 1)).toThrow(expect.objectContaining({ code: 'ENOENT' }))
})

test('a file that can be shared as LMDB shares it, and one that can be locked, but not be mapped', () => {
  native.fileRequireShared(path)
  expect(() => native.fileRequireShared('/proc/self/comm')).toThrow(expect.objectContaining({ syscall: 'mmap' }))
  expect(() => native.fileRequireShared('/nowhere/file')).toThrow(expect.objectContaining({ code: 'ENOENT' }))
})
