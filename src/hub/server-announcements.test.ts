/** The lists of servers that the servers of a hub sign: which of two is newer, on all of them, whatever their clocks say. */

import { expect, test, vi } from 'vitest'
import { SimulatedClock } from 'xstate'
import { SharedDirectory } from '../../test/harness/shared-directory.ts'
import { HubSigner, readServerList } from '../link/hub-key.ts'
import { newIdentity } from '../link/identity.ts'
import { rawKey } from '../link/keys.ts'
import type { LinkSession } from '../link/link.ts'
import type { ServerList } from '../link/signed.ts'
import { encodeServerDetails, MAX_SERVERS } from '../link/signed-messages.ts'
import { GRACE_MS, KEPT_MS, MAX_AHEAD_MS, ServerAnnouncements } from './server-announcements.ts'
import { aloneInDirectory } from './server-directory.ts'

const HOUR = 3600_000
const hub = newIdentity()
const hubKey = rawKey(hub.publicKey)

/** A server of a hub whose wall clock is `ahead` milliseconds of the others'. */
function server(shared: SharedDirectory, id: string, { ahead = 0, address = `https://${id}:1` } = {}) {
  const clock = new SimulatedClock()
  const signer = new HubSigner({
    hub,
    serverKey: new Uint8Array(32),
    now: () => 1_000_000 + ahead + clock.now(),
  })
  const onError = vi.fn()
  const directory = shared.of(id)
  const announcements = new ServerAnnouncements({ directory, signer, address, clock, onError })
  const list = () => {
    const { signed } = announcements
    return readServerList(signed, hubKey)
  }
  return { announcements, clock, directory, list, onError }
}

/** A node's session, and what it was told. */
function listener() {
  const told: (ServerList | string)[] = []
  let close: () => void = () => {}
  const session = {
    sendServers: (signed) => told.push(readServerList(signed, hubKey)),
    sendWish: (wish) => told.push(wish),
    closed: new Promise((resolve) => {
      close = resolve as never
    }),
  } as Pick<LinkSession, 'sendServers' | 'sendWish' | 'closed'> as LinkSession
  return { session, told, close: () => close() }
}
const ids = (list: ServerList | undefined) => list?.servers.map(({ id }) => id)

test.each([0, HOUR, -HOUR])('servers come to one list with one number, one of them %i ms ahead', (ahead) => {
  const shared = new SharedDirectory()
  const a = server(shared, 'a', { ahead })
  const first = a.list()
  expect(first?.servers).toEqual([{ id: 'a', address: 'https://a:1' }])
  const b = server(shared, 'b')
  const c = server(shared, 'c')
  for (const { list } of [a, b, c]) expect(ids(list())).toEqual(['a', 'b', 'c'])
  const issues = [a, b, c].map(({ list }) => list()?.issue)
  expect(new Set(issues).size).toBe(1)
  expect(issues[0]).toBeGreaterThan(first?.issue as bigint)
})

test('nodes hear of a change once, and no more when they are gone', async () => {
  const shared = new SharedDirectory()
  const a = server(shared, 'a')
  const [one, gone] = [listener(), listener()]
  for (const { session } of [one, gone]) a.announcements.serve(session)
  gone.close()
  await Promise.resolve()
  server(shared, 'b')
  expect(one.told.map((list) => ids(list as ServerList))).toEqual([['a', 'b']])
  expect((one.told[0] as ServerList).issue).toBe(a.list()?.issue)
  expect(gone.told).toEqual([])
})

test('a server that is gone is told of for ten minutes more, and not at all once it has come back elsewhere', () => {
  const shared = new SharedDirectory()
  const [a] = [server(shared, 'a'), server(shared, 'b'), server(shared, 'c')] as const
  const before = a.list()?.issue as bigint
  shared.leave('b')
  shared.leave('c')
  a.clock.increment(KEPT_MS - 1)
  expect(ids(a.list())).toEqual(['a', 'b', 'c'])
  server(shared, 'c', { address: 'https://new:1' })
  a.clock.increment(1)
  expect(a.list()?.servers).toEqual([
    { id: 'a', address: 'https://a:1' },
    { id: 'c', address: 'https://new:1' },
  ])
  expect(a.list()?.issue).toBeGreaterThan(before)
})

