/** Taking a hub's members out of where its state is, a data directory or NATS, and putting them into another such place. */
import { type MovedMembers, readMembers, writeMembers } from '../hub/cluster/moving.ts'
import { HubFileError, hubFileText, readHubFile } from '../hub/hub-file.ts'
import { readHubKey } from '../link/hub-key.ts'
import { identityFile, identityOf } from '../link/identity.ts'
import { readKey } from '../link/key-file.ts'
import { rawKey } from '../link/keys.ts'
import type { Store } from '../store/store.ts'
import { engineSettings, hubIdOf } from './cluster.ts'
import { noNode, pipelinesIn, withStore } from './offline.ts'
import type { NodeConfig } from './settings.ts'

export interface HubDirectory {
  /** The data directory of a node that is down. */
  readonly directory: string
  /** The file with the hub key; absent: the node's own key is the hub's. */
  readonly keyFile?: string | undefined
  /** The configuration of a server of a hub of several: its state is in NATS. Absent: it is in the data directory. */
  readonly cluster?: NodeConfig | undefined
}

export interface ExportedHub {
  readonly text: string
  readonly hubId: string
  readonly members: number
}

/** The members of the hub, as `importHub` takes them. Throws an Error that says what is missing. */
export async function exportHub(of: HubDirectory): Promise<ExportedHub> {
  if (of.cluster !== undefined) return await exportCluster(of, of.cluster)
  return await withStore(of.directory, async (store) => {
    const { hubId, server } = idsOf(of)
    const members = store.nodes.all()
    const known = store.hubId.get()
    if (members.length > 0 && known !== undefined && known !== hubId) throw otherKey(known, hubId)
    const requestIds = store.requestIds.unused
    return {
      text: hubFileText({ hubId, server, requestIds, pipelines: pipelinesIn(store), members }),
      hubId,
      members: members.length,
    }
  })
}

/** Also while its servers are up; their pipelines stay where they are. */
async function exportCluster(of: HubDirectory, config: NodeConfig): Promise<ExportedHub> {
  const { hubId, server } = idsOf(of)
  const { members, requestIds } = await readMembers(engineOf(config))
  return { text: hubFileText({ hubId, server, requestIds, pipelines: [], members }), hubId, members: members.length }
}

export interface ImportedHub {
  readonly hubId: string
  readonly members: number
  /** What was on the node that the hub was exported on, each with the node on which it is found from now on. */
  readonly pipelines: readonly { readonly id: string; readonly name: string; readonly node: string }[]
}

/**
 * Puts the members in `text` on this hub, all of them or none (into NATS: those that are left, when it is done again). `replace`: in place of those in the data
 * directory. With the key of that hub, a data directory that is empty or missing becomes a new node's. Throws HubFileError where the text is none, an Error
 * where it is another hub's or this one has members.
 */
export async function importHub(
  text: string,
  into: HubDirectory,
  { replace = false }: { replace?: boolean } = {},
): Promise<ImportedHub> {
  const { hubId, server: from, pipelines, members, requestIds } = readHubFile(text)
  // Before anything is made.
  if (into.keyFile !== undefined) checkKey(hubId, readHubKey(into.keyFile).nodeId)
  const take = async (store: Store): Promise<ImportedHub> => {
    const { hubId: own, server } = idsOf(into)
    checkKey(hubId, own)
    const itself = members.findIndex(({ id }) => id === server)
    if (itself >= 0)
      throw new HubFileError([`the node of this data directory, ${server}, is a member of the hub: let it leave first`])
    if (into.cluster !== undefined) await writeMembers(engineOf(into.cluster), { members, requestIds })
    else await importInto(store, own, { members, requestIds }, replace)
    const here = new Set(pipelinesIn(store).map(({ id }) => id))
    return {
      hubId,
      members: members.length,
      pipelines: pipelines.map((each) => ({ ...each, node: here.has(each.id) ? server : from })),
    }
  }
  return await withStore(into.directory, take, { makesNode: into.keyFile !== undefined })
}

async function importInto(
  store: Store,
  hubId: string,
  { members, requestIds }: MovedMembers,
  replace: boolean,
): Promise<void> {
  const there = store.nodes.all().length
  if (there > 0 && !replace) {
    throw new Error(
      `this hub has ${there} members: what is imported goes into a hub without any, or in their place (--replace)`,
    )
  }
  await store.importHub(hubId, members, requestIds)
}

function engineOf(config: NodeConfig) {
  return engineSettings(config, hubIdOf(rawKey(readHubKey(config['hubServer.keyFile']).publicKey)))
}

function checkKey(known: string, own: string): void {
  if (known !== own) throw otherKey(known, own)
}

function otherKey(known: string, own: string): Error {
  return new Error(
    `its members know the hub by the key ${known}, and this one has ${own}: give the key of that hub (--hub-key-file)`,
  )
}

/** The id by which members know the hub, and that of its node. */
function idsOf({ directory, keyFile }: HubDirectory): { hubId: string; server: string } {
  const key = readKey(identityFile(directory))
  if (key === undefined) throw noNode(directory)
  const server = identityOf(key).nodeId
  return { hubId: keyFile === undefined ? server : readHubKey(keyFile).nodeId, server }
}
