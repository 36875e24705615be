/**
 * Every decoder among packets that no encoder made: it throws nothing, loses and invents no slot, writes in none that is not its own, and
 * holds no more than it may.
 */
import { describe, expect, test } from 'vitest'
import { IpHeader } from '../../src/dataplane/codes/ip-header.ts'
import { RtpHeader } from '../../src/dataplane/codes/rtp-header.ts'
import { components } from '../../src/dataplane/components/registry.ts'
import type { AnyComponent } from '../../src/dataplane/engine/component.ts'
import { Random } from '../../src/dataplane/engine/random.ts'
import { examples } from '../contract-suite/examples.ts'
import { type Bench, drive } from '../harness/component.ts'
import { FuzzRound, SEED } from '../harness/fuzz-round.ts'

/** Inputs of the short round, for each decoder, and of one bench before the next begins. */
const SHORT = 6_000
const ONE_BENCH = 50_000
const MTU = 2048
/** Slots that nobody may write in, each between two that decoders get first. */
const GUARDS = 200
const MS = 1e6

function randomBytes(random: Random, most: number): Uint8Array {
  const bytes = new Uint8Array(random.below(most))
  random.fill(bytes, 0, bytes.length)
  return bytes
}

/** IP packets of both versions, with options, extension headers and fragments. */
function ipPacket(random: Random): Uint8Array {
  const bytes = new Uint8Array(60 + random.below(100))
  random.fill(bytes, 0, bytes.length)
  const view = new DataView(bytes.buffer)
  if (random.chance(0.5)) {
    bytes[0] = 0x45 + random.below(11)
    view.setUint16(2, bytes.length)
    if (random.chance(0.7)) view.setUint16(6, 0)
    bytes[9] = random.chance(0.5) ? 6 : 17
  } else {
    bytes[0] = 0x60
    view.setUint16(4, bytes.length - 40)
    const protocols = [0, 6, 17, 43, 44, 51, 58, 59, 60, 135, 139, 140]
    for (let at = 40, next = 6; at + 8 <= bytes.length; at += (bytes[at + 1] + 1) * 8) {
      bytes[next] = protocols[random.below(protocols.length)]
      bytes[at + 1] = random.below(3)
      next = at
    }
  }
  return bytes
}

/** RTP packets of a few streams, bare and behind UDP, with contributing sources and extensions. */
function rtpPacket(random: Random): Uint8Array {
  const front = [0, 0, 28, 48][random.below(4)] as number
  const bytes = new Uint8Array(front + 12 + random.below(100))
  random.fill(bytes, front, bytes.length)
  const view = new DataView(bytes.buffer)
  bytes[0] = front === 28 ? 0x45 : front === 48 ? 0x60 : 0
  if (front === 28) {
    view.setUint16(2, bytes.length)
    bytes[9] = 17
  } else if (front === 48) {
    view.setUint16(4, bytes.length - 40)
    bytes[6] = 17
  }
  if (front > 0) view.setUint16(front - 4, bytes.length - front + 8)
  bytes[front] = 0x80 | (random.chance(0.2) ? random.below(64) : 0)
  view.setUint16(front + 2, random.below(random.chance(0.5) ? 50 : 65_536))
  view.setUint32(front + 8, random.below(100))
  return bytes
}

/** What decoders without an encoder are fed. */
const PACKETS: Readonly<Record<string, (random: Random) => Uint8Array>> = {
  flow_filter: ipPacket,
  peer_router: ipPacket,
  relay_routing_fabric: ipPacket,
  rtp_observer: rtpPacket,
}

/** What its encoder sends to a decoder. */
function wireOf(key: string, random: Random): Uint8Array[] {
  const { others } = examples[key]
  const packet = PACKETS[key]
  if (!others) return Array.from({ length: 300 }, () => (packet as typeof ipPacket)(random))
  const bench = drive(others, { seed: random.bits() >>> 1 })
  const wire: Uint8Array[] = []
  for (let i = 0; i < 300; i++) {
    for (const input of bench.inputs) bench.send(input, randomBytes(random, MTU - 600))
    bench.advance(MS)
    for (const output of bench.outputs) wire.push(...bench.take(output).map(({ bytes }) => bytes))
  }
  bench.stop()
  return wire
}

/** One input: a packet as it was, or changed in one of the ways that networks and attackers know. */
function mutated(wire: readonly Uint8Array[], random: Random): Uint8Array {
  const packet = wire[random.below(wire.length)]
  const copy = packet.slice()
  switch (random.below(7)) {
    case 0:
      return packet
    case 1:
      return packet.slice(0, random.below(packet.length + 1))
    case 2: {
      const header = random.below(48)
      const other = wire[random.below(wire.length)]
      return Uint8Array.of(...other.subarray(0, header), ...packet.subarray(header))
    }
    case 3: {
      const long = randomBytes(random, MTU)
      long.set(packet.subarray(0, long.length))
      return long
    }
    case 4:
      return randomBytes(random, random.chance(0.5) ? 64 : MTU)
    case 5:
      if (copy.length > 0) copy[random.below(Math.min(20, copy.length))] = [0, 1, 127, 128, 255][random.below(5)]
      return copy
    default:
      for (let i = 0; i <= random.below(5) && copy.length > 0; i++) {
        copy[random.below(random.chance(0.8) ? Math.min(24, copy.length) : copy.length)] ^= 1 << random.below(8)
      }
      return copy
  }
}

