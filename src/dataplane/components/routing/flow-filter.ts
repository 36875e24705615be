/** flow_filter: parts packets by what their IPv4, TCP and UDP headers say. */
import { type Static, Type } from '@sinclair/typebox'
import { IpHeader, TCP, UDP } from '../../codes/ip-header.ts'
import { masked, maskOf, type Prefix } from '../../codes/prefix-table.ts'
import { defineComponent, type Fault } from '../../engine/component.ts'
import { counter } from '../../engine/metrics.ts'
import { Enumeration, Input, List, Optional, Output, Text, Uint32 } from '../../engine/schema.ts'
import { isV4, parseCidr } from './cidr.ts'

const PROTOCOLS = { TCP, UDP } as const

const network = (side: string) => Optional(Text(`${side} address, or network as 10.0.0.0/8.`, { maxLength: 45 }))
const port = (side: string) => Optional(Uint32(`${side} port, of TCP or UDP.`, { maximum: 65_535 }))

const Condition = Type.Object({
  layer3_protocol: Optional(
    Enumeration('Protocol in the IP packet.', 'FlowFilterLayer3ProtocolCondition', { TCP: 0, UDP: 1 }),
  ),
  layer3_source_ip: network('Source'),
  layer3_destination_ip: network('Destination'),
  layer4_source_port: port('Source'),
  layer4_destination_port: port('Destination'),
})

const config = Type.Object({
  input: Input(),
  match_output: Output('Connection point that gets what any filter matches.'),
  mismatch_output: Output('Connection point that gets all else.'),
  filters: List(
    Type.Object({ conditions: List(Condition, 'What a packet must have, all of it.') }),
    'Filters; one that matches is enough.',
    { minItems: 0, default: [] },
  ),
})

type Config = Static<typeof config>

/** What all fields of one condition ask for. */
class Match {
  private readonly protocol: number
  private readonly source: Prefix
  private readonly destination: Prefix
  private readonly sourcePort: number
  private readonly destinationPort: number

  constructor(condition: Static<typeof Condition>) {
    const { layer3_protocol: protocol, layer3_source_ip: source, layer3_destination_ip: destination } = condition
    this.protocol = protocol === undefined ? -1 : PROTOCOLS[protocol]
    this.source = prefixOf(source)
    this.destination = prefixOf(destination)
    this.sourcePort = condition.layer4_source_port ?? -1
    this.destinationPort = condition.layer4_destination_port ?? -1
  }

  fits(header: IpHeader, sourcePort: number, destinationPort: number): boolean {
    return (
      (this.protocol < 0 || this.protocol === header.protocol) &&
      (this.sourcePort < 0 || this.sourcePort === sourcePort) &&
      (this.destinationPort < 0 || this.destinationPort === destinationPort) &&
      isIn(this.source, header.source) &&
      isIn(this.destination, header.destination)
    )
  }
}

function isIn({ address, bits }: Prefix, other: Uint32Array): boolean {
  return (((address[0] ^ other[0]) & maskOf(bits)) | 0) === 0
}

/** Of a network that has been checked; of none, all addresses. */
function prefixOf(text = '0.0.0.0/0'): Prefix {
  const prefix = parseCidr(text) as Prefix
  return { address: masked(prefix), bits: prefix.bits }
}

const matchesOf = ({ filters }: Config) => filters.map(({ conditions }) => conditions.map((one) => new Match(one)))

/** Whether one of `filters` matches: all of its conditions do. */
function anyMatches(filters: readonly (readonly Match[])[], header: IpHeader, view: DataView): boolean {
  const { portsAt } = header
  const sourcePort = portsAt < 0 ? -2 : view.getUint16(portsAt)
  const destinationPort = portsAt < 0 ? -2 : view.getUint16(portsAt + 2)
  for (let i = 0; i < filters.length; i++) {
    const conditions = filters[i]
    let n = 0
    while (n < conditions.length && conditions[n].fits(header, sourcePort, destinationPort)) n++
    if (n === conditions.length) return true
  }
  return false
}

function faultsOf({ filters }: Config): Fault[] {
  const faults: Fault[] = []
  filters.forEach(({ conditions }, i) => {
    conditions.forEach((condition, n) => {
      const pointer = `/filters/${i}/conditions/${n}`
      if (Object.keys(condition).length === 0) {
        faults.push({ pointer, message: 'an empty condition says nothing: give it a protocol, address or port' })
      }
      for (const field of ['layer3_source_ip', 'layer3_destination_ip'] as const) {
        const text = condition[field]
        if (text === undefined) continue
        const prefix = parseCidr(text)
        if (prefix && isV4(prefix)) continue
        const what = prefix ? 'is of IPv6, and only IPv4 is told apart' : 'is no IPv4 address or network'
        faults.push({ pointer: `${pointer}/${field}`, message: `"${text}" ${what}: write 192.0.2.1 or 192.0.2.0/24` })
      }
    })
  })
  return faults
}

export const flowFilter = defineComponent({
  key: 'flow_filter',
  family: 'routing',
  summary: 'Parts IPv4 packets by protocol, addresses and ports.',
  details:
    'Each packet is an IP packet, as from tun. It goes to match_output when all conditions of any filter match, else to mismatch_output; ' +
    'of a condition all fields that are given must match. Bits of a network behind its prefix length mean nothing (10.1.2.3/8 is 10.0.0.0/8). ' +
    'What is not IPv4 never matches. Only the first fragment of a fragmented packet has ports, so the later ones match no condition with a port; ' +
    'the same is true of packets that are neither TCP nor UDP. Without filters nothing matches.',
  config,
  metrics: {
    matched_packets: counter('Packets that a filter matched.', 'packets'),
    not_ipv4_packets: counter('Packets sent to mismatch_output because they are not IPv4.', 'packets'),
  },
  live: ['filters'],
  check: faultsOf,
  create(config, { packets, outlets, metrics }) {
    const header = new IpHeader()
    let filters = matchesOf(config)
    const { match_output, mismatch_output } = outlets
    return {
      input({ handles, length }) {
        const { view } = packets
        let matched = 0
        for (let i = 0; i < length; i++) {
          const packet = handles[i]
          const isIPv4 = header.read(view, packets.offset[packet], packets.length[packet]) && header.version === 4
          if (!isIPv4) metrics.not_ipv4_packets.add(1)
          if (isIPv4 && anyMatches(filters, header, view)) {
            matched++
            match_output.push(packet)
          } else mismatch_output.push(packet)
        }
        metrics.matched_packets.add(matched)
        match_output.flush()
        mismatch_output.flush()
      },
      reconfigure(next) {
        filters = matchesOf(next)
      },
    }
  },
})
