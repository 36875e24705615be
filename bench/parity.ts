/** Two-dimensional parity over packets of 1,280 bytes against a loop in C: the addon's additions alone, and the components as a whole. */
import { spawnSync } from 'node:child_process'
import { Packets } from '../src/dataplane/engine/packets.ts'
import { native } from '../src/dataplane/native/native.ts'
import { type BenchResult, type BenchRow, inTurn, nativeProgram, runAlone } from './measure.ts'
import { decoderStage, encoderStage } from './support/coding.ts'

const BYTES = 1280
const SHAPES = [
  [8, 4],
  [10, 10],
  [16, 12],
] as const
const ROUNDS = 25
const MILLISECONDS = 8

/** The additions of one block as the components ask for them, over and over; nanoseconds per source packet. */
function additions(columns: number, rows: number) {
  const sources = columns * rows
  const packets = new Packets({ slots: sources + columns + rows, mtu: 1500 })
  packets.data.forEach((_, at) => {
    packets.data[at] = at * 31
  })
  const memory = native.memoryOpen(packets)
  const place = (slot: number) => slot * packets.slotBytes + packets.headroom
  const steps = Int32Array.from({ length: sources * 8 }, (_, n) => {
    const i = n >> 3
    const isRow = (n & 4) === 0
    const line = isRow ? Math.floor(i / columns) : rows + (i % columns)
    const isFirst = isRow ? i % columns === 0 : i < columns
    return [place(sources + line), isFirst ? 0 : BYTES, place(i), BYTES][n & 3]
  })
  const measure = () => {
    const start = native.now()
    const end = start + MILLISECONDS * 1e6
    let calls = 0
    let stop = start
    while (stop < end) {
      for (let i = 0; i < 8; i++) native.xorAdd(memory, steps, sources * 2)
      calls += 8
      stop = native.now()
    }
    return (stop - start) / calls / sources
  }
  return { measure, stop: () => native.memoryClose(memory) }
}

export async function bench(): Promise<BenchResult> {
  const program = nativeProgram('xor')
  const rows: BenchRow[] = []
  for (const [columns, lines] of SHAPES) {
    const loop = (): number => {
      const { stdout } = spawnSync(program, [BYTES, MILLISECONDS, columns, lines].map(String), { encoding: 'utf8' })
      return JSON.parse(stdout).ns
    }
    const fields = { columns, rows: lines }
    const product = additions(columns, lines)
    const encoder = encoderStage('parity_2d_encoder', fields, BYTES - 2, MILLISECONDS)
    // One source of each row is lost, none twice in a column where there are columns enough.
    const block = { sources: columns * lines, bytes: BYTES - 2, losses: lines }
    const lost = new Set(Array.from({ length: lines }, (_, row) => row * (columns + 1) + (row % columns)))
    const decoder = decoderStage('parity_2d', fields, block, [lost], MILLISECONDS)
    const ns = await inTurn(ROUNDS, {
      loop,
      product: product.measure,
      encoder: encoder.measure,
      decoder: decoder.measure,
    })
    product.stop()
    encoder.stop()
    decoder.stop()
    const unit = 'ns per source packet'
    const label = (what: string) => `${columns} × ${lines} ${what}`
    const row = (what: string, value: number, goal?: string): BenchRow => ({
      label: label(what),
      value,
      unit,
      ratio: ns.loop / value,
      ...(goal !== undefined && { goal }),
    })
    rows.push({ label: label('C loop'), value: ns.loop, unit })
    rows.push(row('additions', ns.product, '≥ 0.9'))
    rows.push(row('parity_2d_encoder, all of it', ns.encoder))
    rows.push(row('parity_2d_decoder, all of it, one lost of each row', ns.decoder))
  }
  return { name: `parity: ${BYTES} B packets against a loop in C`, rows }
}

await runAlone(import.meta.url, bench)
