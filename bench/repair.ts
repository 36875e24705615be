/**
 * What is lost and how late the rest is, on the virtual clock: rely, an ideal code of the same rate (as many repairs as losses mend them), and Reed-Solomon blocks of about
 * the same delay and of the longest there are. 10,000 packets/s of 1,200 bytes, 10 % repair, 5 % uniform loss; several seeds.
 */
import { components } from '../src/dataplane/components/registry.ts'
import { checkPipelineConfig } from '../src/dataplane/engine/check.ts'
import { Random } from '../src/dataplane/engine/random.ts'
import { Simulation } from '../src/dataplane/engine/simulate.ts'
import { type BenchResult, type BenchRow, runAlone } from './measure.ts'
import { Deliveries } from './support/deliveries.ts'

const BYTES = 1200
const INTERVAL_NS = 100_000
const LOSS = 0.05
const STEP = 10
const PACKETS = 200_000
const SEEDS = [1, 2, 3]

interface Outcome {
  lost: number
  /** In-order delay, ns. */
  delays: Float64Array
}

/** Sends packets through an encoder, the loss and a decoder. */
function simulated(encoder: Record<string, unknown>, decoder: Record<string, unknown>, seed: number): Outcome {
  const deliveries = new Deliveries(BYTES, INTERVAL_NS, PACKETS)
  const registry = new Map([...components, ...deliveries.components])
  const pipeline = {
    source: { bench_source: { output: 'in' } },
    encoder,
    loss: { uniform_loss: { input: 'wire', output: 'lossy', loss_prob: LOSS, seed } },
    decoder,
    end: { bench_deliveries: { input: 'out' } },
  }
  const { config, problems } = checkPipelineConfig(JSON.stringify({ engine_config: { pipeline } }), registry)
  if (!config) throw new Error(problems.map(({ pointer, message }) => `${pointer}: ${message}`).join('; '))
  const simulation = new Simulation(config, { registry, seed })
  simulation.advanceTo(PACKETS * INTERVAL_NS + 1e9)
  simulation.stop()
  return deliveries.inOrder()
}

/** As many repairs as packets are missing mend all of those, however long that takes. */
function ideal(seed: number): Outcome {
  const random = new Random(seed)
  const out = new Float64Array(PACKETS).fill(Number.NaN)
  let missing: number[] = []
  let repairs = 0
  for (let n = 0; n < PACKETS; n++) {
    const now = n * INTERVAL_NS
    if (random.chance(LOSS)) missing.push(n)
    else out[n] = now
    if (n % STEP !== STEP - 1 || random.chance(LOSS) || missing.length === 0 || ++repairs < missing.length) continue
    for (const mended of missing) out[mended] = now
    missing = []
    repairs = 0
  }
  return Deliveries.inOrderOf(out, INTERVAL_NS)
}

function summary(outcomes: readonly Outcome[]): { residual: number; p99: number } {
  const lost = outcomes.reduce((sum, one) => sum + one.lost, 0)
  const delays = Float64Array.from(outcomes.flatMap(({ delays: all }) => [...all])).sort()
  return { residual: lost / (PACKETS * outcomes.length), p99: delays[Math.floor(delays.length * 0.99)] as number }
}

export async function bench(): Promise<BenchResult> {
  const rely = (seed: number) =>
    simulated(
      { rely_encoder: { input: 'in', output: 'wire', repair_time_window: 100, repair_target_rate: 1 / STEP } },
      { rely_decoder: { input: 'lossy', output: 'out', release_in_order: true } },
      seed,
    )
  const blocks = (symbols: number) => (seed: number) =>
    simulated(
      { reed_solomon_encoder: { input: 'in', output: 'wire', symbols, repair: symbols / STEP } },
      { reed_solomon_decoder: { input: 'lossy', output: 'out' } },
      seed,
    )
  const rows: BenchRow[] = []
  const add = (label: string, run: (seed: number) => Outcome, goals?: readonly [string, string]): void => {
    const { residual, p99 } = summary(SEEDS.map(run))
    rows.push({ label: `${label}, still lost`, value: residual, unit: 'of all', ...(goals && { goal: goals[0] }) })
    rows.push({ label: `${label}, in-order p99`, value: p99 / 1e6, unit: 'ms', ...(goals && { goal: goals[1] }) })
  }
  add('rely, window 100 ms', rely, ['≤ 0.00001', '≤ 13'])
  add('ideal code', ideal)
  add('Reed-Solomon (130,13)', blocks(130))
  add('Reed-Solomon (230,23)', blocks(230))
  const packets = (PACKETS * SEEDS.length).toLocaleString('en-US')
  return { name: `repair: ${packets} packets of ${BYTES} B, 10,000/s, 10 % repair, 5 % loss, virtual clock`, rows }
}

await runAlone(import.meta.url, bench)
