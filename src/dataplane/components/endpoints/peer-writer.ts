/** peer_writer: tells packets where to go. */
import { Type } from '@sinclair/typebox'
import { portOfAddress, socketAddress } from '../../engine/address.ts'
import { defineComponent } from '../../engine/component.ts'
import { Address, Input, Output } from '../../engine/schema.ts'
import { HOST_NAMES } from './datagram-endpoint.ts'

export const peerWriter = defineComponent({
  key: 'peer_writer',
  family: 'endpoints',
  summary: 'Annotates every packet with a remote address, for udp_remote or udp_local to send it to.',
  details: `${HOST_NAMES} One that a live change brings is looked up then.`,
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
  create(config, { packets, outlets, io }) {
    let record = io.remote(socketAddress(config.remote_address))
    return {
      input(batch) {
        for (let i = 0; i < batch.length; i++) packets.setRemote(batch.handles[i], record)
        outlets.output.send(batch)
      },
      reconfigure(next) {
        record = io.remote(socketAddress(next.remote_address))
      },
    }
  },
})
