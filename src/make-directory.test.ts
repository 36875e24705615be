/** Directories as `mkdir -p` makes them, waiting for the disk or not. */
import { mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { makeDirectory, makeDirectoryAsync } from './make-directory.ts'

let root: string
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'penstock-directories-'))
})
afterEach(() => rmSync(root, { recursive: true }))

const modeOf = (path: string) => statSync(path).mode & 0o777

describe.each([
  ['makeDirectory', async (path: string, mode?: number) => makeDirectory(path, mode)],
  ['makeDirectoryAsync', makeDirectoryAsync],
])('%s', (_, make) => {
  test('makes what is missing, for its owner alone unless told otherwise', async () => {
    await make(join(root, 'a', 'b'))
    expect([modeOf(join(root, 'a')), modeOf(join(root, 'a', 'b'))]).toEqual([0o700, 0o700])
    await make(join(root, 'a', 'c', 'd'), 0o750)
    expect([modeOf(join(root, 'a')), modeOf(join(root, 'a', 'c'))]).toEqual([0o700, 0o750])
  })

  test('leaves what is there', async () => {
    for (const path of [root, join(root, '.'), '/', '.']) await make(path, 0o777)
    symlinkSync(root, join(root, 'link'))
    await make(join(root, 'link'))
    await make(join(root, 'link', 'below'))
    expect([modeOf(root), modeOf(join(root, 'below'))]).toEqual([0o700, 0o700])
  })

  test('two at once', async () => {
    const path = join(root, 'x', 'y', 'z')
    await Promise.all([make(path), make(path), make(path)])
    expect(statSync(path).isDirectory()).toBe(true)
  })

  test('ends with what the system says where none can be made', async () => {
    writeFileSync(join(root, 'file'), '')
    symlinkSync(join(root, 'gone'), join(root, 'nowhere'))
    for (const [path, code] of [
      [join(root, 'file'), 'EEXIST'],
      [join(root, 'file', 'below'), 'ENOTDIR'],
      [join(root, 'nowhere'), 'EEXIST'],
      [join(root, 'nowhere', 'below'), 'EEXIST'],
      ['', 'ENOENT'],
    ] as const) {
      await expect(make(path), path).rejects.toMatchObject({ code })
    }
  })

  test.skipIf(process.platform !== 'linux')('below a file system that has no place for them', async () => {
    for (const path of ['/proc/penstock', '/proc/penstock/a/b']) {
      await expect(make(path), path).rejects.toMatchObject({ code: 'ENOENT', path: '/proc/penstock' })
    }
  })
})
