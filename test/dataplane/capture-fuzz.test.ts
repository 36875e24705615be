/**
 * Captures with bits, numbers and pieces changed: each is either read, with all its packets inside the file and its times in order, or
 * refused with where it is wrong.
 */
import { expect, test } from 'vitest'
import { readCapture } from '../../src/dataplane/components/sources/captures/read.ts'
import { CaptureError, MAX_RECORDED_PACKET } from '../../src/dataplane/components/sources/captures/recording.ts'
import { Random } from '../../src/dataplane/engine/random.ts'
import { ethernet, type Frame, ipv4, ipv6, pcap, Section } from '../harness/captures.ts'
import { FuzzRound, SEED } from '../harness/fuzz-round.ts'

/** Inputs of the short round. */
const SHORT = 30_000
const LINK_TYPES = [0, 1, 101, 113, 228, 229, 276, 105]
const NUMBERS = [
  0, 1, 3, 4, 11, 12, 13, 16, 28, 32, 0x7fff, 0xffff, 0x10000, 0x7fffffff, 0x80000000, 0xfffffffc, 0xffffffff,
]

function frames(random: Random): Frame[] {
  return Array.from({ length: 1 + random.below(6) }, (_, i): Frame => {
    const packet = random.chance(0.5) ? ipv4(20 + random.below(80), i) : ipv6(40 + random.below(80), i)
    const type = packet[0] === 0x45 ? 0x0800 : 0x86dd
    const bytes = random.chance(0.3) ? packet : ethernet(type, packet, random.chance(0.3) ? [0x8100] : [])
    return { time: [random.below(3), random.below(1_000_000)], bytes, original: bytes.length + random.below(2) }
  })
}

/** A capture of some format without fault. */
function sound(random: Random): Buffer {
  const little = random.chance(0.5)
  const linkType = LINK_TYPES[random.below(LINK_TYPES.length)]
  switch (random.below(3)) {
    case 0:
      return pcap(frames(random), { little, unit: random.chance(0.5) ? 'us' : 'ns', linkType })
    case 1: {
      const section = new Section(little).interface(linkType, random.below(200), [
        [9, Buffer.from([random.below(256)])],
      ])
      section.interface(1, 0, [[14, Buffer.alloc(8, random.below(256))]])
      for (const { time, bytes, original } of frames(random)) {
        if (random.chance(0.3)) section.simple(bytes, original)
        else section.enhanced(random.below(2), BigInt(time[0]) * 1_000_000n + BigInt(time[1]), bytes, original)
        if (random.chance(0.2)) section.block(random.below(12), Buffer.alloc(random.below(30)))
      }
      return section.made
    }
    default:
      return Buffer.from(
        Array.from({ length: 1 + random.below(9) }, (_, i) => `${i * 2.5},${32 + random.below(9185)}\n`).join(''),
      )
  }
}

/** Changes a capture as a bad disk, a cut transfer or an attacker does. */
function damaged(bytes: Buffer, random: Random): Buffer {
  const at = random.below(bytes.length + 1)
  switch (random.below(6)) {
    case 0:
      return bytes.subarray(0, at)
    case 1: {
      const changed = Buffer.from(bytes)
      if (changed.length > 0) changed[random.below(changed.length)] ^= 1 << random.below(8)
      return changed
    }
    case 2: {
      const changed = Buffer.from(bytes)
      const number = NUMBERS[random.below(NUMBERS.length)]
      const place = random.below(Math.max(1, changed.length >> 2)) * 4
      if (place + 4 > changed.length) return changed
      if (random.chance(0.5)) changed.writeUInt32LE(number, place)
      else changed.writeUInt32BE(number, place)
      return changed
    }
    case 3:
      return Buffer.concat([bytes.subarray(0, at), bytes.subarray(random.below(bytes.length + 1))])
    case 4: {
      const noise = Buffer.alloc(random.below(40))
      random.fill(noise, 0, noise.length)
      return Buffer.concat([bytes.subarray(0, at), noise, bytes.subarray(at)])
    }
    default:
      return Buffer.concat([bytes.subarray(0, at), sound(random)])
  }
}

/** Throws where what was read of `bytes` cannot be; the number of packets, 0 for a capture that is refused. */
function packetsRead(bytes: Buffer): number {
  // Its own memory: what is read beyond the end is seen to be.
  const given = new Uint8Array(bytes)
  let recording: ReturnType<typeof readCapture>
  try {
    recording = readCapture(given)
  } catch (error) {
    if (!(error instanceof CaptureError)) throw error
    if (error.message.length > 400) throw new Error(`a message of ${error.message.length} characters`)
    return 0
  }
  const { packets, times, lengths, content } = recording
  if (Buffer.compare(given, bytes) !== 0) throw new Error('the file was changed')
  if (packets < 1 || times[0] !== 0) throw new Error(`${packets} packets, the first at ${times[0]}`)
  for (let i = 0; i < packets; i++) {
    if (!Number.isFinite(times[i]) || times[i] < times[Math.max(0, i - 1)])
      throw new Error(`packet ${i} is at ${times[i]}`)
    if (lengths[i] < 20 || lengths[i] > MAX_RECORDED_PACKET) throw new Error(`packet ${i} has ${lengths[i]} bytes`)
    if (content === null) continue
    const { offsets } = content
    if (offsets[i] + lengths[i] > bytes.length) throw new Error(`packet ${i} ends behind the file`)
    const version = bytes[offsets[i]] >>> 4
    if (version !== 4 && version !== 6) throw new Error(`packet ${i} has version ${version}`)
  }
  return packets
}

const round = new FuzzRound(1, SHORT)

test(`damaged captures, seed ${SEED}`, { timeout: round.timeout }, () => {
  const random = new Random(SEED)
  const { end, inputs } = round
  let read = 0
  let refused = 0
  for (let input = 0; input < inputs && performance.now() < end; input++) {
    let bytes = sound(random)
    for (let i = random.below(4); i > 0; i--) bytes = damaged(bytes, random)
    try {
      if (packetsRead(bytes) > 0) read++
      else refused++
    } catch (error) {
      throw new Error(`input ${input} of seed ${SEED}, ${bytes.toString('base64')}`, { cause: error })
    }
  }
  round.report(`${read + refused} captures, ${read} read, ${refused} refused`)
  expect(read).toBeGreaterThan((read + refused) / 10)
  expect(refused).toBeGreaterThan((read + refused) / 10)
})
