/** relay_network_lookup: knows behind which remote address each client is. */
import { Type } from '@sinclair/typebox'
import { defineComponent } from '../../engine/component.ts'
import { drop, gauge } from '../../engine/metrics.ts'
import type { Packets } from '../../engine/packets.ts'
import { Input, List, Output, Uint32 } from '../../engine/schema.ts'
import { REMOTE_BYTES } from '../../native/native.ts'
import { WORD_BYTES } from './word-header.ts'

/** The clients served and the remote address that each was last heard from. */
class Clients {
  /** By id as a signed word, which Map takes without allocating. */
  private readonly remotes = new Map<number, Int32Array>()

  /** Serves the clients `ids` from now on; what is known of those that stay is kept. */
  serve(ids: readonly number[]): void {
    const former = new Map(this.remotes)
    this.remotes.clear()
    for (const id of ids) this.remotes.set(id | 0, former.get(id | 0) ?? new Int32Array(REMOTE_BYTES / 4))
  }

  /** The record of a client, whose first word is 0 while its address is not known; undefined for one that is not served. */
  remoteOf(id: number): Int32Array | undefined {
    return this.remotes.get(id | 0)
  }

  /** How many of them have an address. */
  get known(): number {
    let count = 0
    for (const remote of this.remotes.values()) if (remote[0] !== 0) count++
    return count
  }
}

/** Notes where a packet came from, unless it does not say. */
function note(packets: Packets, packet: number, remote: Int32Array): void {
  if (packets.remote[packet * REMOTE_BYTES] !== 0) packets.readRemote(packet, remote)
}

const InputOutput = (input: string, output: string, description: string) =>
  Type.Object({ input: Input(input), output: Output(output) }, { description })

export const relayNetworkLookup = defineComponent({
  key: 'relay_network_lookup',
  family: 'routing',
  summary:
    'Serves clients that are known by an id and may be behind any address: what is for a client goes where it was heard last.',
  details:
    'What comes from the network begins with a client id of 4 bytes (see wire formats): it is taken off, written as an annotation, and the sender’s ' +
    'remote address is noted. What comes for a client is annotated with its id, by relay_routing_fabric for one; it gets the id in front and ' +
    'the noted address, for udp_local or udp_remote to send it to. Only the ids in client_id are served. Ids prove nothing: whoever sends a client’s id gets that client’s ' +
    'packets, so put an authenticating component between the network and this one.',
  config: Type.Object({
    network: InputOutput('What comes from the network.', 'What goes to the network.', 'The side of the network.'),
    client: InputOutput('What is for the clients.', 'What comes from the clients.', 'The side of the clients.'),
    client_id: List(Uint32('Id of a client.'), 'Ids of the clients that are served.', { minItems: 0 }),
  }),
  metrics: {
    unlisted_client_packets: drop('Packets from the network dropped because their client id is not served.'),
    unknown_client_packets: drop('Packets for a client dropped because they have no id, or its address is not known.'),
    malformed_packets: drop('Packets from the network dropped because they are too short for a client id.'),
    known_clients: gauge('Clients whose address is known.', 'clients'),
  },
  live: ['client_id'],
  alters: true,
  crosses: { network: 'client', client: 'network' },
  room: () => ({ front: WORD_BYTES, back: 0 }),
  create(config, { packets, outlets, metrics }) {
    const clients = new Clients()
    clients.serve(config.client_id)
    return {
      network: {
        input(batch) {
          const { handles, length } = batch
          let kept = 0
          for (let i = 0; i < length; i++) {
            const packet = handles[i]
            const isWhole = packets.length[packet] >= WORD_BYTES
            const id = isWhole ? packets.view.getUint32(packets.trimFront(packet, WORD_BYTES)) : -1
            const remote = isWhole ? clients.remoteOf(id) : undefined
            if (remote) {
              note(packets, packet, remote)
              packets.client[packet] = id
              handles[kept++] = packet
            } else {
              packets.release(packet)
              const reason = isWhole ? metrics.unlisted_client_packets : metrics.malformed_packets
              reason.add(1)
            }
          }
          batch.length = kept
          outlets.client.output.send(batch)
        },
      },
      client: {
        input(batch) {
          const { handles, length } = batch
          let kept = 0
          for (let i = 0; i < length; i++) {
            const packet = handles[i]
            const id = packets.client[packet]
            const remote = id < 0 ? undefined : clients.remoteOf(id)
            if (remote && remote[0] !== 0) {
              packets.view.setUint32(packets.prepend(packet, WORD_BYTES), id)
              packets.setRemote(packet, remote)
              handles[kept++] = packet
            } else {
              packets.release(packet)
              metrics.unknown_client_packets.add(1)
            }
          }
          batch.length = kept
          outlets.network.output.send(batch)
        },
      },
      observe: () => metrics.known_clients.set(clients.known),
      reconfigure: (next) => clients.serve(next.client_id),
    }
  },
})
