/** flow_filter: conditions, filters and fields; headers with options, fragments and what is no IPv4. */
import { describe, expect, test } from 'vitest'
import { drive, type Refused } from '../../../../test/harness/component.ts'

interface Packet {
  protocol?: number
  source?: string
  destination?: string
  ports?: [number, number]
  words?: number
  fragment?: number
  version?: number
}

function packet({ protocol = 6, source = '10.1.2.3', destination = '192.0.2.9', ...more }: Packet = {}): Uint8Array {
  const { ports = [1000, 443], words = 5, fragment = 0, version = 4 } = more
  const bytes = new Uint8Array(words * 4 + 20)
  const view = new DataView(bytes.buffer)
  bytes[0] = (version << 4) | words
  view.setUint16(2, bytes.length)
  view.setUint16(6, fragment)
  bytes[9] = protocol
  bytes.set(source.split('.').map(Number), 12)
  bytes.set(destination.split('.').map(Number), 16)
  view.setUint16(words * 4, ports[0])
  view.setUint16(words * 4 + 2, ports[1])
  return bytes
}

const filtered = (filters: unknown) => ({
  filter: {
    flow_filter: { input: 'in', match_output: 'yes', mismatch_output: 'no', ...(filters !== undefined && { filters }) },
  },
})

/** Whether a filter of these conditions matches. */
function matches(conditions: object[], given: Uint8Array): boolean {
  const bench = drive(filtered([{ conditions }]))
  bench.send('in', given)
  const [yes, no] = [bench.received('yes'), bench.received('no')]
  bench.stop()
  expect(yes.length + no.length).toBe(1)
  expect([...yes, ...no][0].bytes).toEqual(given)
  return yes.length === 1
}

describe('a condition', () => {
  test.each<[object, Packet, boolean]>([
    [{ layer3_protocol: 'TCP' }, { protocol: 6 }, true],
    [{ layer3_protocol: 0 }, { protocol: 6 }, true],
    [{ layer3_protocol: 'TCP' }, { protocol: 17 }, false],
    [{ layer3_protocol: 'UDP' }, { protocol: 17 }, true],
    [{ layer3_source_ip: '10.1.2.3' }, {}, true],
    [{ layer3_source_ip: '10.1.2.4' }, {}, false],
    [{ layer3_source_ip: '10.0.0.0/8' }, {}, true],
    [{ layer3_source_ip: '10.1.2.2/31' }, {}, true],
    [{ layer3_source_ip: '10.1.2.4/30' }, {}, false],
    [{ layer3_source_ip: '10.77.0.1/8' }, {}, true],
    [{ layer3_source_ip: '0.0.0.0/0' }, { source: '255.255.255.255' }, true],
    [{ layer3_destination_ip: '192.0.2.9/32' }, {}, true],
    [{ layer3_destination_ip: '192.0.2.8' }, {}, false],
    [{ layer3_source_ip: '192.0.2.9' }, {}, false],
    [{ layer4_source_port: 1000 }, {}, true],
    [{ layer4_source_port: 443 }, {}, false],
    [{ layer4_destination_port: 443 }, {}, true],
    [{ layer4_destination_port: 443 }, { protocol: 17 }, true],
    [{ layer4_destination_port: 443 }, { protocol: 1 }, false],
    [{ layer4_source_port: 0 }, { ports: [0, 1] }, true],
    [{ layer4_source_port: 0 }, { ports: [1, 0] }, false],
    [{ layer4_destination_port: 443 }, { words: 15 }, true],
    [{ layer4_destination_port: 443 }, { fragment: 0x2000 }, true],
    [{ layer4_destination_port: 443 }, { fragment: 0x2010 }, false],
    [{ layer3_protocol: 'TCP' }, { fragment: 0x2010 }, true],
    [{ layer3_source_ip: '0.0.0.0/0' }, { version: 6, words: 15 }, false],
    [{ layer3_source_ip: '0.0.0.0/0' }, { version: 5 }, false],
    [{ layer3_protocol: 'TCP', layer3_source_ip: '10.0.0.0/8', layer4_destination_port: 443 }, {}, true],
    [{ layer3_protocol: 'UDP', layer3_source_ip: '10.0.0.0/8', layer4_destination_port: 443 }, {}, false],
    [{ layer3_protocol: 'TCP', layer3_source_ip: '10.0.0.0/8', layer4_destination_port: 80 }, {}, false],
  ])('%o and %o: %s', (condition, given, expected) => {
    expect(matches([condition], packet(given))).toBe(expected)
  })

  test('what is no IPv4 packet matches none', () => {
    const all = [{ layer3_source_ip: '0.0.0.0/0' }]
    expect(matches(all, packet())).toBe(true)
    for (const given of [new Uint8Array(0), new Uint8Array(19).fill(0x45), packet({ words: 4 }), Uint8Array.of(0x45)]) {
      expect(matches(all, given)).toBe(false)
    }
  })
})

