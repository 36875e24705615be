/** peer_writer: tells packets where to go. */
import { Type } from '@sinclair/typebox'
import { portOfAddress, socketAddress } from '../../engine/address.ts'
import { defineComponent } from '../../engine/component.ts'
import { Address, Input, Output } from '../../engine/schema.ts'
import { HOST_NAMES, UNHEARD_ERRORS } from './datagram-endpoint.ts'
import { FollowedRecord } from './followed-record.ts'

export const peerWriter = defineComponent({
  key: 'peer_writer',
  family: 'endpoints',
  summary: 'Annotates every packet with a remote address, for udp_remote or udp_local to send it to.',
  details: `${HOST_NAMES} One that a live change brings is looked up then. An interface that a link-local address names is followed when it is made anew.\n\n${UNHEARD_ERRORS}`,
  config: Type.Object({
    input: Input(),
    output: Output(),
    remote_address: Address('Where the packets are to go.'),
  }),
  metrics: {},
  live: ['remote_address'],
  alters: true,
  addresses: true,
  check({ remote_address }) {
    if (portOfAddress(remote_address) !== 0) return []
    return [{ pointer: '/remote_address', message: 'a peer has a port other than 0' }]
  },
  create(config, context) {
    const { packets, outlets } = context
    const peer = new FollowedRecord(socketAddress(config.remote_address), context)
    return {
      input(batch) {
        const { record } = peer
        for (let i = 0; i < batch.length; i++) packets.setRemote(batch.handles[i], record)
        outlets.output.send(batch)
      },
      verify(next) {
        context.io.remote(socketAddress(next.remote_address))
      },
      reconfigure(next) {
        peer.change(socketAddress(next.remote_address))
      },
    }
  },
})
