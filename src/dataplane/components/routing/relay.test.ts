/** client ids, relay_network_lookup and relay_routing_fabric: each client's packets reach it behind whatever address it has now. */
import { describe, expect, test } from 'vitest'
import { drive, type Pipeline, payload, Refused, tagOf } from '../../../../test/harness/component.ts'

const LARGEST = 0xffffffff
const numbers = (packets: readonly { bytes: Uint8Array }[]) => packets.map(({ bytes }) => tagOf(bytes))

/** An IP packet of nothing but its header, to `destination`. */
function ip(destination: string): Uint8Array {
  if (destination.includes('.')) return Uint8Array.of(0x45, ...Array(15).fill(0), ...destination.split('.').map(Number))
  const [head = '', tail = ''] = destination.split('::')
  const groups = (text: string) => (text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16)))
  const [left, right] = [groups(head), groups(tail)]
  const all = [...left, ...Array(8 - left.length - right.length).fill(0), ...right]
  return Uint8Array.of(0x60, ...Array(23).fill(0), ...all.flatMap((group) => [group >> 8, group & 255]))
}

function problemsOf(pipeline: Pipeline): { pointer: string; message: string }[] {
  try {
    drive(pipeline).stop()
  } catch (error) {
    if (error instanceof Refused) return error.problems
    throw error
  }
  throw new Error('it was taken')
}

describe('client_id_writer and client_id_reader', () => {
  test.each([0, 1, 0x80000000, LARGEST])('id %i is 4 bytes, big-endian; the reader takes them off', (client_id) => {
    const bench = drive({
      write: { client_id_writer: { input: 'in', output: 'wire', client_id } },
      copy: { splitter: { input: 'wire', outputs: ['seen', 'same', 'other'] } },
      read: { client_id_reader: { input: 'same', output: 'out', client_id } },
      none: { client_id_reader: { input: 'other', output: 'nothing', client_id: (client_id + 1) % 2 ** 32 } },
    })
    bench.send('in', payload(40, 7))
    const [{ bytes }] = bench.received('seen')
    expect(new DataView(bytes.buffer).getUint32(0)).toBe(client_id)
    expect(bench.received('out').map(({ bytes }) => bytes)).toEqual([payload(40, 7)])
    expect(bench.received('nothing')).toEqual([])
    expect(bench.metrics().none.other_client_packets).toBe(1)
    bench.stop()
  })

  test('what is too short is malformed', () => {
    const bench = drive({ read: { client_id_reader: { input: 'in', output: 'out', client_id: 0 } } })
    bench.send('in', [new Uint8Array(3), new Uint8Array(0), new Uint8Array(4)])
    expect(bench.received('out').map(({ bytes }) => bytes.length)).toEqual([0])
    expect(bench.metrics().read.malformed_packets).toBe(2)
    bench.stop()
  })
})

