/** A thousand nodes of a hub with three servers, on a simulated clock: how they go over to the others when one is lost, or wants them to. */
import { describe, expect, test } from 'vitest'
import { createActor, fromCallback, fromPromise, SimulatedClock } from 'xstate'
import { settle } from '../../test/harness/waiting.ts'
import type { SignInRecord } from '../store/sign-in.ts'
import { addressesOf, formerAfter, MAX_FORMER, orderAfter, othersOf, startingOrder } from './hub-addresses.ts'
import { hubConnection } from './hub-connection.ts'
import type { Attempt, HubLink, HubNews } from './hub-connection-parts.ts'

const NODES = 1_000
const STEP_MS = 50
const addresses = ['http://a:1/', 'http://b:1/', 'http://c:1/'] as const
const servers = { issue: 1n, servers: addresses.map((address) => ({ id: address, address })) }
const [A, B, C] = addresses

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

class Link implements HubLink {
  readonly address: string
  #end: (end: { reason: string; byPeer: boolean }) => void = () => {}
  readonly closed = new Promise<{ reason: string; byPeer: boolean }>((resolve) => {
    this.#end = resolve
  })
  closedAs: string | undefined

  constructor(address: string) {
    this.address = address
  }

  close(reason: string): void {
    this.closedAs = reason
    this.#end({ reason, byPeer: false })
  }

  lose(): void {
    this.closedAs = 'LOST'
    this.#end({ reason: 'LOST', byPeer: true })
  }
}

/** The nodes, each at one of the servers, a third at each. */
class Fleet {
  readonly clock = new SimulatedClock()
  /** Servers that cannot be reached, or let nobody in now. */
  readonly away = new Set<string>()
  /** When a node has asked which server to be let in, since the last look. */
  readonly attempts: { at: number; address: string }[] = []
  /** Nodes that were without a link while another stood. */
  unlinked = 0
  readonly nodes: ReturnType<Fleet['node']>[]

  constructor() {
    this.nodes = Array.from({ length: NODES }, (_, i) => this.node(i))
  }

  node(i: number) {
    const home = addresses[i % addresses.length] as string
    const signIn: SignInRecord = { hubAddress: home, hubId: 'h', hubKey: new Uint8Array(32), servers }
    const links: Link[] = []
    let tell: (news: HubNews) => void = () => {}
    const machine = hubConnection.provide({
      actors: {
        dial: fromPromise<HubLink, Attempt>(async ({ input: { address } }) => {
          this.attempts.push({ at: this.clock.now(), address })
          if (this.away.has(address)) throw new Error('away')
          const link = new Link(address)
          links.push(link)
          return link
        }),
        hear: fromCallback(({ sendBack }) => {
          tell = sendBack as typeof tell
        }),
      },
    })
    const actor = createActor(machine, { clock: this.clock, input: { signIn, random: seeded(i) } })
    actor.start()
    const link = () => actor.getSnapshot().context.link as Link | null
    return { actor, links, link, tell: (news: HubNews) => tell(news) }
  }

  at(address: string) {
    return this.nodes.filter((node) => node.link()?.address === address)
  }

  async pass(milliseconds: number): Promise<void> {
    for (let passed = 0; passed < milliseconds; passed += STEP_MS) {
      this.clock.increment(STEP_MS)
      await settle(1)
    }
  }

  /** The most attempts in any tenth of a second. */
  peak(): number {
    const tenths = new Map<number, number>()
    for (const { at } of this.attempts) tenths.set(Math.floor(at / 100), (tenths.get(Math.floor(at / 100)) ?? 0) + 1)
    return Math.max(0, ...tenths.values())
  }

  stop(): void {
    for (const { actor } of this.nodes) actor.stop()
  }
}

async function started(): Promise<Fleet> {
  const fleet = new Fleet()
  await settle()
  expect(addresses.map((address) => fleet.at(address).length)).toEqual([334, 333, 333])
  // The links are healthy: a new row of attempts.
  await fleet.pass(10_000)
  fleet.attempts.length = 0
  return fleet
}

