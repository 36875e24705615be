/** A store that is closed as soon as what was written is on disk. */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { packageRoot } from '../../src/package-root.ts'

const here = (name: string) => join(packageRoot(), 'test/api', name)
let directory: string
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'penstock-store-'))
})
afterAll(() => rmSync(directory, { recursive: true }))

test('the threads that wrote are done with it first, however late they are', () => {
  const slow = join(directory, 'slow-locks.so')
  execFileSync('g++', ['-O2', '-shared', '-fPIC', '-o', slow, here('slow-locks.cc'), '-ldl'])
  const { status, signal, stdout } = spawnSync(process.execPath, [here('store-child.mjs')], {
    env: { ...process.env, LD_PRELOAD: slow },
    encoding: 'utf8',
  })
  expect({ status, signal, stdout }).toEqual({ status: 0, signal: null, stdout: '150\n' })
})
