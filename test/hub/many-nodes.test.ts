/** 200 nodes that join, leave, are removed, renamed and lose their links at random: whoever follows the list ends with the list. */
import { afterEach, expect, test } from 'vitest'
import type { Node, StreamNodesResponse } from '../../src/contract/types.ts'
import { MAX_PENDING_PER_ADDRESS } from '../../src/hub/request-limits.ts'
import { type Member, Network } from '../harness/hub.ts'
import type { CollectingSink } from '../harness/sink.ts'
import { settle, until } from '../harness/waiting.ts'

const HUB = 'http://hub'
const NODES = 200
const STEPS = 3_000
const everything = { metadataFilters: {}, serviceFilters: [] }

let network: Network
afterEach(() => network.close())

/** Numbers in [0, 1) that follow from the seed (mulberry32). */
function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}

const shown = ({ id, name, online, metadata, services }: Node) => ({ id, name, online, metadata, services })

/** What a subscriber knows; throws at a change that comes before the list, that is told twice, or that cannot follow. */
class Follower {
  readonly sink: CollectingSink<StreamNodesResponse>
  #nodes: Map<string, Node> | undefined
  #read = 0

  constructor(sink: CollectingSink<StreamNodesResponse>) {
    this.sink = sink
  }

  list(): ReturnType<typeof shown>[] {
    while (this.#read < this.sink.messages.length) this.#take(this.sink.messages[this.#read++] as StreamNodesResponse)
    return [...(this.#nodes ?? new Map<string, Node>()).values()].map(shown).sort((a, b) => (a.id < b.id ? -1 : 1))
  }

  #take({ initialResponse, updateResponse }: StreamNodesResponse): void {
    if (initialResponse !== undefined) {
      expect(this.#nodes, 'the list comes once').toBeUndefined()
      this.#nodes = new Map(initialResponse.nodes.map((node) => [node.id, node]))
      return
    }
    const nodes = this.#nodes
    if (nodes === undefined || updateResponse === undefined) throw new Error('a change before the list')
    const [[kind, node]] = Object.entries(updateResponse) as [[string, Node]]
    const known = nodes.get(node.id)
    const before = known === undefined ? 'absent' : known.online ? 'online' : 'offline'
    const expected: Record<string, string[]> = {
      authenticatedNode: ['absent'],
      deauthenticatedNode: ['online', 'offline'],
      connectedNode: ['offline'],
      disconnectedNode: ['online'],
      updatedNode: ['online'],
    }
    expect(expected[kind], `${kind} of a node that is ${before}`).toContain(before)
    if (kind === 'updatedNode') expect(node.name, 'a renaming told twice').not.toBe(known?.name)
    if (kind === 'deauthenticatedNode') nodes.delete(node.id)
    else nodes.set(node.id, node)
  }
}

test.each([1, 2])('seed %i', { timeout: 240_000 }, async (seed) => {
  network = new Network()
  const random = seeded(seed)
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T
  const hub = await network.hub(HUB)
  const { sink: requests, receiver } = await hub.converse('authenticationByRequests')
  let operating = true
  const operator = (async () => {
    while (operating) {
      const { requestId } = await requests.next()
      await receiver.message({ requestId: BigInt(requestId), accept: true })
    }
  })()
  operator.catch(() => {})

  const nodes = Array.from({ length: NODES }, (_, i) =>
    network.node({
      name: `node ${i}`,
      remoteAddress: `10.0.0.${Math.floor(i / MAX_PENDING_PER_ADDRESS)}`,
      random: seeded(i),
    }),
  )
  const busy = new Map<Member, Promise<unknown>>()
  const failures: unknown[] = []
  const begin = (node: Member, work: Promise<unknown>) => {
    const done = work.catch((error: unknown) => failures.push(error)).finally(() => busy.delete(node))
    busy.set(node, done)
  }
  const followers: Follower[] = []
  let renames = 0
  for (let step = 0; step < STEPS; step++) {
    if (step % 60 === 0) {
      const connected = nodes.filter(({ state }) => state === 'CONNECTED')
      const at = random() < 0.5 || connected.length === 0 ? hub : pick(connected)
      followers.push(
        new Follower(await at.follow('streamNodes', everything).catch(() => hub.follow('streamNodes', everything))),
      )
    }
    const node = pick(nodes)
    if (busy.has(node)) {
      await settle(1)
      continue
    }
    const choice = random()
    if (node.state === 'UNAUTHENTICATED') {
      begin(node, node.call('authenticateByRequest', { hubServerAddress: HUB }))
    } else if (node.state === 'CONNECTED') {
      if (choice < 0.2) begin(node, node.call('disconnect', {}))
      else if (choice < 0.3) begin(node, hub.call('removeNode', { nodeId: node.id }))
      else if (choice < 0.4) node.part.membership?.session?.close('SHUTDOWN', 'the link goes down')
      else {
        const at = pick([node, hub])
        const name = `renamed ${renames++}`
        begin(node, at.call('setNode', { nodeId: node.id, name, metadata: { items: {} } }))
      }
    }
    if (choice < 0.5) await settle(1)
  }
  await Promise.all(busy.values())
  await until(() => nodes.every(({ state }) => state !== 'DISCONNECTED'))
  // A renaming whose node lost its link meanwhile may end so; nothing else may.
  expect(failures.filter((error) => !['UNAVAILABLE', 'NOT_FOUND'].includes((error as { code: string }).code))).toEqual(
    [],
  )

  const expected = async () =>
    (await hub.call('getNodes', everything)).nodes.map(shown).sort((a, b) => (a.id < b.id ? -1 : 1))
  const open = followers.filter(({ sink }) => !sink.closed)
  expect(open.length).toBeGreaterThan(10)
  await until(async () => {
    const list = JSON.stringify((await expected()).map(({ id, name, online }) => [id, name, online]))
    return open.every(
      (follower) => JSON.stringify(follower.list().map(({ id, name, online }) => [id, name, online])) === list,
    )
  })
  for (const follower of open) expect(follower.list()).toEqual(await expected())
  // What a follower saw up to the end of its stream was in order, too.
  for (const follower of followers) follower.list()
  const members = nodes.filter(({ state }) => state === 'CONNECTED')
  expect(members.length).toBeGreaterThan(NODES / 4)
  expect((await expected()).map(({ id }) => id)).toEqual([hub, ...members].map(({ id }) => id).sort())
  operating = false
})
