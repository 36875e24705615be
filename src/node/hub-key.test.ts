/** The hub key taken from a node, cut off in between: the node has a key at every moment. */
import { mkdirSync, mkdtempSync, rmdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { readHubKey } from '../link/hub-key.ts'
import { identityFile, loadIdentity } from '../link/identity.ts'
import { Store } from '../store/store.ts'
import { adoptHubKey } from './hub-key.ts'

const root = mkdtempSync(join(tmpdir(), 'penstock-adopt-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))

test('a node whose new key cannot be written keeps the one that it had, and goes on when it is done again', async () => {
  const directory = join(root, 'node')
  const file = join(root, 'hub.key')
  await new Store(directory).close()
  const { nodeId } = loadIdentity(directory)
  // Where the new key is written before it takes its place.
  const draft = `${identityFile(directory)}.${process.pid}`
  mkdirSync(draft)
  await expect(adoptHubKey(directory, file)).rejects.toMatchObject({ code: 'EISDIR' })
  rmdirSync(draft)
  const adopted = await adoptHubKey(directory, file)
  expect(adopted.hubId).toBe(nodeId)
  expect(readHubKey(file).nodeId).toBe(nodeId)
  expect(loadIdentity(directory).nodeId).toBe(adopted.nodeId)
  expect(adopted.nodeId).not.toBe(nodeId)
})
