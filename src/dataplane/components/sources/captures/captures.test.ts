/** What is read of captures: every format, order, unit and link type as bytes made by hand; what is wrong with one, and where. */
import { describe, expect, test } from 'vitest'
import {
  ethernet,
  type Frame,
  ipv4,
  ipv6,
  type PcapOptions,
  pcap,
  Section,
} from '../../../../../test/harness/captures.ts'
import { readCapture } from './read.ts'
import { CaptureError, type Recording } from './recording.ts'

/** Packets of a recording: when, and their bytes (their size where that is all). */
function packetsOf(recording: Recording): [time: number, packet: Buffer | number][] {
  const { packets, times, lengths, content } = recording
  return Array.from({ length: packets }, (_, i) => {
    const from = content?.offsets[i] ?? 0
    return [times[i], content ? Buffer.from(content.bytes.slice(from, from + lengths[i])) : lengths[i]]
  })
}

/** The frames one after the other, a millisecond apart. */
function timed(frames: readonly Uint8Array[]): Frame[] {
  return frames.map((bytes, i) => ({ time: [1_700_000_000, i * 1000], bytes }))
}

const read = (frames: readonly Frame[], options?: PcapOptions) => readCapture(pcap(frames, options))
const text = (lines: string) => readCapture(Buffer.from(lines))

function complaint(bytes: Uint8Array): string {
  try {
    readCapture(bytes)
  } catch (error) {
    expect(error).toBeInstanceOf(CaptureError)
    return (error as Error).message
  }
  throw new Error('it was read without a complaint')
}

const V4 = 0x0800
const V6 = 0x86dd
const ARP = 0x0806

describe('pcap', () => {
  test.each([
    ['us', true],
    ['us', false],
    ['ns', true],
    ['ns', false],
  ] as const)('times in %s, little-endian %s', (unit, little) => {
    const packet = ethernet(V4, ipv4(60, 9))
    const last = unit === 'us' ? 999_999 : 999_999_999
    const frames: Frame[] = [
      { time: [4_294_967_290, last], bytes: packet },
      { time: [4_294_967_291, 0], bytes: packet },
      { time: [4_294_967_295, 7], bytes: packet },
    ]
    const tick = unit === 'us' ? 1000 : 1
    const recording = read(frames, { unit, little })
    expect(packetsOf(recording)).toEqual([
      [0, ipv4(60, 9)],
      [tick, ipv4(60, 9)],
      [4e9 + 8 * tick, ipv4(60, 9)],
    ])
  })

  test('a time that goes back counts as no time passed, and the time until the first packet does not count', () => {
    const frame = (ms: number, type = V4): Frame => ({ time: [5, ms * 1000], bytes: ethernet(type, ipv4(40)) })
    const recording = read([frame(0, ARP), frame(100), frame(130), frame(90), frame(95), frame(300, ARP), frame(400)])
    expect(packetsOf(recording).map(([time]) => time / 1e6)).toEqual([0, 30, 30, 35, 340])
    expect(recording.skippedFrames).toBe(2)
  })

  test('what a frame check sequence has to do with the link type is passed over', () => {
    expect(read(timed([ethernet(V4, ipv4(40))]), { linkType: 0x54000001 }).packets).toBe(1)
  })

  test('many packets', () => {
    const recording = read(timed(Array.from({ length: 5000 }, (_, i) => ethernet(V4, ipv4(20 + (i % 1000), i & 255)))))
    expect(recording.packets).toBe(5000)
    const [time, packet] = packetsOf(recording)[4999]
    expect([time, packet]).toEqual([4999e6, ipv4(20 + 999, 4999 & 255)])
  })

  const whole = pcap(timed([ethernet(V4, ipv4(46)), ethernet(V4, ipv4(46))]))
  test.each([
    [whole.subarray(0, 23), 'it ends at byte 23, within the file header of 24 bytes'],
    [whole.subarray(0, 105), /^record 2 at byte 100: the file ends at byte 105, within its header; if/],
    [whole.subarray(0, 175), /^record 2 at byte 100: it says that 60 bytes follow, the file has 59 more; if/],
    [
      Buffer.concat([whole.subarray(0, 4), Buffer.from([1, 0, 5, 0]), whole.subarray(8)]),
      /^byte 4: .* version 1\.5; 2\.4/,
    ],
    [whole.subarray(0, 24), /^it holds no packet to send: 0 frames/],
    [pcap(timed([ethernet(ARP, ipv4(46))])), /^it holds no packet to send: 1 frames/],
    [Buffer.from('1f8b080000000000', 'hex'), /^byte 0: 1f8b0800 begins neither pcap.*unpack it first$/],
    [Buffer.from([0, 1, 2]), /^byte 0: 000102 begins neither/],
    [Buffer.alloc(0), 'it is empty'],
  ])('damage %#', (bytes, message) => {
    expect(complaint(bytes)).toMatch(message)
  })
})

