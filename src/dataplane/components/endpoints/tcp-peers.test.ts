/** Which connection of a TCP listener a packet goes to, while connections come and go. */
import { describe, expect, it } from 'vitest'
import { remoteRecord } from '../../engine/address.ts'
import type { ConnectionIo } from '../../engine/io.ts'
import { Packets } from '../../engine/packets.ts'
import { Random } from '../../engine/random.ts'
import { ORDINAL_BYTE, REMOTE_BYTES } from '../../native/native.ts'
import { Connection } from './connection.ts'
import { SendQueue } from './send-queue.ts'
import { TcpPeers } from './tcp-peers.ts'

const packets = new Packets({ slots: 8, mtu: 100 })
const successors = new Int32Array(8)

const recordOf = (port: number, family: 4 | 6 = 4) =>
  remoteRecord({ address: family === 4 ? `10.0.${(port >> 8) & 3}.1` : `fd00::${port & 7}`, port, family })

function connection(port: number, family: 4 | 6 = 4): Connection {
  const io = { record: recordOf(port, family) } as unknown as ConnectionIo
  return new Connection(io, new SendQueue(packets, successors))
}

/** A packet to the peer at `port`, or without an address. */
function packetTo(port?: number, family: 4 | 6 = 4): number {
  const packet = packets.allocate()
  if (port !== undefined) packets.setRemote(packet, recordOf(port, family))
  packets.release(packet)
  return packet
}

describe('peers of a TCP listener', () => {
  it.each([true, false])(
    'are found by their address, the newest by none, none by that of one that is over; foreign addresses: %j',
    (foreign) => {
      const peers = new TcpPeers(packets, foreign)
      expect(peers.of(packetTo())).toBe(null)
      const [one, two, three] = [connection(1), connection(2, 6), connection(3)]
      for (const each of [one, two, three]) peers.add(each)
      expect(peers.of(packetTo(1))).toBe(one)
      expect(peers.of(packetTo(2, 6))).toBe(two)
      expect(peers.of(packetTo(2))).toBe(foreign ? three : null)
      expect(peers.of(packetTo())).toBe(three)
      peers.remove(three)
      expect(peers.of(packetTo(3))).toBe(null)
      expect(peers.of(packetTo())).toBe(two)
      const again = connection(3)
      peers.add(again)
      expect(peers.of(packetTo(3))).toBe(again)
    },
  )

  it('that have one address are told apart by their ordinals, of which there are 256', () => {
    const peers = new TcpPeers(packets, false)
    const all = Array.from({ length: 256 }, () => connection(1))
    expect(all.map((each) => peers.add(each))).toEqual(all.map(() => true))
    expect(all.map(({ ordinal }) => ordinal)).toEqual(all.map((_, i) => i))
    expect(peers.add(connection(1))).toBe(false)
    const toOrdinal = (ordinal: number) => {
      const packet = packetTo(1)
      packets.remote[packet * REMOTE_BYTES + ORDINAL_BYTE] = ordinal
      return peers.of(packet)
    }
    expect(all.map((_, ordinal) => toOrdinal(ordinal))).toEqual(all)
    peers.remove(all[7] as Connection)
    expect(toOrdinal(7)).toBe(null)
    const fresh = connection(1)
    expect(peers.add(fresh)).toBe(true)
    expect([toOrdinal(7), toOrdinal(8)]).toEqual([fresh, all[8]])
  })

  it('are the right ones after thousands have come and gone', () => {
    const random = new Random(1)
    const peers = new TcpPeers(packets, false)
    const here = new Map<number, Connection>()
    for (let step = 0; step < 20_000; step++) {
      const port = 1 + random.below(600)
      const known = here.get(port)
      if (known) {
        peers.remove(known)
        here.delete(port)
        expect(peers.of(packetTo(port, port % 2 === 0 ? 4 : 6))).toBe(null)
      } else {
        const fresh = connection(port, port % 2 === 0 ? 4 : 6)
        peers.add(fresh)
        here.set(port, fresh)
        expect(peers.of(packetTo())).toBe(fresh)
      }
      const some = 1 + random.below(600)
      expect(peers.of(packetTo(some, some % 2 === 0 ? 4 : 6))).toBe(here.get(some) ?? null)
    }
  })
})
