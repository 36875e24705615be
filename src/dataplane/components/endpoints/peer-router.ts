/** peer_router: learns behind which remote address each inner IP address is, and sends what is for it there. */
import { Type } from '@sinclair/typebox'
import { IpHeader } from '../../codes/ip-header.ts'
import { NS_PER_S } from '../../engine/clock.ts'
import { defineComponent } from '../../engine/component.ts'
import { counter, drop, gauge } from '../../engine/metrics.ts'
import { Input, Output } from '../../engine/schema.ts'
import { GAUGE_NS } from '../../engine/timers.ts'
import { REMOTE_BYTES } from '../../native/native.ts'
import { PeerTable } from './peer-table.ts'

/** Inner addresses that are known at once. */
const MAX_ROUTED_ADDRESSES = 65_536
/** How long one is known that nothing comes from and nothing goes to. */
const MAX_UNUSED_NS = 300 * NS_PER_S

const InputOutput = (input: string, output: string, description: string) =>
  Type.Object({ input: Input(input), output: Output(output) }, { description })

/** Whether an address is one of a single host: not of a group, not the broadcast address, not "none". */
function isOneHost(version: number, address: Uint32Array): boolean {
  const [first] = address
  if (version === 4) return first >>> 28 !== 14 && first !== 0xffffffff && first !== 0
  return first >>> 24 !== 0xff && (first | address[1] | address[2] | address[3]) !== 0
}

export const peerRouter = defineComponent({
  key: 'peer_router',
  family: 'endpoints',
  summary: 'Learns behind which remote address each inner IP address is, and annotates packets for it with that one.',
  details:
    'For a server whose clients each carry IP packets of their own, such as a tun behind a udp_local: what comes from the network passes through ingress, which notes the ' +
    'remote address that the inner source address came from; what goes to the network passes through egress, which looks the inner destination up and annotates the ' +
    'packet with that remote address. 65,536 addresses, IPv4 and IPv6, are known at once; one that nothing came from and nothing went to for five minutes is forgotten, and where all ' +
    'places are taken the one longest unused gives way. Whoever sent last from an address owns it (moved_addresses counts), so a client that changes its network is found again, and any client can take ' +
    'the address of another: put an authenticating component between the network and ingress. What is no IP packet goes to the remote address that the last packet of that kind came from, ' +
    'for five minutes as well. A packet for an address that is not known, for a group, or for 255.255.255.255 is dropped.',
  config: Type.Object({
    ingress: InputOutput('What comes from the network.', 'The same packets, to the inside.', 'From the network.'),
    egress: InputOutput(
      'What is to go to the network.',
      'The same packets, each annotated with where to.',
      'To the network.',
    ),
  }),
  metrics: {
    unroutable_packets: drop('Packets at egress dropped because nobody is known where they are to go.'),
    moved_addresses: counter('Times an inner address came from another remote address than before.'),
    known_addresses: gauge('Inner addresses whose remote address is known.', 'addresses'),
  },
  alters: true,
  create(_config, { packets, clock, outlets, metrics, entropy, timer }) {
    const seed = new DataView(entropy(4).buffer).getInt32(0)
    const table = new PeerTable(MAX_ROUTED_ADDRESSES, MAX_UNUSED_NS, seed)
    const header = new IpHeader()
    const remote = new Int32Array(REMOTE_BYTES / 4)
    /** Where the last packet that was not IP came from, and until when that counts. */
    const last = new Int32Array(REMOTE_BYTES / 4)
    let lastUntil = 0
    // Has the number shown as it falls where nothing else wakes the run.
    const forgetting = timer(() => {
      table.expire(clock.now)
      if (table.size > 0) forgetting.at(Math.max(table.nextExpiry, clock.now + GAUGE_NS))
    })

    function isIp(packet: number): boolean {
      return header.read(packets.view, packets.offset[packet], packets.length[packet])
    }

    function learn(packet: number): void {
      if (packets.remote[packet * REMOTE_BYTES] === 0) return
      if (!isIp(packet)) {
        packets.readRemote(packet, last)
        lastUntil = clock.now + MAX_UNUSED_NS
      } else if (isOneHost(header.version, header.source)) {
        packets.readRemote(packet, remote)
        if (table.learn(header.version, header.source, remote, clock.now)) metrics.moved_addresses.add(1)
      }
    }

    function route(packet: number): boolean {
      const { now } = clock
      if (!isIp(packet)) {
        if (now >= lastUntil) return false
        lastUntil = now + MAX_UNUSED_NS
        packets.setRemote(packet, last)
        return true
      }
      const { version, destination } = header
      if (!isOneHost(version, destination) || !table.find(version, destination, remote, now)) return false
      packets.setRemote(packet, remote)
      return true
    }

    return {
      ingress: {
        input(batch) {
          for (let i = 0; i < batch.length; i++) learn(batch.handles[i])
          if (!forgetting.armed && table.size > 0) forgetting.at(table.nextExpiry)
          outlets.ingress.output.send(batch)
        },
      },
      egress: {
        input(batch) {
          const { handles, length } = batch
          let kept = 0
          for (let i = 0; i < length; i++) {
            if (route(handles[i])) handles[kept++] = handles[i]
            else packets.release(handles[i])
          }
          if (kept < length) metrics.unroutable_packets.add(length - kept)
          batch.length = kept
          outlets.egress.output.send(batch)
        },
      },
      observe() {
        table.expire(clock.now)
        metrics.known_addresses.set(table.size)
      },
      stop: () => forgetting.cancel(),
    }
  },
})