describe('link types', () => {
  const four = ipv4(60, 4)
  const six = ipv6(70, 6)
  const ofVersion0 = Buffer.from(four)
  ofVersion0[0] = 0x05
  const sll = (type: number, packet: Uint8Array) =>
    Buffer.concat([Buffer.from([0, 0, 0, 1, 0, 6, 1, 2, 3, 4, 5, 6, 0, 0, type >> 8, type & 255]), packet])
  const sll2 = (type: number, packet: Uint8Array) =>
    Buffer.concat([Buffer.from([type >> 8, type & 255]), Buffer.alloc(18, 1), packet])
  const family = (number: number, packet: Uint8Array, little: boolean) => {
    const head = Buffer.alloc(4)
    if (little) head.writeUInt32LE(number)
    else head.writeUInt32BE(number)
    return Buffer.concat([head, packet])
  }

  test.each<[string, number, Buffer[], Buffer[], number]>([
    [
      'Ethernet, with none, one and two VLAN tags',
      1,
      [
        ethernet(V4, four),
        ethernet(V6, six),
        ethernet(V4, four, [0x8100]),
        ethernet(V6, six, [0x88a8, 0x8100]),
        ethernet(V4, four, [0x9100]),
        ethernet(ARP, four, [0x8100]),
        ethernet(46, four),
        ethernet(V4, six),
      ],
      [four, six, four, six, four],
      3,
    ],
    ['RAW', 101, [four, six, Buffer.alloc(60, 0x70), ofVersion0], [four, six], 2],
    ['IPV4', 228, [four, six], [four], 1],
    ['IPV6', 229, [four, six], [six], 1],
    ['LINUX_SLL', 113, [sll(V4, four), sll(V6, six), sll(ARP, four), sll(4, four)], [four, six], 2],
    ['LINUX_SLL2', 276, [sll2(V4, four), sll2(V6, six), sll2(ARP, four)], [four, six], 1],
    [
      'NULL',
      0,
      [
        family(2, four, true),
        family(2, four, false),
        ...[24, 28, 30].flatMap((number) => [family(number, six, true), family(number, six, false)]),
        family(7, four, true),
      ],
      [four, four, six, six, six, six, six, six],
      1,
    ],
    [
      'Ethernet with what the frame was filled up with',
      1,
      [ethernet(V4, Buffer.concat([four, Buffer.alloc(9, 1)]))],
      [four],
      0,
    ],
  ])('%s', (_name, linkType, frames, packets, skipped) => {
    for (const little of [true, false]) {
      const recording = read(timed(frames), { linkType, little })
      expect(packetsOf(recording).map(([, packet]) => packet)).toEqual(packets)
      expect([recording.skippedFrames, recording.unsendablePackets]).toEqual([skipped, 0])
    }
  })

  test('frames of any other link type are skipped', () => {
    expect(complaint(pcap(timed([four, four]), { linkType: 105 }))).toBe(
      'it holds no packet to send: 2 frames have no IP packet in them, and 0 packets are cut or too long',
    )
  })

  const whole = ethernet(V4, four)
  test.each<[string, Uint8Array, number | undefined, number, number]>([
    ['cut in the packet', whole.subarray(0, 73), 74, 0, 1],
    ['cut in the IP header', whole.subarray(0, 30), 74, 0, 1],
    ['cut in the Ethernet header', whole.subarray(0, 9), 74, 0, 1],
    ['cut in a VLAN tag', ethernet(V4, four, [0x8100]).subarray(0, 16), 74, 0, 1],
    ['cut behind what is known not to be IP', ethernet(ARP, four).subarray(0, 30), 74, 1, 0],
    ['a whole frame too short for a header', whole.subarray(0, 9), undefined, 1, 0],
    ['a whole frame with less than its packet says', whole.subarray(0, 73), undefined, 0, 1],
    [
      'a header of less than 20 bytes',
      ethernet(V4, Buffer.concat([Buffer.from([0x44]), four.subarray(1)])),
      undefined,
      1,
      0,
    ],
    ['a packet that says it is shorter than its header', ethernet(V4, ipv4(60, 1, 19)), undefined, 1, 0],
    ['9,217 bytes', ethernet(V4, ipv4(9217)), undefined, 0, 1],
    ['9,217 bytes of IPv6', ethernet(V6, ipv6(9217)), undefined, 0, 1],
    ['an empty frame', new Uint8Array(0), undefined, 1, 0],
  ])('%s', (_name, bytes, original, skipped, unsendable) => {
    const frames = timed([bytes, ethernet(V4, ipv4(9216))])
    if (original !== undefined) frames[0].original = original
    const recording = read(frames)
    expect(recording.packets).toBe(1)
    expect([recording.skippedFrames, recording.unsendablePackets]).toEqual([skipped, unsendable])
  })
})