/** Takes every second slot and fills it; `check` says whether they are as they were, and gives them back. */
function guard({ packets }: Bench): { check(): void } {
  const { data, slotBytes } = packets
  const taken = Array.from({ length: GUARDS * 2 }, () => packets.allocate())
  const guards = taken.filter((_, i) => i % 2 === 1)
  for (const packet of taken.filter((_, i) => i % 2 === 0)) packets.release(packet)
  for (const packet of guards) data.fill(packet, packet * slotBytes, (packet + 1) * slotBytes)
  const slot = Buffer.alloc(slotBytes)
  return {
    check() {
      for (const packet of guards) {
        const isWhole = slot.fill(packet).equals(data.subarray(packet * slotBytes, (packet + 1) * slotBytes))
        expect(isWhole, `slot ${packet}, which is nobody's, is as it was`).toBe(true)
        packets.release(packet)
      }
    },
  }
}

/** Feeds a decoder until `count` inputs are done or `until` is over; how many were done. */
function feed(bench: Bench, wire: readonly Uint8Array[], random: Random, count: number, until: number): number {
  let done = 0
  for (let step = 1; done < count && performance.now() < until; step++) {
    for (const input of bench.inputs) {
      const inputs = Array.from({ length: 1 + random.below(200) }, () => mutated(wire, random))
      bench.send(input, inputs, random.chance(0.5) ? { remote: '198.51.100.7:4000', client: random.below(8) } : {})
      if (random.chance(0.01)) bench.notify(input, random.chance(0.5) ? 'FLUSH' : 'RESET')
      done += inputs.length
    }
    bench.advance(random.below(10 * MS))
    expect(bench.packets.held).toBeLessThan(bench.packets.slots / 2)
    if (step % 20 === 0) bench.check()
  }
  return done
}

const decoders = [...components.values()]
  .filter(({ key, family }: AnyComponent) => examples[key]?.others && family !== 'endpoints')
  .map(({ key }) => key)
  .concat(Object.keys(PACKETS))
const round = new FuzzRound(decoders.length + 2, SHORT)
const headerRound = new FuzzRound(decoders.length + 2, SHORT * 5)

describe(`seed ${SEED}`, () => {
  test.each(decoders)(
    '%s',
    (key) => {
      const { end: until, inputs: total } = round
      const random = new Random(SEED)
      let done = 0
      while (done < total && performance.now() < until) {
        const wire = wireOf(key, random)
        const bench = drive(
          { it: { [key]: examples[key].config } },
          { record: false, mtu: MTU, seed: random.bits() >>> 1 },
        )
        const guards = guard(bench)
        done += feed(bench, wire, random, Math.min(ONE_BENCH, total - done), until)
        guards.check()
        expect(bench.stop().error).toBe(undefined)
      }
      round.report(`${key}: ${done} inputs`)
      expect(done).toBeGreaterThan(0)
    },
    round.timeout,
  )

  test(
    'IP headers: nothing beyond the packet is read, and what is told lies within it',
    () => {
      const { end: until, inputs: total } = headerRound
      const random = new Random(SEED)
      const header = new IpHeader()
      const wire = Array.from({ length: 2000 }, () => ipPacket(random))
      let read = 0
      let done = 0
      for (; done < total && performance.now() < until; done++) {
        const packet = mutated(wire, random)
        const { length } = packet
        const told = header.read(new DataView(packet.buffer, packet.byteOffset, length), 0, length)
        if (!told) continue
        read++
        const { headerBytes, bytes, portsAt, version } = header
        const isWithin = headerBytes <= bytes && bytes <= length && (portsAt < 0 || portsAt === headerBytes)
        const hasPorts = portsAt < 0 || portsAt + 4 <= bytes
        if (!isWithin || !hasPorts || (version !== 4 && version !== 6)) {
          expect.fail(`${Buffer.from(packet).toString('hex')}: ${JSON.stringify(header)}`)
        }
      }
      headerRound.report(`IP headers: ${done} inputs`)
      expect(read).toBeGreaterThan(done / 4)
    },
    headerRound.timeout,
  )

  test(
    'RTP headers: nothing beyond the packet is read, and the header lies within it',
    () => {
      const { end: until, inputs: total } = headerRound
      const random = new Random(SEED)
      const header = new RtpHeader()
      const wire = Array.from({ length: 2000 }, () => rtpPacket(random))
      let read = 0
      let done = 0
      for (; done < total && performance.now() < until; done++) {
        const packet = mutated(wire, random)
        const { length } = packet
        if (!header.read(new DataView(packet.buffer, packet.byteOffset, length), 0, length)) continue
        read++
        const { headerBytes, payloadType, sequence } = header
        if (headerBytes < 12 || headerBytes > length || payloadType > 127 || sequence > 65_535) {
          expect.fail(`${Buffer.from(packet).toString('hex')}: ${JSON.stringify(header)}`)
        }
      }
      headerRound.report(`RTP headers: ${done} inputs`)
      expect(read).toBeGreaterThan(done / 20)
    },
    headerRound.timeout,
  )
})
