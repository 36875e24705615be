/** The vectors of rlnc, kodok and parity_2d: the encoder makes exactly these packets, and the decoder gives the payloads without some of them. */
import { readFileSync, writeFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { drive } from '../harness/component.ts'

interface Vector {
  /** Fields of the encoder, `input` and `output` left out. */
  encoder: Record<string, unknown>
  /** Seed of the simulated run: session and seeds of repairs follow from it. */
  seed: number
  /** Fed in batches, each followed by a FLUSH; hex. */
  payloads: string[][]
  /** What the encoder sends; hex. */
  packets: string[]
  /** Indices of packets that the decoder does not get: all payloads come out nevertheless. */
  lost: number[]
}

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')
const unhex = (text: string) => new Uint8Array(Buffer.from(text, 'hex'))
const fileOf = (code: string) => new URL(`${code}.json`, import.meta.url)

const text = (n: number, bytes: number) => 'payload of packet '.concat(String(n), ' ').repeat(9).slice(0, bytes)
const payloads = (from: number, lengths: readonly number[]) =>
  lengths.map((bytes, i) => hex(Buffer.from(text(from + i, bytes))))

const SCENARIOS: Readonly<Record<string, Omit<Vector, 'packets'>>> = {
  rlnc: {
    encoder: { symbols: 5, repair: 3 },
    seed: 1,
    payloads: [payloads(0, [20, 33, 0, 7, 48, 12, 25]), payloads(7, [30])],
    lost: [1, 2, 4, 8],
  },
  kodok: {
    encoder: {
      repair_configs: [
        { source_packets: 3, repair_packets: 1 },
        { source_packets: 6, repair_packets: 2 },
      ],
    },
    seed: 2,
    payloads: [payloads(0, [20, 33, 0, 7, 48, 12, 25, 9, 10]), payloads(9, [30, 31])],
    lost: [1, 5, 6, 10],
  },
  parity_2d: {
    encoder: { columns: 3, rows: 2 },
    seed: 3,
    payloads: [payloads(0, [20, 33, 0, 7, 48, 12, 25, 9, 10, 11]), payloads(10, [30])],
    lost: [0, 1, 5, 12],
  },
}

function encode(code: string, { encoder, seed, payloads }: Omit<Vector, 'packets'>): string[] {
  const bench = drive({ enc: { [`${code}_encoder`]: { input: 'in', output: 'out', ...encoder } } }, { seed })
  for (const batch of payloads) {
    bench.send('in', batch.map(unhex))
    bench.notify('in', 'FLUSH')
  }
  const packets = bench.take('out').map(({ bytes }) => hex(bytes))
  bench.stop()
  return packets
}

function read(name: string): Vector {
  return JSON.parse(readFileSync(fileOf(name), 'utf8'))
}

/** The decoder gives all payloads without the packets that are lost. */
function decode(code: string, vector: Vector): void {
  const bench = drive({ dec: { [`${code}_decoder`]: { input: 'in', output: 'out' } } })
  expect(vector.lost.length).toBeGreaterThan(0)
  for (const [n, packet] of vector.packets.entries()) if (!vector.lost.includes(n)) bench.send('in', unhex(packet))
  const got = bench.take('out').map(({ bytes }) => hex(bytes))
  expect(got.sort()).toEqual(vector.payloads.flat().sort())
  expect(bench.metrics().dec.recovered_packets).toBeGreaterThan(2)
  bench.stop()
}

test.each(Object.keys(SCENARIOS))('%s', (code) => {
  if (process.env.PENSTOCK_WRITE_VECTORS !== undefined) {
    const scenario = SCENARIOS[code]
    writeFileSync(fileOf(code), `${JSON.stringify({ ...scenario, packets: encode(code, scenario) }, null, 2)}\n`)
  }
  const vector = read(code)
  expect(encode(code, vector)).toEqual(vector.packets)
  decode(code, vector)
})

test('rlnc with seeds that do not count up, as other encoders may have them', () => {
  decode('rlnc', read('rlnc-any-seeds'))
})
