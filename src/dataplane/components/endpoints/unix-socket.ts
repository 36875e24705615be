/** unix_socket: packets to and from other programs of this machine, over a Unix socket that keeps them apart. */
import { Type } from '@sinclair/typebox'
import { defineComponent, type Fault } from '../../engine/component.ts'
import { drop } from '../../engine/metrics.ts'
import { Input, Int32, Mtu, Optional, Output, SocketName } from '../../engine/schema.ts'
import { ConnectionEndpoint } from './connection-endpoint.ts'
import { CONNECTION_METRICS } from './connection-metrics.ts'
import { clientName, isAbstract, isOwnUser, UnixPeers } from './unix-peers.ts'
import { oversizeUntaken, UNTAKEN_METRICS } from './untaken.ts'

/** Bytes of a name (unix(7)). */
const MAX_NAME_BYTES = 107
const WAYS = 'a path (x.sock, /run/x.sock) or an abstract name (@x)'

const Name = (description: string) => SocketName(description, MAX_NAME_BYTES)

/** What is wrong with the name of a socket. */
function nameFaults(pointer: string, name: string): Fault[] {
  const bytes = Buffer.byteLength(name)
  if (name === '@') return [{ pointer, message: `"@" is neither ${WAYS}` }]
  if (bytes <= MAX_NAME_BYTES) return []
  const message = `"${name}" has ${bytes} bytes, more than the ${MAX_NAME_BYTES} that a socket's name can have: shorten it, or name it in a directory with a shorter path`
  return [{ pointer, message }]
}

export const unixSocket = defineComponent({
  key: 'unix_socket',
  family: 'endpoints',
  summary: 'Exchanges packets with programs of this machine over a Unix socket (SOCK_SEQPACKET).',
  details: `One side is the server, which takes up to 1,024 clients; a client connects, and connects again when the server has gone, after 10 ms at first and at most 10 s. Each packet is one of the socket's: what is longer than the MTU is dropped and counted at both ends, and packets of no bytes are not sent (empty_packets), since they read as the end of a connection. For each client 256 KiB wait when it does not read; what comes on top is dropped.

Names are ${WAYS}. A path is taken as that of a file: relative to the node's directory of files, and one outside of that only from whom the node trusts (docs/configurations.md). A client with bind_address N over 0 has the abstract name @N.SERVER, SERVER being the server's name, a path in full; packets that the server receives from it carry N as client id, and packets with client id N go to it. Packets with an id that no client has are dropped; those without an id go to the newest client. A client with bind_address 0 has no id.

A name proves nothing about who is behind it: any program of the user can take any id. A path is made with mode 0600, so that its user and root alone can connect; on an abstract name peers of the same user only are spoken to, others are closed at once (refused_connections). The socket file of a server that was killed is replaced at the next start; where somebody still listens the start fails.`,
  config: Type.Object(
    {
      input: Optional(Input('Connection point whose packets are sent.')),
      output: Optional(Output('Connection point that gets what is received.')),
      mtu: Optional(Mtu('u32', { default: 65_535 })),
      server: Optional(
        Type.Object(
          { listen_address: Name(`Name to listen at: ${WAYS}.`) },
          { description: 'Takes clients.', proto: 'UnixSocketServerOptions' },
        ),
      ),
      client: Optional(
        Type.Object(
          {
            server_address: Name(`Name of the server: ${WAYS}.`),
            bind_address: Int32('Client id that the server knows this client by; 0 for none.', {
              minimum: 0,
              default: 0,
            }),
          },
          { description: 'Connects to a server.', proto: 'UnixSocketClientOptions' },
        ),
      ),
    },
    { exactlyOne: ['server', 'client'] },
  ),
  metrics: {
    ...CONNECTION_METRICS,
    oversize_packets: drop('Packets to send that were longer than the MTU.'),
    received_oversize_packets: UNTAKEN_METRICS.received_oversize_packets,
  },
  decoupled: true,
  connects: () => 'packets',
  mtu: ({ mtu = 65_535 }) => mtu,
  sends: ({ mtu = 65_535 }) => mtu,
  check({ input, output, server, client }) {
    const faults: Fault[] = []
    if (!input && !output) {
      faults.push({ pointer: '', message: 'neither input nor output is set: the socket would have nothing to do' })
    }
    if ((server === undefined) === (client === undefined)) {
      const message = server ? 'server and client are both set: leave one of them out' : 'server or client is needed'
      faults.push({ pointer: '', message })
    }
    if (server) faults.push(...nameFaults('/server/listen_address', server.listen_address))
    if (client) {
      const { server_address, bind_address } = client
      faults.push(...nameFaults('/client/server_address', server_address))
      const own = Buffer.byteLength(clientName(bind_address, server_address))
      if (bind_address > 0 && own > MAX_NAME_BYTES) {
        faults.push({
          pointer: '/client/bind_address',
          message: `makes the client's own name, @${bind_address}. and server_address, ${own} bytes long, more than ${MAX_NAME_BYTES}: shorten server_address`,
        })
      }
    }
    return faults
  },
  create(config, context) {
    const { server, client, mtu = 65_535 } = config
    const { packets, metrics, outlets, log } = context
    const name = (server?.listen_address ?? client?.server_address) as string
    const id = client?.bind_address ?? 0
    const endpoint = new ConnectionEndpoint(context, {
      outlet: outlets.output,
      sends: config.input !== undefined,
      framing: 'packets',
      numbered: false,
      socket: { kind: 'unix', name, mtu, ...(id > 0 && { bind: clientName(id, name) }) },
      ...(server && { peers: new UnixPeers(packets, name) }),
      ...(isAbstract(name) && { trusts: isOwnUser }),
    })
    if (server) log('INFO', `listens at ${name}`, { address: name })
    const fits = (packet: number) => packets.length[packet] <= mtu
    const untaken = oversizeUntaken(metrics, log, mtu)
    let oversize = 0
    return {
      input(batch) {
        batch.filter(fits, metrics.oversize_packets)
        endpoint.send(batch)
      },
      active: () => endpoint.active,
      flush: () => endpoint.flush(),
      observe() {
        endpoint.observe()
        untaken.add(endpoint.oversize - oversize)
        oversize = endpoint.oversize
      },
      stop: () => endpoint.stop(),
    }
  },
})