/** Four standard deviations of a fair coin thrown `throws` times. */
const spread = (throws: number) => 4 * Math.sqrt(throws / 4)

test('of a server that is lost the nodes are at the others within 2 s, half at each, and nobody else moves', async () => {
  const fleet = await started()
  const moved = fleet.at(A)
  fleet.away.add(A)
  for (const node of moved) node.link()?.lose()
  await settle()
  await fleet.pass(500)
  const early = moved.filter((node) => node.link() !== null).length
  expect(Math.abs(early - moved.length / 4)).toBeLessThan(spread(moved.length))
  await fleet.pass(1_500)
  const [atB, atC] = [B, C].map((address) => moved.filter((node) => node.link()?.address === address).length)
  expect((atB as number) + (atC as number)).toBe(moved.length)
  expect(Math.abs((atB as number) - moved.length / 2)).toBeLessThan(spread(moved.length))
  // One attempt each, over 2 s: no tenth of a second has a fifth of them.
  expect(fleet.attempts.length).toBe(moved.length)
  expect(fleet.peak()).toBeLessThan(moved.length / 5)
  expect(fleet.nodes.filter((node) => !moved.includes(node)).every(({ links }) => links.length === 1)).toBe(true)
  fleet.stop()
})

test('with two servers lost all come to the third; those whose first attempt was in vain within 6 s', async () => {
  const fleet = await started()
  for (const address of [A, B]) {
    fleet.away.add(address)
    for (const node of fleet.at(address)) node.link()?.lose()
  }
  await settle()
  await fleet.pass(6_000)
  expect(fleet.at(C).length).toBe(NODES)
  fleet.stop()
})

describe('nodes that are told to look elsewhere', () => {
  test('leave once another server has let them in, spread over the others and over time', async () => {
    const fleet = await started()
    const asked = fleet.at(A)
    for (const node of asked) node.tell({ type: 'LOOK_ELSEWHERE' })
    for (let i = 0; i < 90; i++) {
      await fleet.pass(STEP_MS)
      expect(asked.every((node) => node.link() !== null)).toBe(true)
    }
    expect(fleet.at(A)).toEqual([])
    expect(asked.every(({ links: [first] }) => first?.closedAs === 'REPLACED')).toBe(true)
    expect(Math.abs(asked.filter((node) => node.link()?.address === B).length - asked.length / 2)).toBeLessThan(
      spread(asked.length),
    )
    expect(fleet.peak()).toBeLessThan(asked.length / 10)
    fleet.stop()
  })

  test('stay where they are while nobody lets them in, asking ever less often, and when told that all is well', async () => {
    const fleet = await started()
    for (const address of addresses) fleet.away.add(address)
    for (const node of fleet.nodes) node.tell({ type: 'LOOK_ELSEWHERE' })
    await fleet.pass(120_000)
    expect(fleet.nodes.every(({ links }) => links.length === 1 && links[0]?.closedAs === undefined)).toBe(true)
    const late = fleet.attempts.filter(({ at }) => at > fleet.clock.now() - 60_000).length
    expect(late).toBeGreaterThan(NODES)
    expect(late).toBeLessThan(8 * NODES)
    fleet.away.clear()
    for (const node of fleet.nodes) node.tell({ type: 'STAY' })
    await fleet.pass(60_000)
    expect(fleet.nodes.every(({ links }) => links.length === 1)).toBe(true)
    fleet.stop()
  })
})