describe('relay_network_lookup', () => {
  const lookup = (client_id: number[]): Pipeline => ({
    relay: {
      relay_network_lookup: {
        network: { input: 'wire', output: 'toNetwork' },
        client: { input: 'forClient', output: 'fromClient' },
        client_id,
      },
    },
  })
  const heard = (id: number, number: number) => {
    const packet = new Uint8Array(12)
    new DataView(packet.buffer).setUint32(0, id)
    new DataView(packet.buffer).setUint32(4, number)
    return packet
  }

  test('what is for a client goes to where it was heard last', () => {
    const bench = drive(lookup([1, LARGEST]))
    bench.send('forClient', payload(8, 1), { client: 1 })
    expect(bench.metrics().relay.unknown_client_packets).toBe(1)
    bench.send('wire', heard(1, 10), { remote: '192.0.2.1:1000' })
    bench.send('wire', heard(LARGEST, 11), { remote: '[2001:db8::1]:2000' })
    expect(bench.received('fromClient')).toMatchObject([
      { client: 1, remote: '192.0.2.1:1000' },
      { client: LARGEST, remote: '[2001:db8::1]:2000' },
    ])
    expect(numbers(bench.received('fromClient'))).toEqual([10, 11])
    bench.send('forClient', payload(8, 2), { client: 1, remote: '203.0.113.1:9' })
    bench.send('forClient', payload(8, 3), { client: LARGEST })
    bench.send('wire', heard(1, 12), { remote: '192.0.2.77:4' })
    bench.send('forClient', payload(8, 4), { client: 1 })
    expect(bench.received('toNetwork').map(({ remote }) => remote)).toEqual([
      '192.0.2.1:1000',
      '[2001:db8::1]:2000',
      '192.0.2.77:4',
    ])
    expect(bench.received('toNetwork').map(({ bytes }) => new DataView(bytes.buffer).getUint32(0))).toEqual([
      1,
      LARGEST,
      1,
    ])
    expect(bench.received('toNetwork').map(({ bytes }) => bytes.subarray(4))).toEqual(
      [2, 3, 4].map((n) => payload(8, n)),
    )
    expect(bench.metrics().relay.known_clients).toBe(2)
    bench.stop()
  })

  test('ids that are not listed, packets without an id or an address, and short ones', () => {
    const bench = drive(lookup([1]))
    bench.send('wire', [heard(2, 1), new Uint8Array(3)], { remote: '192.0.2.1:1' })
    bench.send('wire', heard(1, 2))
    bench.send('forClient', payload(8), { client: 1 })
    bench.send('forClient', payload(8))
    bench.send('forClient', payload(8), { client: 2 })
    expect(numbers(bench.received('fromClient'))).toEqual([2])
    expect(bench.received('toNetwork')).toEqual([])
    expect(bench.metrics().relay).toMatchObject({
      unlisted_client_packets: 1,
      malformed_packets: 1,
      unknown_client_packets: 3,
      known_clients: 0,
    })
    bench.stop()
  })

  test('a change of the list keeps the addresses of those that stay', () => {
    const bench = drive(lookup([1, 2]))
    bench.send('wire', heard(1, 1), { remote: '192.0.2.1:1' })
    bench.send('wire', heard(2, 1), { remote: '192.0.2.2:2' })
    bench.reconfigure(lookup([2, 3]))
    for (const client of [1, 2, 3]) bench.send('forClient', payload(8, client), { client })
    expect(bench.received('toNetwork').map(({ remote }) => remote)).toEqual(['192.0.2.2:2'])
    bench.reconfigure(lookup([1, 2]))
    bench.send('forClient', payload(8), { client: 1 })
    expect(bench.metrics().relay.unknown_client_packets).toBe(3)
    bench.stop()
  })

  test('packets and notifications cross from one side to the other, so that a fabric may lead back to it', () => {
    const bench = drive({
      ...lookup([1, 2]),
      fabric: {
        relay_routing_fabric: {
          input: 'fromClient',
          output: 'forClient',
          fabric_type: 'IP',
          routes: [
            { client_id: 1, route: '10.1.0.0/16' },
            { client_id: 2, route: '10.2.0.0/16' },
          ],
        },
      },
    })
    const from = (id: number, destination: string) => Uint8Array.of(0, 0, 0, id, ...ip(destination))
    bench.send('wire', from(1, '10.2.0.1'), { remote: '192.0.2.1:1' })
    bench.send('wire', from(2, '10.1.0.1'), { remote: '192.0.2.2:2' })
    bench.send('wire', from(1, '10.2.0.9'), { remote: '192.0.2.1:1' })
    expect(bench.received('toNetwork')).toMatchObject([
      { remote: '192.0.2.1:1', client: 1, bytes: from(1, '10.1.0.1') },
      { remote: '192.0.2.2:2', client: 2, bytes: from(2, '10.2.0.9') },
    ])
    expect(bench.metrics().relay.unknown_client_packets).toBe(1)
    bench.notify('wire', 'RESET')
    expect(bench.notifications('toNetwork')).toEqual(['RESET'])
    bench.stop()
  })

  test('a way back from the network side to itself is a loop', () => {
    const circle = { ...lookup([1]), back: { observer: { input: 'fromClient', output: 'forClient' } } }
    drive(circle).stop()
    const problems = problemsOf({ ...circle, again: { observer: { input: 'toNetwork', output: 'wire' } } })
    expect(problems.map(({ message }) => message)).toEqual([expect.stringContaining('packets would go round for ever')])
  })
})

