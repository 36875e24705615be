/** Streams with more pieces under way than a receiver has places for: thousands of packets a second, and paths that say nothing for a while. */
import { expect, test } from 'vitest'
import { type Bench, drive, payload } from '../../../../test/harness/component.ts'
import {
  KIND_DATA,
  PIECE_FIRST,
  PIECE_LAST,
  SYMBOL_AT,
  SYMBOL_HEADER_BYTES,
  writeHeader,
  writeSymbolHeader,
} from './packet.ts'

const MS = 1e6
const STREAM = 5
const CARRIER = 1
const PACKETS_PER_MS = 60

function end(seed: number): Bench {
  const carriers = [{ input: 'come', output: 'go', carrier_handle: CARRIER }]
  const streams = [{ input: 'in', output: 'out', stream_handle: STREAM, transit_stream: { bonding_delay: 30 } }]
  return drive({ it: { raft: { streams, carriers } } }, { seed })
}

const packetsOf = (bench: Bench, name: string): Uint8Array[] => bench.take(name).map(({ bytes }) => bytes)
const tagOf = (bytes: Uint8Array): number => new DataView(bytes.buffer, bytes.byteOffset).getUint32(0)

/** A flow from one end to the other: what came out, by when it was sent, ms. */
class Flow {
  readonly came: number[] = []
  ms = 0
  private readonly near = end(1)
  readonly far = end(2)

  /** Goes on for `ms` ms; whether what goes there, and back, arrives. */
  run(ms: number, there: boolean, back: boolean): void {
    const { near, far } = this
    for (const until = this.ms + ms; this.ms < until; this.ms++) {
      near.send(
        'in',
        Array.from({ length: PACKETS_PER_MS }, (_, i) => payload(40, this.ms * PACKETS_PER_MS + i)),
      )
      near.advance(MS)
      const wire = packetsOf(near, 'go')
      if (there) far.send('come', wire)
      far.advance(MS)
      const reports = packetsOf(far, 'go')
      if (back) near.send('come', reports)
      for (const bytes of packetsOf(far, 'out')) this.came.push(tagOf(bytes))
    }
  }

  stop(): void {
    this.near.stop()
    this.far.stop()
  }
}

/** How many of the numbers from `from` to `to`, not included, there are. */
const countOf = (numbers: readonly number[], from: number, to: number): number =>
  new Set(numbers.filter((number) => number >= from && number < to)).size

test('what is sent after an outage arrives, however many pieces it left unreported', () => {
  const flow = new Flow()
  flow.run(60, true, true)
  flow.run(220, false, false)
  flow.run(200, true, true)
  expect(countOf(flow.came, 0, 59 * PACKETS_PER_MS)).toBe(59 * PACKETS_PER_MS)
  // Eight pieces say that the stream goes on there.
  expect(countOf(flow.came, 281 * PACKETS_PER_MS, 440 * PACKETS_PER_MS)).toBe(159 * PACKETS_PER_MS)
  expect(new Set(flow.came).size).toBe(flow.came.length)
  flow.stop()
})

test('an end that begins late gives out what is sent from then on', () => {
  const flow = new Flow()
  flow.run(250, false, false)
  flow.run(150, true, true)
  expect(countOf(flow.came, 251 * PACKETS_PER_MS, 360 * PACKETS_PER_MS)).toBe(109 * PACKETS_PER_MS)
  expect(new Set(flow.came).size).toBe(flow.came.length)
  flow.stop()
})

test('pieces that go again because reports were lost are not given out twice, and nothing that waits is dropped', () => {
  const flow = new Flow()
  flow.run(100, true, true)
  flow.run(220, true, false)
  flow.run(180, true, true)
  const sent = 500 * PACKETS_PER_MS
  expect(flow.came).toEqual(Array.from({ length: sent }, (_, i) => i))
  expect(flow.far.metrics().it.reset_packets).toBe(0)
  flow.stop()
})

/** Gives an end pieces of 40 bytes each, made by hand, of one session. */
class Wire {
  readonly far = end(2)
  /** The carrier sequence of the next. */
  carrierSequence = 0
  private made = 0

  piece(sequence: number, behind = 0): Uint8Array {
    const bytes = payload(SYMBOL_AT + SYMBOL_HEADER_BYTES + 40, sequence)
    bytes.copyWithin(SYMBOL_AT + SYMBOL_HEADER_BYTES, 0, 40)
    const view = new DataView(bytes.buffer, bytes.byteOffset)
    writeHeader(view, 0, KIND_DATA, 0, behind, 99, CARRIER, this.carrierSequence++)
    view.setInt32(16, STREAM)
    view.setInt32(20, sequence)
    writeSymbolHeader(view, SYMBOL_AT, 40, PIECE_FIRST | PIECE_LAST, STREAM, sequence, this.made++ * 1000)
    return bytes
  }

  /** What comes out in the `ms` after these have come. */
  takes(pieces: Uint8Array[], ms = 1): number[] {
    this.far.send('come', pieces)
    this.far.advance(ms * MS)
    return packetsOf(this.far, 'out').map(tagOf)
  }
}

test('a first piece before which more may come than there are places for is waited with no longer than others', () => {
  const wire = new Wire()
  const pieces = Array.from({ length: 20 }, (_, i) => wire.piece(100_000 + i, 60_000 + i))
  expect(wire.takes(pieces, 100)).toEqual(Array.from({ length: 20 }, (_, i) => 100_000 + i))
  wire.far.stop()
})

test('the first pieces after an outage of thousands are as good as others', () => {
  const wire = new Wire()
  const numbers = Array.from({ length: 40 }, (_, i) => (i < 20 ? i : 3000 + i))
  for (const number of numbers) {
    wire.carrierSequence = number
    wire.far.send('come', wire.piece(number))
  }
  expect(wire.takes([], 100)).toEqual(numbers)
  expect(wire.far.metrics().it.duplicate_packets).toBe(0)
  // None of them twice.
  wire.carrierSequence = 3020
  expect(wire.takes(numbers.slice(20).map((number) => wire.piece(number)))).toEqual([])
  expect(wire.far.metrics().it.duplicate_packets).toBe(20)
  wire.far.stop()
})

test.each([
  [8, 0],
  [30, 0],
  [30, 900],
])('a stream that %i wrong pieces have moved ahead goes back, also where another comes every %i ms', (wrong, every) => {
  const wire = new Wire()
  let sequence = 0
  for (; sequence < 100; sequence++) expect(wire.takes([wire.piece(sequence)])).toEqual([sequence])
  wire.takes(Array.from({ length: wrong }, (_, i) => wire.piece(100_000 + i)))
  const came: number[] = []
  for (; sequence < 2100; sequence++) {
    if (every > 0 && sequence % every === 0) wire.takes([wire.piece(100_000 + sequence)], 0)
    came.push(...wire.takes([wire.piece(sequence)]).filter((tag) => tag < 100_000))
  }
  came.push(...wire.takes([]))
  // At once where those that moved it were few.
  const lost = wrong === 8 ? 7 : 1007
  expect(came[0]).toBeLessThanOrEqual(100 + lost)
  expect(came).toEqual(Array.from({ length: came.length }, (_, i) => 2100 - came.length + i))
  wire.far.stop()
})
