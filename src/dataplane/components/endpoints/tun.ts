/** tun: a network interface of the machine whose IP packets go through the graph. */
import { Type } from '@sinclair/typebox'
import { defineComponent } from '../../engine/component.ts'
import { counter } from '../../engine/metrics.ts'
import { Bool, Mtu } from '../../engine/schema.ts'
import { IO_COUNTERS } from '../../native/socket-calls.ts'
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

const MALFORMED = IO_COUNTERS.indexOf('malformed')

export const tun = defineComponent({
  key: 'tun',
  family: 'endpoints',
  summary:
    'Creates a TUN interface: what the machine routes into it goes out, what comes in is received by the machine.',
  details: `${INTERFACE_LIFE} With generic_offload the machine hands over large TCP and UDP packets in one piece, which are cut to the MTU here, and packets of one flow are joined on their way back. ${interfaceFound('tun')}\n\n${unreadPackets('500')}`,
  config: Type.Object({
    ...interfaceFields('IP packets'),
    generic_offload: Bool('Exchange large packets with the machine (GSO, GRO).', { default: false }),
    mtu: Mtu('u32', { default: DEFAULT_MTU }),
  }),
  metrics: {
    ...ENDPOINT_METRICS,
    malformed_packets: counter('Large packets from the machine that could not be cut.', 'packets'),
  },
  decoupled: true,
  mtu: ({ mtu }) => mtu,
  sends: ({ mtu }) => mtu,
  check: interfaceFaults,
  warn: (config, graph) => interfaceWarnings(config, 0, graph),
  create(config, context) {
    const { packets, clock, log, metrics, outlets } = context
    const { mtu, generic_offload: offload } = config
    const options = { packets, clock, log, metrics, outlet: outlets.output, mtu }
    const endpoint = openInterface(options, { kind: 'tun', config, offload, context })
    let malformed = 0
    return {
      input: (batch) => endpoint.enqueue(batch),
      active: () => endpoint.active,
      flush: () => endpoint.flush(),
      observe() {
        endpoint.observe()
        const now = endpoint.io.counters[MALFORMED]
        metrics.malformed_packets.add(now - malformed)
        malformed = now
      },
      stop: () => endpoint.stop(),
    }
  },
})
