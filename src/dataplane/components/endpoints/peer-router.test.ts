/** peer_router: packets for an inner address go to the remote address that it was heard from last. */
import { describe, expect, test } from 'vitest'
import { type Bench, drive } from '../../../../test/harness/component.ts'

const ROUTER = {
  router: { peer_router: { ingress: { input: 'net', output: 'inside' }, egress: { input: 'reply', output: 'out' } } },
}
const MINUTE = 60e9

function bytesOf(address: string): number[] {
  if (address.includes('.')) return address.split('.').map(Number)
  const [head = '', tail = ''] = address.split('::')
  const groups = (text: string) => (text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16)))
  const [left, right] = [groups(head), groups(tail)]
  const all = [...left, ...Array(8 - left.length - right.length).fill(0), ...right]
  return all.flatMap((group) => [group >> 8, group & 255])
}

/** An IP packet of nothing but its header. */
function ip(source: string, destination: string): Uint8Array {
  const addresses = [...bytesOf(source), ...bytesOf(destination)]
  return addresses.length === 8
    ? Uint8Array.of(0x45, ...Array(11).fill(0), ...addresses)
    : Uint8Array.of(0x60, ...Array(7).fill(0), ...addresses)
}

const [A, B] = ['192.0.2.1:5000', '[2001:db8::b]:6000']
const frame = Uint8Array.of(0x08, 1, 2, 3, 4, 5)

/** Where a packet to `destination` is sent, '' for nowhere. */
function wayTo(bench: Bench, destination: string | Uint8Array): string {
  const packet =
    typeof destination === 'string' ? ip(destination.includes(':') ? '::9' : '9.9.9.9', destination) : destination
  bench.send('reply', packet)
  return bench.take('out')[0]?.remote ?? ''
}

const heard = (bench: Bench, source: string | Uint8Array, remote: string) =>
  bench.send('net', typeof source === 'string' ? ip(source, source.includes(':') ? '::9' : '9.9.9.9') : source, {
    remote,
  })