test('nodes are asked to look elsewhere once the server has been out of touch for a while, those that come then too', () => {
  const shared = new SharedDirectory()
  const a = server(shared, 'a')
  const [early, late] = [listener(), listener()]
  a.announcements.serve(early.session)
  shared.touch('a', false)
  a.clock.increment(GRACE_MS - 1)
  expect(early.told).toEqual([])
  a.clock.increment(1)
  a.announcements.serve(late.session)
  expect([early.told, late.told]).toEqual([['LOOK_ELSEWHERE'], ['LOOK_ELSEWHERE']])
  shared.touch('a', true)
  expect([early.told, late.told]).toEqual([
    ['LOOK_ELSEWHERE', 'STAY'],
    ['LOOK_ELSEWHERE', 'STAY'],
  ])
})

test('a server that is back in touch soon says nothing', () => {
  const shared = new SharedDirectory()
  const a = server(shared, 'a')
  const node = listener()
  a.announcements.serve(node.session)
  for (let i = 0; i < 3; i++) {
    shared.touch('a', false)
    a.clock.increment(GRACE_MS - 1)
    shared.touch('a', true)
  }
  a.clock.increment(GRACE_MS)
  shared.touch('a', false)
  a.announcements.close()
  a.clock.increment(GRACE_MS)
  expect(node.told).toEqual([])
})

test('what another server has published wrongly is reported, and costs that server its place only', () => {
  const shared = new SharedDirectory()
  const a = server(shared, 'a')
  shared.of('b').publish(Uint8Array.of(0x0a, 0x7f))
  expect(ids(a.list())).toEqual(['a'])
  expect(a.onError).toHaveBeenCalledWith(expect.stringContaining('server b'), expect.any(Error))
})

test('a number that no clock explains costs its server its place, and the lists go on without it', () => {
  const shared = new SharedDirectory()
  const a = server(shared, 'a')
  const first = a.list()?.issue as bigint
  shared.of('b').publish(encodeServerDetails({ address: 'https://b:1', issue: 2n ** 64n - 1n }))
  expect(ids(a.list())).toEqual(['a'])
  expect(a.onError).toHaveBeenCalledExactlyOnceWith(
    'what server b lets the others know of itself cannot be read',
    expect.objectContaining({ message: expect.stringContaining(`${2n ** 64n - 1n}`) }),
  )
  const c = server(shared, 'c')
  expect([ids(a.list()), ids(c.list())]).toEqual([
    ['a', 'c'],
    ['a', 'c'],
  ])
  expect(a.list()?.issue).toBe(c.list()?.issue)
  const now = a.list()?.issue as bigint
  expect(now - first).toBeLessThan(10n)
  shared.of('b').publish(encodeServerDetails({ address: 'https://b:1', issue: now + BigInt(MAX_AHEAD_MS) }))
  expect(ids(a.list())).toEqual(['a', 'b', 'c'])
  expect(a.list()?.issue).toBeGreaterThan(now + BigInt(MAX_AHEAD_MS))
})

test('there are as many servers as a list holds', () => {
  const shared = new SharedDirectory()
  const a = server(shared, 'a')
  for (let i = 0; i < MAX_SERVERS; i++) {
    shared.of(`b${i}`).publish(encodeServerDetails({ address: `https://b${i}:1`, issue: 1n }))
  }
  expect(a.list()?.servers).toHaveLength(MAX_SERVERS)
  expect(a.onError).toHaveBeenCalledTimes(1)
})

test('a server without an address is on the list by its id; the only server of a hub is alone on it', () => {
  const shared = new SharedDirectory()
  expect(server(shared, 'a', { address: '' }).list()?.servers).toEqual([{ id: 'a', address: '' }])
  const alone = aloneInDirectory('x')
  const signer = new HubSigner({ hub, serverKey: new Uint8Array(32) })
  const options = { directory: alone, signer, address: 'https://x:1', clock: new SimulatedClock(), onError: () => {} }
  expect(ids(readServerList(new ServerAnnouncements(options).signed, hubKey))).toEqual(['x'])
})
