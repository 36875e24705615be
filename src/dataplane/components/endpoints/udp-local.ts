/** udp_local: a UDP socket at a known address that many peers may send to. */
import { Type } from '@sinclair/typebox'
import { socketAddress } from '../../engine/address.ts'
import { defineComponent } from '../../engine/component.ts'
import { Address, Input, InterfaceName, Mtu, Optional, Output } from '../../engine/schema.ts'
import {
  DATAGRAM_METRICS,
  DatagramEndpoint,
  datagramLimit,
  HOST_NAMES,
  LARGER_LIMIT,
  PATH_MTU,
  SEVERAL_CLIENTS,
  UdpBackend,
  UNHEARD_ERRORS,
  UNREAD_DATAGRAMS,
  unjoinedGroup,
} from './datagram-endpoint.ts'
import { datagramMtu } from './datagram-mtu.ts'

export const udpLocal = defineComponent({
  key: 'udp_local',
  family: 'endpoints',
  summary: 'Receives datagrams at an address and answers the peers they came from.',
  details:
    'Every packet received is annotated with the address it came from; every packet sent goes to the address it is annotated with. Bound to [::] it speaks IPv4 as well. Bound to 0.0.0.0 or [::] on a machine of several addresses it answers a peer from the one at which it was heard last. It hears no multicast group, joined by others on this machine or not: udp joins one. Default MTU: 1472 bytes of payload over IPv4, 1452 over IPv6.\n\n' +
    `${HOST_NAMES}\n\n${SEVERAL_CLIENTS}\n\n${UNHEARD_ERRORS}\n\n${PATH_MTU}\n\n${UNREAD_DATAGRAMS}`,
  config: Type.Object({
    input: Optional(Input('Connection point whose packets are sent to the address they are annotated with.')),
    output: Output('Connection point that gets what is received, annotated with its sender.'),
    mtu: Optional(Mtu('i32')),
    address: Address('Address to bind to; port 0 lets the system choose.'),
    interface: Optional(
      InterfaceName('Network interface to be bound to (SO_BINDTODEVICE); one made anew under its name is followed.'),
    ),
    backend: UdpBackend(),
  }),
  metrics: DATAGRAM_METRICS,
  decoupled: true,
  passes: true,
  mtu: ({ mtu }) => datagramMtu(mtu, 0),
  sends: ({ mtu, address }) => datagramLimit(mtu, address),
  warn: ({ address }) => unjoinedGroup('/address', address),
  create(config, context) {
    const endpoint = new DatagramEndpoint(context, context.outlets.output, {
      mtu: config.mtu,
      local: socketAddress(config.address),
      interface: config.interface,
      backend: config.backend,
      largerBuffer: LARGER_LIMIT,
    })
    return {
      input: (batch) => endpoint.input(batch),
      active: () => endpoint.active,
      flush: () => endpoint.flush(),
      observe: () => endpoint.observe(),
      stop: () => endpoint.stop(),
    }
  },
})
