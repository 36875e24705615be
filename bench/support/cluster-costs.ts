/** What a node costs the servers of a hub and its engine beside its link: memory of the picture, writes, and bytes of what is stored and told. */
import { randomBytes } from 'node:crypto'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { systemClock } from '../../src/contract/clock.ts'
import { jsonEncoder } from '../../src/contract/json-encode.ts'
import { loadOperations } from '../../src/contract/operations.ts'
import { Engine } from '../../src/hub/cluster/engine.ts'
import { encodeNodeEntry, encodePresence } from '../../src/hub/cluster/entries.ts'
import { inTurns } from '../../src/hub/cluster/in-turns.ts'
import { nodeKey, Picture } from '../../src/hub/cluster/picture.ts'
import { PresenceWriter } from '../../src/hub/cluster/presence-writer.ts'
import { nodeView } from '../../src/hub/node-records.ts'
import { base32 } from '../../src/link/identity.ts'
import type { NodeRecord } from '../../src/link/link.ts'
import { Nats } from '../../test/harness/nats.ts'

const life = randomBytes(16).toString('hex')
const newId = () => base32(randomBytes(16))
const recordOf = (name: string): NodeRecord => ({
  name,
  metadata: { items: { region: { stringValue: 'eu' } } },
  services: ['PIPELINES'],
})
const presenceOf = (session: string) => ({ life, session, joined: 1 })

const entryOf = (name: string): Uint8Array => {
  const member = {
    key: randomBytes(32),
    record: recordOf(name),
    joined: 0,
    admission: 0,
    joinedAt: Date.now(),
    lastSeen: new Date(),
  }
  return encodeNodeEntry({ member, requests: [], operations: [{ id: randomBytes(16), revision: 0 }] })
}

/** Bytes of heap that each server keeps of each node, wherever it is linked. */
export function pictureBytes(nodes: number): number {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const picture = new Picture({
    stands: () => true,
    isServer: () => false,
    tell: () => {},
    hubTime: Date.now,
  })
  picture.endReading(new Set(), new Set())
  collect()
  const before = process.memoryUsage().heapUsed
  for (let revision = 1; revision <= nodes; revision++) {
    const nodeId = newId()
    const key = nodeKey(nodeId)
    const at = Date.now()
    picture.takeMember({ key, revision, value: entryOf(`node ${revision}`), at })
    const value = encodePresence({ ...presenceOf(PresenceWriter.newSession()), joined: revision })
    picture.takePresence({ key, revision, value, at })
    picture.refresh(nodeId)
  }
  collect()
  const used = process.memoryUsage().heapUsed - before
  if (picture.nodes().length !== nodes) throw new Error('not every node is in the picture')
  return used / nodes
}

/** Bytes of one event of streamNodes, as JSON over server-sent events. */
export function eventBytes(): number {
  const operation = loadOperations().find(({ name }) => name === 'streamNodes')
  if (operation === undefined) throw new Error('there is no operation streamNodes')
  const node = nodeView(newId(), recordOf('node 12345'), true, Date.now())
  const data = jsonEncoder(operation.response)({ updateResponse: { connectedNode: node } })
  return Buffer.byteLength(`data: ${data}\n\n`)
}

export interface EngineCosts {
  /** Claims of one server, as many under way at once as it has in a mass return. */
  readonly claimsPerSecond: number
  /** What a bucket of members grows by with each node, by the engine's own count. */
  readonly storedBytes: number
}

/** `replicas` NATS servers on this machine, each with one replica. */
export async function engineCosts(replicas: 1 | 3, claims: number): Promise<EngineCosts> {
  const nats = replicas === 1 ? await Nats.alone() : await Nats.three()
  const engine = await Engine.open({
    servers: nats.addresses,
    name: 'bench',
    hubId: new Uint8Array(32).fill(1),
    replicas,
    connectionName: 'bench',
    timers: systemClock,
  })
  try {
    const writer = new PresenceWriter({ engine, clock: systemClock, mayWrite: () => {} })
    const unseen = { entry: undefined, revision: 0, at: 0 }
    const claim = async (nodeId: string) => {
      const session = PresenceWriter.newSession()
      await writer.put(nodeId, presenceOf(session), unseen)
    }
    const ids = Array.from({ length: claims }, newId)
    await inTurns(ids.slice(0, claims / 10), claim)
    const begun = performance.now()
    await inTurns(ids.slice(claims / 10), claim)
    const taken = performance.now() - begun
    const members = engine.session?.members
    if (members === undefined) throw new Error('the engine is gone')
    const stored = async () => (await members.status()).streamInfo.state.bytes
    const before = await stored()
    const few = ids.slice(0, 100)
    await inTurns(few, (nodeId) => members.put(nodeKey(nodeId), entryOf('node 12345')))
    return {
      claimsPerSecond: (0.9 * claims) / (taken / 1000),
      storedBytes: ((await stored()) - before) / few.length,
    }
  } finally {
    await engine.close()
    await nats.close()
  }
}