test('all conditions of a filter must match, one filter is enough, and none match nothing', () => {
  const tcp = { layer3_protocol: 'TCP' }
  const https = { layer4_destination_port: 443 }
  expect(matches([tcp, https], packet())).toBe(true)
  expect(matches([tcp, https], packet({ ports: [1, 2] }))).toBe(false)
  expect(matches([tcp, https], packet({ protocol: 17 }))).toBe(false)
  const bench = drive(filtered([{ conditions: [tcp, https] }, { conditions: [{ layer3_protocol: 'UDP' }] }]))
  bench.send('in', [
    packet(),
    packet({ protocol: 17 }),
    packet({ ports: [1, 2] }),
    packet({ protocol: 1 }),
    new Uint8Array(3),
  ])
  expect(bench.received('yes').map(({ bytes }) => bytes[9])).toEqual([6, 17])
  expect(bench.received('no')).toHaveLength(3)
  expect(bench.metrics().filter).toMatchObject({ matched_packets: 2, not_ipv4_packets: 1 })
  bench.stop()
  for (const none of [[], undefined]) {
    const empty = drive(filtered(none))
    empty.send('in', packet())
    expect(empty.received('no')).toHaveLength(1)
    empty.stop()
  }
})

test('filters can be changed while it runs', () => {
  const bench = drive(filtered([]))
  bench.reconfigure(filtered([{ conditions: [{ layer3_protocol: 'TCP' }] }]))
  bench.send('in', packet())
  expect(bench.received('yes')).toHaveLength(1)
  bench.stop()
})

test.each<[unknown, string, string]>([
  [
    [{ conditions: [{}] }],
    '/filters/0/conditions/0',
    'an empty condition says nothing: give it a protocol, address or port',
  ],
  [[{ conditions: [] }], '/filters/0/conditions', 'needs at least 1 entry'],
  [
    [{ conditions: [{ layer3_source_ip: '2001:db8::1' }] }],
    '/filters/0/conditions/0/layer3_source_ip',
    '"2001:db8::1" is of IPv6, and only IPv4 is told apart: write 192.0.2.1 or 192.0.2.0/24',
  ],
  [
    [{ conditions: [{ layer3_protocol: 'TCP', layer3_destination_ip: '10.0.0.0/33' }] }],
    '/filters/0/conditions/0/layer3_destination_ip',
    '"10.0.0.0/33" is no IPv4 address or network: write 192.0.2.1 or 192.0.2.0/24',
  ],
  [
    [{ conditions: [{ layer4_source_port: 65_536 }] }],
    '/filters/0/conditions/0/layer4_source_port',
    '65536 is above the maximum of 65535',
  ],
])('%o is refused', (filters, pointer, message) => {
  try {
    drive(filtered(filters))
    expect.fail('it was taken')
  } catch (error) {
    expect((error as Refused).problems).toEqual([
      { pointer: `/engine_config/pipeline/filter/flow_filter${pointer}`, message },
    ])
  }
})