describe('the order of the servers', () => {
  const signIn: SignInRecord = { hubAddress: 'https://a:1', hubId: 'h', hubKey: new Uint8Array(32) }
  const list = (...told: string[]) => ({ issue: 1n, servers: told.map((address) => ({ id: address, address })) })

  test('has each address once, and no plain one for a node that joined over HTTPS', () => {
    expect(addressesOf({ ...signIn, servers: list('https://a:1/', '', 'https://b:1', 'http://c:1') })).toEqual([
      'https://a:1/',
      'https://b:1/',
    ])
    const plain = { ...signIn, hubAddress: 'http://a:1' }
    expect(addressesOf({ ...plain, servers: list('https://b:1') })).toEqual(['http://a:1/', 'https://b:1/'])
  })

  test('begins with the server of the last link, if it is still one', () => {
    const told = { ...signIn, servers: list('https://a:1', 'https://b:1', 'https://c:1') }
    for (let seed = 0; seed < 20; seed++) {
      expect(startingOrder({ ...told, lastAddress: 'https://b:1/' }, seeded(seed))[0]).toBe('https://b:1/')
      const gone = startingOrder({ ...told, lastAddress: 'https://z:1/' }, seeded(seed))
      expect([...gone].sort()).toEqual(['https://a:1/', 'https://b:1/', 'https://c:1/'])
    }
  })

  test('has a server that only earlier lists have named after each round of the others', () => {
    const told = {
      ...signIn,
      servers: list('https://a:1', 'https://b:1'),
      former: list('https://y:1', 'https://z:1', 'http://c:1', 'https://a:1').servers,
    }
    const starting = startingOrder(told, seeded(1))
    expect(starting.filter((_, i) => i % 3 < 2)).toEqual([
      'https://a:1/',
      'https://b:1/',
      'https://a:1/',
      'https://b:1/',
    ])
    expect([starting[2], starting[5]].sort()).toEqual(['https://y:1/', 'https://z:1/'])
    expect(orderAfter(told, 'https://a:1/', seeded(1)).slice(0, 2)).toEqual(['https://b:1/', 'https://a:1/'])
    expect(orderAfter({ ...told, servers: list('https://a:1') }, 'https://z:1/', seeded(1))).toContain('https://z:1/')
    expect(othersOf({ ...told, servers: list('https://a:1') }, 'https://a:1/', seeded(1)).sort()).toEqual([
      'https://y:1/',
      'https://z:1/',
    ])
    expect(othersOf(told, 'https://z:1/', seeded(1))).not.toContain('https://z:1/')
  })

  test('remembers so many servers that the newest list does not name, those named last first', () => {
    const before = {
      ...signIn,
      servers: list('https://a:1', '', 'https://b:1'),
      former: list('https://y:1', 'https://b:1', 'https://z:1').servers,
    }
    const ids = formerAfter(before, list('https://a:1', 'https://z:1')).map(({ id }) => id)
    expect(ids).toEqual(['https://b:1', 'https://y:1'])
    const moved = { issue: 2n, servers: [{ id: 'https://b:1', address: 'https://elsewhere:1' }] }
    expect(formerAfter(before, moved).map(({ id }) => id)).toEqual(['https://a:1', 'https://y:1', 'https://z:1'])
    const many = { ...signIn, servers: list(...Array.from({ length: MAX_FORMER + 1 }, (_, i) => `https://n${i}:1`)) }
    expect(formerAfter(many, list('https://a:1'))).toHaveLength(MAX_FORMER)
  })
})

test('a node whose server knew of no others, since it was alone when it started, finds them when it is gone', async () => {
  const fleet = await started()
  fleet.away.add(B).add(C)
  for (const { link } of [...fleet.at(B), ...fleet.at(C)]) link()?.lose()
  await fleet.pass(20_000)
  expect(fleet.at(A)).toHaveLength(NODES)
  for (const node of fleet.nodes)
    node.tell({ type: 'SERVERS', servers: { issue: 2n, servers: [{ id: A, address: A }] } })
  fleet.away.clear()
  fleet.away.add(A)
  for (const node of fleet.nodes) node.links.at(-1)?.lose()
  await fleet.pass(30_000)
  expect(fleet.at(B).length + fleet.at(C).length).toBe(NODES)
  fleet.stop()
})
