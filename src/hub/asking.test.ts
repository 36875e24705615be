/** A request to join whose server goes: the node takes it up at another server of the hub, and at no other hub. */
import { afterEach, expect, test } from 'vitest'
import { SimulatedClock } from 'xstate'
import { settle } from '../../test/harness/waiting.ts'
import { acceptLink } from '../link/handshake-hub.ts'
import { joinLink } from '../link/handshake-node.ts'
import { HubSigner } from '../link/hub-key.ts'
import { newIdentity } from '../link/identity.ts'
import { rawKey } from '../link/keys.ts'
import { type Admission, LinkUnreachable } from '../link/link.ts'
import { MemoryTransport } from '../link/pair.ts'
import { record, TestHub } from '../link/testing.ts'
import { askHub, MAX_RESUMING_MS } from './asking.ts'
import type { DialRequest } from './dial-request.ts'

const [A, B, C] = ['http://a:1/', 'http://b:1/', 'http://c:1/'] as const
const hubKey = newIdentity()
const clock = new SimulatedClock()

/** A server of the hub with this key; requests wait until they are answered. */
class Server {
  readonly hub: TestHub
  readonly asked: { nodeId: string; answer(admission: Admission): void; withdrawn: AbortSignal }[] = []
  readonly links: MemoryTransport[] = []
  readonly #signer: HubSigner
  isAway = false

  constructor(key = hubKey) {
    this.hub = new TestHub({
      join: ({ nodeId }, withdrawn) => new Promise((answer) => void this.asked.push({ nodeId, answer, withdrawn })),
    })
    this.#signer = new HubSigner({
      hub: key,
      serverKey: rawKey(this.hub.identity.publicKey),
    })
  }

  accept(hasList: boolean): MemoryTransport {
    const [here, there] = MemoryTransport.pair()
    const servers = [A, B, C].map((address) => ({ id: address, address }))
    const list = hasList ? this.#signer.list({ issue: 1n, servers }) : undefined
    acceptLink(here, { ...this.hub.options, clock, signer: this.#signer, servers: () => list })
    this.links.push(there)
    return there
  }

  /** Without a word. */
  die(): void {
    this.isAway = true
    for (const link of this.links) link.cut()
  }
}

const stop: AbortController[] = []
afterEach(() => {
  for (const each of stop.splice(0)) each.abort(new Error('the test is over'))
})

/** A node that asks the server at A; `dialled`: which it has tried. */
function asking(servers: Record<string, Server>, hasList = true) {
  const identity = newIdentity()
  const dialled: string[] = []
  const dial = async ({ address, hubKey: pinnedHubKey, intent, signal, onPending }: DialRequest) => {
    dialled.push(address.href)
    const server = servers[address.href]
    if (server === undefined || server.isAway) throw new LinkUnreachable('away')
    const options = { record, intent, signal, onPending, identity, pinnedHubKey, clock, report: () => {} }
    return { ...(await joinLink(server.accept(hasList), new Uint8Array(0), options)), certificate: undefined }
  }
  const withdrawal = new AbortController()
  stop.push(withdrawal)
  const outcome = askHub(new URL(A), { dial, record: () => record, clock, random: () => 0 }, withdrawal.signal)
  outcome.catch(() => {})
  return { dialled, outcome, withdrawal, nodeId: identity.nodeId }
}

async function pass(milliseconds: number): Promise<void> {
  for (let passed = 0; passed < milliseconds; passed += 500) {
    clock.increment(500)
    await settle(3)
  }
}

test('it waits at another server, under the same key, and is let in there', async () => {
  const [a, b] = [new Server(), new Server()]
  const { outcome, nodeId } = asking({ [A]: a, [B]: b })
  await settle()
  expect(a.asked.map((request) => request.nodeId)).toEqual([nodeId])
  a.die()
  await settle()
  await pass(2_000)
  expect(b.asked.map((request) => request.nodeId)).toEqual([nodeId])
  b.asked[0]?.answer({ admitted: true })
  expect(await outcome).toMatchObject({ address: B, hubId: hubKey.nodeId })
})

test('should that one go as well, the next', async () => {
  const servers = { [A]: new Server(), [B]: new Server(), [C]: new Server() }
  const { outcome } = asking(servers)
  await settle()
  for (let gone = 0; gone < 2; gone++) {
    Object.values(servers)
      .find(({ asked, isAway }) => asked.length > 0 && !isAway)
      ?.die()
    await settle()
    await pass(3_000)
  }
  const left = Object.entries(servers).filter(([, { isAway }]) => !isAway)
  expect(left).toHaveLength(1)
  left[0]?.[1].asked[0]?.answer({ admitted: true })
  expect((await outcome).address).toBe(left[0]?.[0])
})

test('another hub at one of the addresses is not asked', async () => {
  const [a, other] = [new Server(), new Server(newIdentity())]
  const { outcome } = asking({ [A]: a, [B]: other, [C]: other })
  await settle()
  a.die()
  await settle()
  await pass(2_000)
  await expect(outcome).rejects.toMatchObject({ reason: 'WRONG_HUB' })
  expect(other.asked).toEqual([])
})

test('an answer is an answer: who is rejected asks nobody else', async () => {
  const [a, b] = [new Server(), new Server()]
  const { outcome, dialled } = asking({ [A]: a, [B]: b })
  await settle()
  a.asked[0]?.answer({ admitted: false, reason: 'REJECTED', message: 'no' })
  await expect(outcome).rejects.toMatchObject({ reason: 'REJECTED' })
  expect(dialled).toEqual([A])
})

test('a server that cannot tell now is no answer', async () => {
  const [a, b] = [new Server(), new Server()]
  const { outcome } = asking({ [A]: a, [B]: b })
  await settle()
  a.asked[0]?.answer({ admitted: false, reason: 'UNAVAILABLE', message: 'cut off' })
  await settle()
  await pass(2_000)
  b.asked[0]?.answer({ admitted: true })
  expect((await outcome).address).toBe(B)
})

test('with all servers away it gives up after half a minute', async () => {
  const a = new Server()
  const { outcome, dialled } = asking({ [A]: a })
  await settle()
  a.die()
  await settle()
  await pass(MAX_RESUMING_MS - 5_000)
  let isOver = false
  outcome.catch(() => {
    isOver = true
  })
  await settle()
  expect(isOver).toBe(false)
  expect(new Set(dialled)).toEqual(new Set([A, B, C]))
  await pass(10_000)
  await expect(outcome).rejects.toBeInstanceOf(LinkUnreachable)
})

test('a caller that goes away while the node looks for a server ends the search', async () => {
  const a = new Server()
  const { outcome, withdrawal, dialled } = asking({ [A]: a })
  await settle()
  a.die()
  await settle()
  withdrawal.abort(new Error('gone'))
  await expect(outcome).rejects.toThrow('gone')
  const before = dialled.length
  await pass(5_000)
  expect(dialled).toHaveLength(before)
})

test.each([
  ['was never pending', (a: Server) => a.die(), true, LinkUnreachable],
  ['waits at a hub that tells of no servers', () => {}, false, LinkUnreachable],
])('a request that %s is not taken up elsewhere', async (_what, before, hasList, kind) => {
  const [a, b] = [new Server(), new Server()]
  before(a)
  const { outcome, dialled } = asking({ [A]: a, [B]: b }, hasList)
  await settle()
  a.die()
  await expect(outcome).rejects.toBeInstanceOf(kind)
  expect(dialled).toEqual([A])
})
