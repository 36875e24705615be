/** tap: a network interface of the machine whose Ethernet frames go through the graph. */
import { Type } from '@sinclair/typebox'
import { defineComponent } from '../../engine/component.ts'
import { Uint32, ZERO_UNSET } from '../../engine/schema.ts'
import { ENDPOINT_METRICS } from './endpoint.ts'
import {
  DEFAULT_MTU,
  INTERFACE_LIFE,
  interfaceFaults,
  interfaceFields,
  interfaceFound,
  interfaceWarnings,
  openInterface,
  unreadPackets,
} from './interface-endpoint.ts'

/** Two addresses and an EtherType (IEEE 802.3). */
const HEADER_BYTES = 14
/** One VLAN tag (IEEE 802.1Q). */
const VLAN_BYTES = 4

/** With two tags, of a provider and a customer: more Linux does not send of a packet of the whole MTU. No packet here has more than 65,535 bytes. */
const longestFrame = ({ mtu }: { mtu: number }): number => Math.min(mtu + HEADER_BYTES + 2 * VLAN_BYTES, 65_535)

export const tap = defineComponent({
  key: 'tap',
  family: 'endpoints',
  summary:
    'Creates a TAP interface: Ethernet frames the machine sends into it go out, what comes in is received by the machine.',
  details: `A packet is one frame, from the destination address on and without the frame check sequence; ARP, IPv6 neighbour discovery, broadcasts and what a bridge passes on are among them. The longest frame is 22 bytes longer than the MTU: header and two VLAN tags. What a tunnel writes around a frame comes on top. ${INTERFACE_LIFE} Until the machine is started anew each run gives an interface of the same name and ip the same hardware address, in another network namespace another one: who knows it reaches the interface at once after a restart. ${interfaceFound('tap')}

Two of them joined by a tunnel are one Ethernet segment. A bridge at each end and a second way between the two makes a loop in which a broadcast goes round for ever: let the bridges run the spanning tree protocol.

${unreadPackets('1,000')}`,
  config: Type.Object({
    ...interfaceFields('Ethernet frames'),
    mtu: Uint32(
      'Largest IP packet in a frame; frames over 22 bytes more are dropped and counted, and none has more than 65,535.',
      {
        minimum: 68,
        maximum: 65_517,
        unit: 'bytes',
        ...ZERO_UNSET,
        default: DEFAULT_MTU,
      },
    ),
  }),
  metrics: ENDPOINT_METRICS,
  decoupled: true,
  mtu: longestFrame,
  sends: longestFrame,
  check: interfaceFaults,
  // VLAN tags are the exception.
  warn: (config, graph) => interfaceWarnings(config, HEADER_BYTES, graph),
  create(config, context) {
    const { packets, clock, log, metrics, outlets } = context
    const options = { packets, clock, log, metrics, outlet: outlets.output, mtu: longestFrame(config) }
    const endpoint = openInterface(options, { kind: 'tap', config, offload: false, context })
    return {
      input: (batch) => endpoint.enqueue(batch),
      active: () => endpoint.active,
      flush: () => endpoint.flush(),
      observe: () => endpoint.observe(),
      stop: () => endpoint.stop(),
    }
  },
})
