/** Keys that are made one after the other, and used at once, while memory is collected: in a process of its own, which may wait for itself. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import { packageRoot } from '../../src/package-root.ts'

const KEYS = 20_000

test('no collection of memory ever stops a process that makes keys', { timeout: 120_000 }, () => {
  const identity = pathToFileURL(join(packageRoot(), 'dist/src/link/identity.js')).href
  const script = `
    const { newIdentity } = await import('${identity}')
    const ids = new Set()
    for (let i = 0; i < ${KEYS}; i++) ids.add(newIdentity().nodeId)
    console.log(ids.size)`
  // A young generation of 1 MB is collected many times; the generation of one key is then among what goes while the key is exported.
  const flags = ['--max-semi-space-size=1', '--input-type=module', '-e', script]
  const { stdout, error } = spawnSync(process.execPath, flags, { timeout: 100_000, killSignal: 'SIGKILL' })
  expect(error).toBeUndefined()
  expect(stdout.toString()).toBe(`${KEYS}\n`)
})
