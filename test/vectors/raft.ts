/** The dialogue of two ends of a raft that raft.json records: packets of the first, some of which never come. */
import { type Bench, drive, payload } from '../harness/component.ts'

const MS = 1e6
const PAYLOADS = 120
const SEED = 1
/** Too short for anything to be sent again: repairs have to do. */
const TIMEOUT_MS = 8
/** Every so many payloads one is too long for a packet of a carrier. */
const LONG_EVERY = 20
const LONG_BYTES = 1500

export interface RaftVectors {
  /** What both ends have in their configuration: one realtime stream, ON_ORDERED, with this timeout in ms, and two carriers. */
  stream: { stream_handle: number; timeout: number }
  carriers: number[]
  /** Hex: one goes in each millisecond from 0 on. */
  payloads: string[]
  /** What both ends send, in order: at which time (ms), on which carrier; `lost` ones never come. The payloads go from the first to the second. */
  packets: { at: number; from: 'first' | 'second'; carrier: number; hex: string; lost: boolean }[]
  /** Payloads that come out at the other end, each packet coming 1 ms after it was sent. */
  delivered: string[]
}

const STREAM = { stream_handle: 5, timeout: TIMEOUT_MS }
const CARRIERS = [1, 2]
const hexOf = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')

function end(seed: number): Bench {
  const { stream_handle, timeout } = STREAM
  const carriers = CARRIERS.map((carrier_handle, i) => ({ input: `come ${i}`, output: `go ${i}`, carrier_handle }))
  const streams = [{ input: 'in', output: 'out', stream_handle, realtime_stream: { timeout } }]
  return drive({ it: { raft: { streams, carriers } } }, { seed })
}

const outOf = (bench: Bench): string[] => bench.take('out').map(({ bytes }) => hexOf(bytes))

/** Lets two ends talk, losing every sixth data packet of the first on its first carrier. */
export function dialogue(): RaftVectors {
  const first = end(SEED)
  const second = end(SEED + 1)
  const vectors: RaftVectors = { stream: STREAM, carriers: CARRIERS, payloads: [], packets: [], delivered: [] }
  let data = 0
  for (let at = 0; at < PAYLOADS + 2 * TIMEOUT_MS; at++) {
    if (at < PAYLOADS) {
      const bytes = payload(at % LONG_EVERY === LONG_EVERY - 1 ? LONG_BYTES : 8 + ((at * 7) % 30), at)
      vectors.payloads.push(hexOf(bytes))
      first.send('in', bytes)
    }
    for (const i of [0, 1]) {
      const sent = first.take(`go ${i}`).map(({ bytes }) => {
        const lost = bytes[0] === 0xd0 && i === 0 && ++data % 6 === 0
        vectors.packets.push({ at, from: 'first', carrier: CARRIERS[i] as number, hex: hexOf(bytes), lost })
        return { bytes, lost }
      })
      const back = second.take(`go ${i}`).map(({ bytes }) => {
        vectors.packets.push({ at, from: 'second', carrier: CARRIERS[i] as number, hex: hexOf(bytes), lost: false })
        return bytes
      })
      first.advance(0)
      second.send(
        `come ${i}`,
        sent.filter(({ lost }) => !lost).map(({ bytes }) => bytes),
      )
      first.send(`come ${i}`, back)
    }
    first.advance(MS)
    second.advance(MS)
    vectors.delivered.push(...outOf(second))
  }
  first.stop()
  second.stop()
  return vectors
}

/** What another end gives out when it hears the packets that are not lost, without anybody listening to what it says. */
export function heardAlone({ packets }: RaftVectors): string[] {
  const bench = end(SEED + 7)
  const delivered: string[] = []
  for (let at = 0; at < PAYLOADS + 2 * TIMEOUT_MS; at++) {
    for (const [i, carrier] of CARRIERS.entries()) {
      const come = packets.filter(
        (packet) => packet.from === 'first' && packet.at === at && packet.carrier === carrier && !packet.lost,
      )
      bench.send(
        `come ${i}`,
        come.map(({ hex }) => Uint8Array.from(Buffer.from(hex, 'hex'))),
      )
    }
    bench.advance(MS)
    delivered.push(...outOf(bench))
  }
  bench.stop()
  return delivered
}