describe('peer_router', () => {
  test('learns IPv4, IPv6 and what is neither; ingress passes everything on as it is', () => {
    const bench = drive(ROUTER)
    expect(['10.0.0.1', 'fd00::1', frame].map((to) => wayTo(bench, to))).toEqual(['', '', ''])
    heard(bench, '10.0.0.1', A)
    heard(bench, '10.0.0.2', B)
    heard(bench, 'fd00::1', B)
    heard(bench, 'fd00::2', A)
    heard(bench, frame, B)
    expect(bench.take('inside').map(({ remote, bytes }) => [remote, bytes.length])).toEqual([
      [A, 20],
      [B, 20],
      [B, 40],
      [A, 40],
      [B, 6],
    ])
    expect(['10.0.0.1', '10.0.0.2', '10.0.0.3', 'fd00::1', 'fd00::2', 'fd00::3'].map((to) => wayTo(bench, to))).toEqual(
      [A, B, '', B, A, ''],
    )
    expect([wayTo(bench, frame), wayTo(bench, new Uint8Array(0))]).toEqual([B, B])
    expect(bench.metrics().router).toMatchObject({ unroutable_packets: 5, known_addresses: 4, moved_addresses: 0 })
    bench.stop()
  })

  test('the last sender owns an address', () => {
    const bench = drive(ROUTER)
    for (const remote of [A, A, B, B, A]) {
      heard(bench, '10.0.0.1', remote)
      expect(wayTo(bench, '10.0.0.1')).toBe(remote)
      heard(bench, frame, remote)
      expect(wayTo(bench, frame)).toBe(remote)
    }
    expect(bench.metrics().router).toMatchObject({ known_addresses: 1, moved_addresses: 2 })
    bench.stop()
  })

  test('an address is forgotten after five minutes without a packet from it or to it', () => {
    const bench = drive(ROUTER)
    heard(bench, '10.0.0.1', A)
    heard(bench, '10.0.0.2', A)
    heard(bench, '10.0.0.3', A)
    heard(bench, frame, A)
    bench.advance(4 * MINUTE)
    heard(bench, '10.0.0.1', A)
    expect(wayTo(bench, '10.0.0.2')).toBe(A)
    expect(wayTo(bench, frame)).toBe(A)
    bench.advance(MINUTE)
    expect(bench.metrics().router.known_addresses).toBe(2)
    expect(wayTo(bench, '10.0.0.3')).toBe('')
    bench.advance(4 * MINUTE - 1)
    expect(['10.0.0.1', '10.0.0.2', frame].map((to) => wayTo(bench, to))).toEqual([A, A, A])
    bench.advance(5 * MINUTE)
    expect(['10.0.0.1', '10.0.0.2', frame].map((to) => wayTo(bench, to))).toEqual(['', '', ''])
    expect(bench.metrics().router.known_addresses).toBe(0)
    bench.stop()
  })

  test('a run in which nothing else happens wakes when an address is forgotten, to say so', () => {
    const bench = drive(ROUTER)
    const wakesAt = () => bench.simulation.graph.timers.next
    expect(wakesAt()).toBe(Number.POSITIVE_INFINITY)
    heard(bench, '10.0.0.1', A)
    bench.advance(MINUTE)
    heard(bench, '10.0.0.2', A)
    bench.advance(MINUTE)
    wayTo(bench, '10.0.0.1')
    expect(wakesAt()).toBe(5 * MINUTE)
    bench.advance(3 * MINUTE)
    expect(wakesAt()).toBe(6 * MINUTE)
    bench.advance(MINUTE)
    expect([wakesAt(), bench.metrics().router.known_addresses]).toEqual([7 * MINUTE, 1])
    bench.advance(MINUTE)
    expect([wakesAt(), bench.metrics().router.known_addresses]).toEqual([Number.POSITIVE_INFINITY, 0])
    bench.stop()
  })

  test('groups, the broadcast address and "none" are neither learned nor routed; packets from nowhere teach nothing', () => {
    const bench = drive(ROUTER)
    const many = ['224.0.0.1', '239.255.255.255', '255.255.255.255', '0.0.0.0', 'ff02::1', 'ff0e::1:2', '0::0']
    for (const address of many) heard(bench, address, A)
    bench.send('net', [ip('10.0.0.1', '9.9.9.9'), frame])
    expect(bench.metrics().router.known_addresses).toBe(0)
    expect([...many, '10.0.0.1', frame].map((to) => wayTo(bench, to))).toEqual(Array(9).fill(''))
    for (const address of ['223.255.255.255', '240.0.0.1', '0.0.0.1', '255.255.255.254', 'fe80::1', '::1']) {
      heard(bench, address, A)
      expect([address, wayTo(bench, address)]).toEqual([address, A])
    }
    bench.stop()
  })

  test('65,536 addresses are known; the one longest unused gives way', () => {
    const bench = drive(ROUTER, { record: false })
    const address = (i: number) => `10.${(i >> 16) & 255}.${(i >> 8) & 255}.${i & 255}`
    const send = (from: number, to: number) =>
      bench.send(
        'net',
        Array.from({ length: to - from }, (_, i) => ip(address(from + i), '9.9.9.9')),
        { remote: A },
      )
    send(1, 65_537)
    expect(bench.metrics().router.known_addresses).toBe(65_536)
    bench.send('reply', ip('9.9.9.9', address(1)))
    send(65_537, 65_539)
    expect(bench.metrics().router.known_addresses).toBe(65_536)
    const to = [1, 2, 3, 4, 65_536, 65_538]
    const before = bench.metrics().router.unroutable_packets
    for (const i of to) bench.send('reply', ip('9.9.9.9', address(i)))
    expect(bench.metrics().router.unroutable_packets).toBe((before as number) + 2)
    expect(bench.metrics().router.egress_output_packets).toBe(1 + 4)
    bench.stop()
  })

  test('behind a decoder and in front of an encoder has all of a block go where its client is now', () => {
    const code = { symbols: 2, repair: 1 }
    const bench = drive({
      ...ROUTER,
      client: { reed_solomon_encoder: { ...code, input: 'spoken', output: 'coded' } },
      decoder: { reed_solomon_decoder: { input: 'received', output: 'net' } },
      encoder: { reed_solomon_encoder: { ...code, input: 'out', output: 'sent' } },
    })
    for (const remote of [A, B]) {
      bench.send('spoken', [ip('10.0.0.1', '9.9.9.9'), ip('10.0.0.1', '9.9.9.9')])
      const [, second, repair] = bench.take('coded').map(({ bytes }) => bytes)
      // The first of the block is lost, and recovered.
      bench.send('received', [second, repair] as Uint8Array[], { remote })
      expect(bench.take('inside').map((packet) => packet.remote)).toEqual([remote, remote])
      bench.send('reply', [ip('9.9.9.9', '10.0.0.1'), ip('9.9.9.9', '10.0.0.1')])
      expect(bench.take('sent').map((packet) => packet.remote)).toEqual([remote, remote, remote])
    }
    expect(bench.metrics().router).toMatchObject({ moved_addresses: 1, unroutable_packets: 0 })
    bench.check()
    bench.stop()
  })
})
