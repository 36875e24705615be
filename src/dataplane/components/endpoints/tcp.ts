/** tcp: a listener or a connection, whose bytes are a stream or frames. */
import { Type } from '@sinclair/typebox'
import { portOfAddress, socketAddress } from '../../engine/address.ts'
import { defineComponent, type Fault } from '../../engine/component.ts'
import { counter, gauge } from '../../engine/metrics.ts'
import { Address, Bool, Input, Optional, Output } from '../../engine/schema.ts'
import { ConnectionEndpoint } from './connection-endpoint.ts'
import { CONNECTION_METRICS } from './connection-metrics.ts'
import { MAX_PIECE_BYTES } from './connection-receiving.ts'
import { HOST_NAMES } from './datagram-endpoint.ts'
import { TcpPeers } from './tcp-peers.ts'

/** Longest frame, as its length field is read. */
const MAX_FRAME = 65_535

export const tcp = defineComponent({
  key: 'tcp',
  family: 'endpoints',
  summary: 'Carries packets over TCP: as a plain byte stream for applications, or as frames between two of its kind.',
  details: `With listen_address it takes up to 1,024 connections; with remote_address it makes one and makes it again when it ends, after 10 ms at first and at most 10 s. What is to be sent meanwhile waits in the queue.

application_facing true: a plain byte stream. Reads of up to 1,200 bytes are packets, and how the bytes were written does not matter; those sent as urgent data are bytes like the others. While every packet slot is full it is not read, which slows its application down.

Where all that is read ends at other connections of the run, unaltered (tcp, delay, link, tcp), nothing is lost for want of room: of one stream 4,096 packets at most are on their way (with many connections fewer, all together an eighth of the packet slots), and it is read again as the connection that it leads to takes them. What is read of a tcp with application_facing false waits in the same way where it ends at streams only. That is 4.9 MB of a stream: over a delay of 40 ms some 980 Mbit/s, over 1 s 39 Mbit/s. The packets are numbered, and a hole does not pass as data: where a packet was lost or overtaken, as by emulated loss or a link with a max_queue_size, both connections are reset with a WARN that says why (reset_connections), and what comes of the stream until its end is discarded (broken_stream_packets). So is what was on its way to a connection that has ended: its rest would pass as the beginning of the next. Of the end of a stream a loss is seen within some 2 s after it.

In all other graphs, as with a code, encryption or UDP in between, and for what UDP receives, a connection has a queue of 256 KiB for what is sent to it, and while that is full it is not read. Bytes that find the queue full, or wait in it when the connection ends, are lost, and the connection is reset; of one that has not come about yet all that waits is dropped, and connecting goes on. Loss on the way here cannot be seen: put a component in front that repairs and orders packets, such as a decoder that releases in order.

When an application has finished sending (shutdown) it can still be answered; 10 s after the last answer the connection is closed. The end of a stream does not travel with the packets, nor does it end the connection that the stream leads to: what the next client says follows over the same.

application_facing false: frames, a length of 4 bytes before each packet, so that packets arrive as they were sent (docs/wire-formats.md). Frames for which there is no room are dropped whole, the first with a WARN; streams that are numbered wait instead (above). At the far end a hole in a stream that such a drop or a new connection has made cannot be seen. A length of 0 or over 65,535 closes the connection (malformed_packets).

Packets received carry the address of the other end. Of a listener, a packet to be sent goes to the connection whose address it carries, and is dropped and counted where there is none (unconnected_packets); one without an address goes to the newest connection. So does what another socket of the pipeline has received, as at the end of a tunnel: its address, of that socket’s peer, says nothing of whom it is for here. With remote_address every packet goes there.

A link-local address (fe80::) takes the interface it is on, as [fe80::1%eth0]:5000; one that is deleted and made anew under its name is followed, and one that is renamed is used on until another has that name.

${HOST_NAMES}`,
  config: Type.Object({
    input: Optional(Input('Connection point whose packets are sent.')),
    output: Optional(Output('Connection point that gets what is received.')),
    listen_address: Optional(Address('Address to listen at; port 0 lets the system choose.')),
    remote_address: Optional(Address('Address to connect to.')),
    application_facing: Bool('A plain byte stream, for an application; else frames that keep packets apart.', {
      default: false,
    }),
  }),
  metrics: {
    ...CONNECTION_METRICS,
    malformed_packets: counter('Lengths that no frame has; each ended its connection.', 'packets'),
    local_port: gauge('Port that is listened at.'),
  },
  decoupled: true,
  connects: ({ application_facing }) => (application_facing ? 'stream' : 'packets'),
  mtu: ({ application_facing }) => (application_facing ? MAX_PIECE_BYTES : MAX_FRAME),
  check({ input, output, listen_address, remote_address }) {
    const faults: Fault[] = []
    if (!input && !output) {
      faults.push({ pointer: '', message: 'neither input nor output is set: the connections would have nothing to do' })
    }
    if ((listen_address === undefined) === (remote_address === undefined)) {
      const both = listen_address !== undefined
      faults.push({
        pointer: both ? '/remote_address' : '',
        message: both
          ? 'listen_address is set as well: leave one of them out'
          : 'listen_address or remote_address is needed: one of them',
      })
    }
    if (remote_address !== undefined && portOfAddress(remote_address) === 0) {
      faults.push({ pointer: '/remote_address', message: 'a peer has a port other than 0' })
    }
    return faults
  },
  create(config, context) {
    const { listen_address, remote_address, application_facing } = config
    const { metrics, outlets, packets, log } = context
    const { address, port } = socketAddress((listen_address ?? remote_address) as string)
    const endpoint = new ConnectionEndpoint(context, {
      outlet: outlets.output,
      sends: config.input !== undefined,
      framing: application_facing ? 'stream' : 'frames',
      numbered: context.endsAtConnections(application_facing === true),
      socket: { kind: 'tcp', address, port, framed: !application_facing },
      ...(listen_address !== undefined && { peers: new TcpPeers(packets, context.foreignAddresses()) }),
    })
    if (listen_address !== undefined) {
      log('INFO', `listens at ${endpoint.name}`, { address: endpoint.name })
      metrics.local_port.set(Number(endpoint.name.slice(endpoint.name.lastIndexOf(':') + 1)))
    }
    let malformed = 0
    return {
      input: (batch) => endpoint.send(batch),
      active: () => endpoint.active,
      flush: () => endpoint.flush(),
      observe() {
        endpoint.observe()
        metrics.malformed_packets.add(endpoint.malformed - malformed)
        malformed = endpoint.malformed
      },
      stop: () => endpoint.stop(),
    }
  },
})
