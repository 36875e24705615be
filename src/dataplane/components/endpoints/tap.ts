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

/** Two addresses, an EtherType and one VLAN tag (IEEE 802.3, 802.1Q). */
const FRAME_BYTES = 18
/** The same without the tag. */
const HEADER_BYTES = 14

export const tap = defineComponent({
  key: 'tap',
  family: 'endpoints',
  summary:
    'Creates a TAP interface: Ethernet frames the machine sends into it go out, what comes in is received by the machine.',
  details: `A packet is one frame, from the destination address on and without the frame check sequence; ARP, IPv6 neighbour discovery, broadcasts and what a bridge passes on are among them. The longest frame is 18 bytes longer than the MTU: header and one VLAN tag. What a tunnel writes around a frame comes on top. ${INTERFACE_LIFE} Until the machine is started anew each run gives an interface of the same name and ip the same hardware address, in another network namespace another one: who knows it reaches the interface at once after a restart. ${interfaceFound('tap')}

Two of them joined by a tunnel are one Ethernet segment. A bridge at each end and a second way between the two makes a loop in which a broadcast goes round for ever: let the bridges run the spanning tree protocol.

${unreadPackets('1,000')}`,
  config: Type.Object({
    ...interfaceFields('Ethernet frames'),
    mtu: Uint32(
      'Largest IP packet in a frame; frames over 18 bytes more are dropped and counted, and none has more than 65,535.',
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
  mtu: ({ mtu }) => mtu + FRAME_BYTES,
  sends: ({ mtu }) => mtu + FRAME_BYTES,
  check: interfaceFaults,
  // VLAN tags are the exception.
  warn: (config, graph) => interfaceWarnings(config, HEADER_BYTES, graph),
  create(config, context) {
    const { packets, clock, log, metrics, outlets } = context
    const options = { packets, clock, log, metrics, outlet: outlets.output, mtu: config.mtu + FRAME_BYTES }
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
