/** The hub key of a hub with several servers: read for a node that hosts one, and taken from the node that was the only one. */
import { HubSigner, readHubKey, writeHubKey } from '../link/hub-key.ts'
import { type Identity, identityFile, identityOf, newIdentity } from '../link/identity.ts'
import { readKey, replaceKey } from '../link/key-file.ts'
import { rawKey } from '../link/keys.ts'
import { messageOf } from '../text/error-message.ts'
import { noNode, pipelinesIn, withStore } from './offline.ts'
import type { NodeConfig } from './settings.ts'

/** What signs for the hub on this server; undefined without `hubServer.keyFile`. Throws an Error that names the setting. */
export function hubSigner(config: NodeConfig, identity: Identity): HubSigner | undefined {
  const file = config['hubServer.keyFile']
  if (file === '' && config['hubServer.address'] !== '') {
    throw new Error(
      'hubServer.address is what the hub key signs for the nodes: set hubServer.keyFile too (--hub-key-file)',
    )
  }
  if (file === '') return undefined
  if (!config.hubServer)
    throw new Error('hubServer.keyFile is set, but this node hosts no hub: set hubServer too (--hub)')
  const hub = named('hubServer.keyFile', () => readHubKey(file))
  if (hub.nodeId === identity.nodeId) {
    throw new Error(
      `hubServer.keyFile: ${file} holds the key of this very node; penstock hub key adopt makes it the hub's, and gives the node another`,
    )
  }
  return new HubSigner({ hub, serverKey: rawKey(identity.publicKey) })
}

export interface AdoptedHubKey {
  readonly hubId: string
  /** The id that the node has from now on. */
  readonly nodeId: string
  /** What is on the node, and is found under its new id. */
  readonly pipelines: readonly { readonly id: string; readonly name: string }[]
}

/**
 * Makes the key of the node whose state is in `directory`, and which is down, the hub key in the new file `file`, and gives the node a new one. Done
 * again after it was cut off, it goes on. Throws an Error, and changes nothing, where the node has no key or `file` holds another.
 */
export async function adoptHubKey(directory: string, file: string): Promise<AdoptedHubKey> {
  return await withStore(directory, async (store) => {
    const path = identityFile(directory)
    const key = readKey(path)
    if (key === undefined) throw noNode(directory)
    const hub = identityOf(key)
    const known = store.hubId.get() ?? hub.nodeId
    if (known !== hub.nodeId && store.nodes.all().length > 0) {
      throw new Error(
        `the members of this hub know it by the key ${known}, which is not the node's (${hub.nodeId}): it has a hub key already, which hubServer.keyFile (--hub-key-file) names`,
      )
    }
    if (readKeyIfThere(file)?.nodeId !== hub.nodeId) writeHubKey(file, hub)
    await store.hubId.put(hub.nodeId)
    const node = newIdentity()
    replaceKey(path, node.privateKey)
    return { hubId: hub.nodeId, nodeId: node.nodeId, pipelines: pipelinesIn(store) }
  })
}

function readKeyIfThere(file: string): Identity | undefined {
  const key = readKey(file)
  return key === undefined ? undefined : identityOf(key)
}

function named<T>(setting: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    throw new Error(`${setting}: ${messageOf(error)}`)
  }
}
