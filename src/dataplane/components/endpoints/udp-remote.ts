/** udp_remote: a UDP socket that sends each packet to the address the packet itself carries. */
import { Type } from '@sinclair/typebox'
import { defineComponent } from '../../engine/component.ts'
import { Input, InterfaceName, Mtu, Optional, Output } from '../../engine/schema.ts'
import {
  DATAGRAM_METRICS,
  DatagramEndpoint,
  datagramLimit,
  LARGER_LIMIT,
  openForBothFamilies,
  PATH_MTU,
  UdpBackend,
  UNHEARD_ERRORS,
  UNREAD_DATAGRAMS,
} from './datagram-endpoint.ts'
import { datagramMtu } from './datagram-mtu.ts'

export const udpRemote = defineComponent({
  key: 'udp_remote',
  family: 'endpoints',
  summary: 'Sends each packet to the address it is annotated with.',
  details:
    'The annotation comes from peer_writer or from the endpoint that received the packet. One socket at a port of the system’s choice serves IPv4 and IPv6; what comes back to it goes to output. Default MTU: 1472 bytes of payload over IPv4, 1452 over IPv6.\n\n' +
    `${UNHEARD_ERRORS}\n\n${PATH_MTU}\n\n${UNREAD_DATAGRAMS}`,
  config: Type.Object({
    input: Input('Connection point whose packets are sent.'),
    output: Optional(Output('Connection point that gets what comes back, annotated with its sender.')),
    mtu: Optional(Mtu('i32')),
    interface: Optional(
      InterfaceName('Network interface to be bound to (SO_BINDTODEVICE); one made anew under its name is followed.'),
    ),
    backend: UdpBackend(),
  }),
  metrics: DATAGRAM_METRICS,
  decoupled: true,
  passes: true,
  mtu: ({ mtu }) => datagramMtu(mtu, 0),
  sends: ({ mtu }) => datagramLimit(mtu, undefined),
  create(config, context) {
    const endpoint = openForBothFamilies(
      (local) =>
        new DatagramEndpoint(context, context.outlets.output, {
          mtu: config.mtu,
          local,
          interface: config.interface,
          backend: config.backend,
          largerBuffer: LARGER_LIMIT,
        }),
    )
    return {
      input: (batch) => endpoint.input(batch),
      active: () => endpoint.active,
      flush: () => endpoint.flush(),
      observe: () => endpoint.observe(),
      stop: () => endpoint.stop(),
    }
  },
})
