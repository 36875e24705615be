/** udp: one UDP socket with one peer, or answering whoever sent. */
import { Type } from '@sinclair/typebox'
import { parseSocketAddress, portOfAddress, socketAddress } from '../../engine/address.ts'
import { defineComponent, type Fault } from '../../engine/component.ts'
import type { SocketAddress } from '../../engine/io.ts'
import {
  Address,
  Bool,
  Input,
  Int32,
  InterfaceName,
  Mtu,
  Optional,
  Output,
  Text,
  Uint32,
  ZERO_UNSET,
} from '../../engine/schema.ts'
import {
  DATAGRAM_METRICS,
  DatagramEndpoint,
  datagramLimit,
  HOST_NAMES,
  isMulticast,
  openForBothFamilies,
  PATH_MTU,
  SEVERAL_CLIENTS,
  UNHEARD_ERRORS,
  UNREAD_DATAGRAMS,
  unheardGroup,
  unjoinedGroup,
} from './datagram-endpoint.ts'
import { datagramMtu } from './datagram-mtu.ts'

export const udp = defineComponent({
  key: 'udp',
  family: 'endpoints',
  summary: 'Sends and receives datagrams on one UDP socket.',
  details:
    'With remote_address every packet goes there and only that peer is heard: the kernel drops what others send, uncounted (a multicast group is sent to, anybody is heard). Without it a packet goes to the remote address it is annotated with, which a packet received here carries through the graph (at a given port of 0.0.0.0 or [::], from the address of this machine at which that peer was heard last); with lock_to_first_peer everything goes to the first peer heard, and datagrams of others are dropped and counted, with a WARN in the run log that names a sender, once a minute while it goes on: the peer itself when its address has changed, or a NAT on the way has given it another port. Set while it runs, it is the first peer heard from then on; unset, the peer is forgotten. With neither address the socket is at a port of the system’s choice, sends to annotated addresses, IPv4 and IPv6, and hears what comes back. A link-local address (fe80::) and a group of one link (ff02::) take the interface they are on: in the address, as [fe80::1%eth0]:5000, or in the field interface. An interface that is deleted and made anew under its name is followed, one on which a group was joined too; one that is renamed is used on, with a WARN, until another has that name. A socket with remote_address and no particular local_address (none, or 0.0.0.0 or [::] with a port) follows the way to its peer: when the address it sends from is gone, or a route to the peer begins at another one (from the wireless LAN to the mobile network, say), it sends from there within a quarter of a second, at the same port, and the log says from where; one with a particular local_address stays there. The socket hears of the groups that are joined on this machine only its own. The socket uses UDP_GRO and UDP_SEGMENT where the kernel has them. Default MTU: 1472 bytes of payload over IPv4, 1452 over IPv6.\n\n' +
    `${HOST_NAMES}\n\n${SEVERAL_CLIENTS}\n\n${UNHEARD_ERRORS}\n\n${PATH_MTU}\n\n${UNREAD_DATAGRAMS}\n\n` +
    'Joining output to input with nothing between that changes a packet or its address makes an echo: two of them answer each other for ever. `penstock validate` warns of it.',
  config: Type.Object({
    input: Optional(Input('Connection point whose packets are sent.')),
    output: Optional(Output('Connection point that gets what is received.')),
    local_address: Optional(
      Address(
        'Address to bind to; port 0 lets the system choose. With 0.0.0.0 or [::] a socket that has a remote_address sends from where the way there begins, also when that changes.',
      ),
    ),
    remote_address: Optional(Address('The peer.')),
    interface: Optional(
      InterfaceName('Network interface to be bound to (SO_BINDTODEVICE); one made anew under its name is followed.'),
    ),
    mtu: Optional(Mtu('i32')),
    socket_buffer_size: Optional(
      Int32(
        'Size of the socket buffers in each direction (8 MiB when unset); Linux keeps twice as much, so half of 2³¹ is the most.',
        {
          minimum: 1,
          maximum: 1_073_741_823,
          unit: 'bytes',
          ...ZERO_UNSET,
        },
      ),
    ),
    multicast_ttl: Optional(
      Uint32('Routers that multicast datagrams may pass; the field of IP has 8 bits.', { maximum: 255, unit: 'hops' }),
    ),
    multicast_group: Optional(
      Text(
        'Multicast group to join. What is sent to it is heard where local_address is that of the group, or 0.0.0.0 or [::] and there is no remote_address but a group’s.',
        { format: 'ip', maxLength: 45 },
      ),
    ),
    lock_to_first_peer: Bool('Hear and answer nobody but the first peer heard.', { default: false }),
  }),
  metrics: DATAGRAM_METRICS,
  live: ['socket_buffer_size', 'multicast_ttl', 'lock_to_first_peer'],
  decoupled: true,
  passes: true,
  mtu: ({ mtu }) => datagramMtu(mtu, 0),
  sends: ({ mtu, remote_address, local_address }) => datagramLimit(mtu, remote_address ?? local_address),
  check(config) {
    const faults: Fault[] = []
    const local = config.local_address === undefined ? null : parseSocketAddress(config.local_address)
    const remote = config.remote_address === undefined ? null : parseSocketAddress(config.remote_address)
    const group = config.multicast_group
    if (!config.input && !config.output) {
      faults.push({ pointer: '', message: 'neither input nor output is set: the socket would have nothing to do' })
    }
    if (config.remote_address !== undefined && portOfAddress(config.remote_address) === 0)
      faults.push({ pointer: '/remote_address', message: 'a peer has a port other than 0' })
    if (local && remote && local.family !== remote.family) {
      faults.push({
        pointer: '/remote_address',
        message: `is IPv${remote.family}, but local_address is IPv${local.family}: both must be of one family`,
      })
    }
    if (config.remote_address !== undefined && config.lock_to_first_peer) {
      faults.push({
        pointer: '/lock_to_first_peer',
        message: 'the peer is given by remote_address; leave one of them out',
      })
    }
    if (group !== undefined) {
      const family = group.includes(':') ? 6 : 4
      if (!isMulticast(group)) {
        faults.push({
          pointer: '/multicast_group',
          message: `"${group}" is no multicast address (224.0.0.0 to 239.255.255.255, or ff00::/8)`,
        })
      }
      if (config.local_address === undefined) {
        faults.push({
          pointer: '/multicast_group',
          message: 'local_address is needed as well: its port is where the group is heard',
        })
      } else if (local && local.family !== family) {
        faults.push({
          pointer: '/multicast_group',
          message: `is IPv${family}, but local_address is IPv${local.family}`,
        })
      }
    }
    return faults
  },
  warn(config, { comesBack }) {
    const { output, local_address: local, remote_address: remote, multicast_group: group } = config
    const unheard = output ? unjoinedGroup('/local_address', local, group) : []
    if (output && group !== undefined) unheard.push(...unheardGroup(group, local, remote))
    if (!comesBack) return unheard
    const what = 'what is received at output comes back here unchanged: every datagram is answered with itself'
    const risk = 'and between two sockets that do so one datagram goes round for ever, as fast as the machines can'
    return [...unheard, { pointer: '/input', message: `${what}, ${risk}` }]
  },
  create(config, context) {
    const { local_address, remote_address } = config
    const remote = remote_address === undefined ? undefined : socketAddress(remote_address)
    const open = (local: SocketAddress | undefined) =>
      new DatagramEndpoint(context, context.outlets.output, {
        mtu: config.mtu,
        local,
        remote,
        lock: config.lock_to_first_peer,
        interface: config.interface,
        bufferBytes: config.socket_buffer_size,
        multicastGroup: config.multicast_group,
        multicastTtl: config.multicast_ttl,
        largerBuffer:
          'set a larger socket_buffer_size, which takes CAP_NET_ADMIN or a larger net.core.rmem_max (sysctl)',
      })
    const local = local_address === undefined ? undefined : socketAddress(local_address)
    const endpoint = local || remote ? open(local) : openForBothFamilies(open)
    return {
      input: (batch) => endpoint.input(batch),
      active: () => endpoint.active,
      flush: () => endpoint.flush(),
      observe: () => endpoint.observe(),
      reconfigure: (next) =>
        endpoint.tune({
          lock: next.lock_to_first_peer,
          bufferBytes: next.socket_buffer_size,
          multicastTtl: next.multicast_ttl,
        }),
      stop: () => endpoint.stop(),
    }
  },
})