describe('pcapng', () => {
  const packet = ipv4(61, 5)
  const frame = ethernet(V4, packet)
  const times = (recording: Recording) => packetsOf(recording).map(([time]) => time)

  test.each([true, false])('sections, interfaces and packets, little-endian %s', (little) => {
    const start = 1_700_000_000_000_000n
    const section = new Section(little)
      .block(0x0bad, Buffer.alloc(5))
      .interface(1)
      .interface(101, 0, [[9, Buffer.from([9])]])
      .enhanced(0, start, frame)
      .enhanced(1, (start + 250n) * 1000n + 7n, packet)
      .block(5, Buffer.alloc(16))
      .simple(frame)
      .enhanced(0, start + 300n, ethernet(ARP, packet))
      .enhanced(0, start + 4_294_967_296n * 3n, frame)
    const recording = readCapture(section.made)
    expect(packetsOf(recording)).toEqual([
      [0, packet],
      [250_007, packet],
      [250_007, packet],
      [4_294_967_296 * 3 * 1000, packet],
    ])
    expect(recording.skippedFrames).toBe(1)
  })

  test.each([
    [[9, Buffer.from([3])], 1e6],
    [[9, Buffer.from([0x80 + 10])], 1e9 / 1024],
    [[9, Buffer.from([12])], 1e-3],
    [[9, Buffer.from([0])], 1e9],
    [[2, Buffer.from('eth0')], 1e3],
  ] as [[number, Buffer], number][])('a unit of time as option %j says: %d ns', (option, unit) => {
    const units = 8_000_000n
    const section = new Section()
      .interface(1, 0, [option])
      .enhanced(0, 5n, frame)
      .enhanced(0, 5n + units, frame)
    expect(times(readCapture(section.made))[1]).toBeCloseTo(Number(units) * unit, 3)
  })

  test('seconds are added to the times of an interface that says so', () => {
    const offset = Buffer.alloc(8)
    offset.writeBigInt64LE(-3n)
    const section = new Section()
      .interface(1)
      .interface(1, 0, [[14, offset]])
      .enhanced(0, 1_000_000n, frame)
      .enhanced(1, 4_500_000n, frame)
    expect(times(readCapture(section.made))).toEqual([0, 0.5e9])
  })

  test('a section of the other order has interfaces of its own', () => {
    const first = new Section(true).interface(1).enhanced(0, 10n, frame).made
    const second = new Section(false).interface(101).enhanced(0, 12n, packet).made
    expect(times(readCapture(Buffer.concat([first, second])))).toEqual([0, 2000])
  })

  test('a simple packet is as long as the snap length lets it be', () => {
    const cut = new Section()
      .interface(1, 40)
      .simple(frame.subarray(0, 40), frame.length)
      .simple(ethernet(V4, ipv4(26)))
    const recording = readCapture(cut.made)
    expect([recording.packets, recording.unsendablePackets]).toEqual([1, 1])
  })

  const good = new Section().interface(1).enhanced(0, 5n, frame).made
  const changed = (at: number, value: number) => {
    const bytes = Buffer.from(good)
    bytes.writeUInt32LE(value, at)
    return bytes
  }
  test.each([
    [good.subarray(0, 8), /^block 1 at byte 0: the file ends 8 bytes after it begins, a block has 12 at least$/],
    [
      good.subarray(0, 40),
      /^block 2 at byte 28: its length is 20, the file ends 12 bytes after it begins: the rest is lost$/,
    ],
    [changed(8, 1), /^block 1 at byte 0: its byte-order magic is 0x01000000, not 0x1a2b3c4d in either order$/],
    [changed(12, 2), /^block 1 at byte 0: its section has version 2 of the format; 1 is what is read$/],
    [changed(32, 22), /^block 2 at byte 28: its length is 22, which is no multiple of 4 of at least 12$/],
    [changed(44, 24), /^block 2 at byte 28: its length is 20 in front and 24 behind$/],
    [changed(56, 7), /^block 3 at byte 48: its interface is number 7, 1 are described before it$/],
    [changed(68, 200), /^block 3 at byte 48: it says that 200 bytes were captured and has room for 76$/],
    [
      new Section().block(1, Buffer.alloc(4)).made,
      /^block 2 at byte 28: an interface description has 20 bytes at least, this one 16$/,
    ],
    [
      new Section().block(1, new Section().bytes.u16(1, 0).u32(0).u16(9, 7).made).made,
      /^block 2 at byte 28: its option 9 at byte 44/,
    ],
    [new Section().simple(frame).made, /^block 2 at byte 28: its interface is number 0, 0 are described before it$/],
    [new Section().interface(1).simple(frame.subarray(0, 20), 60).made, /has room for 20$/],
    [new Section().made, /^it holds no packet to send/],
  ])('damage %#', (bytes, message) => {
    expect(complaint(bytes)).toMatch(message)
  })
})

