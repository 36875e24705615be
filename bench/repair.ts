/**
 * What is lost and how late the rest is, on the virtual clock: rely, an ideal code of the same rate (as many repairs as losses mend them), and Reed-Solomon blocks of about
 * the same delay and of the longest there are. 10,000 packets/s of 1,200 bytes, 10 % repair, 5 % uniform loss; several seeds.
 */
import { Random } from '../src/dataplane/engine/random.ts'
import { type BenchResult, type BenchRow, runAlone } from './measure.ts'
import { ideal, type Outcome, simulated, type Traffic } from './support/coded-link.ts'

const BYTES = 1200
const LOSS = 0.05
const STEP = 10
const PACKETS = 200_000
const SEEDS = [1, 2, 3]
const TRAFFIC: Traffic = { bytes: BYTES, interval: 100_000, packets: PACKETS, tail: 5_000 }

function summary(outcomes: readonly Outcome[]): { residual: number; p99: number } {
  const lost = outcomes.reduce((sum, one) => sum + one.lost, 0)
  const delays = Float64Array.from(outcomes.flatMap(({ delays: all }) => [...all])).sort()
  return { residual: lost / (PACKETS * outcomes.length), p99: delays[Math.floor(delays.length * 0.99)] as number }
}

export async function bench(): Promise<BenchResult> {
  const lossy = (seed: number) => ({ uniform_loss: { loss_prob: LOSS, seed } })
  const rely = (seed: number) =>
    simulated(
      TRAFFIC,
      { rely_encoder: { repair_time_window: 100, repair_target_rate: 1 / STEP } },
      lossy(seed),
      { rely_decoder: { release_in_order: true } },
      seed,
    )
  const withoutFlaw = (seed: number) => {
    const random = new Random(seed)
    return ideal(TRAFFIC, 1 / STEP, Number.POSITIVE_INFINITY, () => random.chance(LOSS))
  }
  const blocks = (symbols: number) => (seed: number) =>
    simulated(
      TRAFFIC,
      { reed_solomon_encoder: { symbols, repair: symbols / STEP } },
      lossy(seed),
      { reed_solomon_decoder: {} },
      seed,
    )
  const rows: BenchRow[] = []
  const add = (label: string, run: (seed: number) => Outcome, goals?: readonly [string, string]): void => {
    const { residual, p99 } = summary(SEEDS.map(run))
    rows.push({ label: `${label}, still lost`, value: residual, unit: 'of all', ...(goals && { goal: goals[0] }) })
    rows.push({ label: `${label}, in-order p99`, value: p99 / 1e6, unit: 'ms', ...(goals && { goal: goals[1] }) })
  }
  add('rely, window 100 ms', rely, ['≤ 0.00001', '≤ 13'])
  add('ideal code', withoutFlaw)
  add('Reed-Solomon (130,13)', blocks(130))
  add('Reed-Solomon (230,23)', blocks(230))
  const packets = (PACKETS * SEEDS.length).toLocaleString('en-US')
  return { name: `repair: ${packets} packets of ${BYTES} B, 10,000/s, 10 % repair, 5 % loss, virtual clock`, rows }
}

await runAlone(import.meta.url, bench)