describe('relay_routing_fabric', () => {
  const fabric = (routes: [route: string, client_id: number][]): Pipeline => ({
    fabric: {
      relay_routing_fabric: {
        input: 'in',
        output: 'out',
        fabric_type: 'IP',
        routes: routes.map(([route, client_id]) => ({ route, client_id })),
      },
    },
  })
  const ROUTES: [string, number][] = [
    ['10.0.0.0/8', 1],
    ['10.1.0.0/16', 2],
    ['10.1.2.3', 3],
    ['10.1.2.0/24', LARGEST],
    ['2001:db8::/32', 0],
    ['2001:db8:1::/48', 6],
    ['2001:db8:1::7', 7],
  ]

  test.each([
    ['10.255.0.1', 1],
    ['10.1.255.1', 2],
    ['10.1.2.3', 3],
    ['10.1.2.4', LARGEST],
    ['11.0.0.0', -1],
    ['9.255.255.255', -1],
    ['2001:db8:2::1', 0],
    ['2001:db8:1::1', 6],
    ['2001:db8:1::7', 7],
    ['2001:db9::', -1],
    ['::ffff:a01:203', -1],
  ])('%s is routed to %i', (destination, client) => {
    const bench = drive(fabric(ROUTES))
    bench.send('in', ip(destination), { remote: '192.0.2.1:1', client: 99 })
    const out = bench.received('out')
    if (client < 0) expect(out).toEqual([])
    else expect(out).toMatchObject([{ bytes: ip(destination), client, remote: '192.0.2.1:1' }])
    expect(bench.metrics().fabric).toMatchObject({ unroutable_packets: client < 0 ? 1 : 0, malformed_packets: 0 })
    bench.stop()
  })

  test('what is no IP packet is malformed; without routes nothing has a way', () => {
    const bench = drive(fabric([]))
    bench.send('in', [ip('10.0.0.1'), ip('::1'), new Uint8Array(0), new Uint8Array(60), ip('::1').subarray(0, 39)])
    expect(bench.metrics().fabric).toMatchObject({ unroutable_packets: 2, malformed_packets: 3 })
    bench.stop()
  })

  test('routes can be changed while it runs', () => {
    const bench = drive(fabric([]))
    bench.reconfigure(
      fabric([
        ['0.0.0.0/0', 4],
        ['::/0', 6],
      ]),
    )
    bench.send('in', [ip('10.0.0.1'), ip('::1')])
    expect(bench.received('out').map(({ client }) => client)).toEqual([4, 6])
    bench.stop()
  })

  test.each<[[string, number][], number, string]>([
    [[['10.0.0.0/33', 1]], 0, '"10.0.0.0/33" is no network: write 10.1.0.0/16, 2001:db8::/48 or one address'],
    [[['::/129', 1]], 0, '"::/129" is no network: write 10.1.0.0/16, 2001:db8::/48 or one address'],
    [[['', 1]], 0, '"" is no network: write 10.1.0.0/16, 2001:db8::/48 or one address'],
    [[['fe80::%eth0/64', 1]], 0, '"fe80::%eth0/64" is no network: write 10.1.0.0/16, 2001:db8::/48 or one address'],
    [
      [
        ['10.0.0.0/8', 1],
        ['::a00:0/104', 2],
        ['10.77.0.1/8', 2],
      ],
      2,
      '"10.77.0.1/8" is the network of /routes/0 too; a network is behind one client, so leave one of them out',
    ],
  ])('%o is refused', (routes, at, message) => {
    expect(problemsOf(fabric(routes))).toEqual([
      { pointer: `/engine_config/pipeline/fabric/relay_routing_fabric/routes/${at}/route`, message },
    ])
  })
})