describe('lists', () => {
  test.each([
    'time_ms,size\n10,32\n12.5,9216\r\n\n11,100\n20.000001,64',
    '\ufeff10,32\n12.5,9216\n11 , 100\n 20.000001,64 \n',
  ])('sizes at their times: %j', (lines) => {
    expect(packetsOf(text(lines))).toEqual([
      [0, 32],
      [2.5e6, 9216],
      [2.5e6, 100],
      [11_500_001, 64],
    ])
  })

  test.each([
    ['1,31', 'line 1: the size 31 is not within 32 to 9216 bytes'],
    ['1,64\n2,9217', 'line 2: the size 9217 is not within 32 to 9216 bytes'],
    ['1,64\n\n-2,64', 'line 3: "-2,64" is no "time_ms,size", as in 12.5,1200'],
    ['1,64\n2', 'line 2: "2" is no "time_ms,size", as in 12.5,1200'],
    ['1,64\ntime_ms,size', 'line 2: "time_ms,size" is no "time_ms,size", as in 12.5,1200'],
    ['1;64', 'line 1: "1;64" is no "time_ms,size", as in 12.5,1200'],
    [`1,64\n${'1'.repeat(200)}`, 'line 2: it has 200 bytes, which is no "time_ms,size"'],
    [
      'time_ms,size\n',
      'it holds no packet to send: 0 frames have no IP packet in them, and 0 packets are cut or too long',
    ],
  ])('damage %#', (lines, message) => {
    expect(complaint(Buffer.from(lines))).toBe(message)
  })
})
