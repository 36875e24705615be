/** Measures codes on a simulated link: residual loss and how sure it is, overhead, delay. */
import { components } from '../dataplane/components/registry.ts'
import { checkPipelineConfig } from '../dataplane/engine/check.ts'
import { NS_PER_MS } from '../dataplane/engine/clock.ts'
import { Failure } from './failure.ts'
import type { Candidate, Link } from './fec-codes.ts'
import { type Effort, RUNS } from './fec-effort.ts'
import { drainOf, simulationOf, timeFor } from './fec-pipelines.ts'
import type { SimulationPool } from './simulate-pool.ts'
import type { SimulationResult } from './simulate-run.ts'
import { lossUpperLimit, mean } from './statistics.ts'

/** What was seen of a code. Losses are packets that did not come within the budget, of those sent. */
export interface Trial {
  /** Undefined: the bare link. */
  readonly candidate: Candidate | undefined
  readonly sent: number
  readonly lost: number
  readonly residual: number
  /** Upper limit of the residual with 95 % confidence. */
  readonly upper: number
  /** Bytes sent beyond those of the payload, as a share of them. */
  readonly overhead: number
  /** ms, mean over the runs; of packets that came. */
  readonly p50: number
  readonly p99: number
  /** Of the runs, each with as many packets. */
  readonly seeds: readonly number[]
}

/** The checked configuration that a trial runs. */
function configOf(link: Link, candidate: Candidate | undefined, packets: number) {
  const { config, problems } = checkPipelineConfig(JSON.stringify(simulationOf(link, candidate, packets)), components)
  if (config !== null) return config
  const what = problems.map(({ pointer, message }) => `${pointer}: ${message}`).join('\n')
  throw new Failure(`${candidate?.code ?? 'the link'} cannot be simulated:\n${what}`)
}

const figure = ({ metrics }: SimulationResult, path: string, name: string): number => metrics[path]?.[name] ?? 0

function trialOf(candidate: Candidate | undefined, link: Link, seeds: number[], results: SimulationResult[]): Trial {
  for (const { end } of results) {
    if (end.outcome === 'FAILED') throw new Failure(`${candidate?.code} ${candidate?.settings} failed: ${end.error}`)
  }
  const sent = results.map((result) => figure(result, 'source', 'output_packets'))
  const lost = results.map((result, i) => {
    const inTime = figure(result, 'sink', 'probe_packets') - figure(result, 'sink', 'late_packets')
    return (sent[i] as number) - inTime
  })
  const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0)
  const payload = sum(results.map((result) => figure(result, 'source', 'output_bytes')))
  const carried = sum(results.map((result) => figure(result, 'loss', 'input_bytes')))
  const delay = (name: string) => mean(results.map((result) => figure(result, 'sink', name))) / NS_PER_MS
  return {
    candidate,
    sent: sum(sent),
    lost: sum(lost),
    residual: sum(lost) / sum(sent),
    upper: lossUpperLimit({ lost, sent: sum(sent), together: Math.max(candidate?.together ?? 1, link.burst) }),
    overhead: carried / payload - 1,
    p50: delay('delay_p50'),
    p99: delay('delay_p99'),
    seeds,
  }
}

/** The trials of `candidates` in their order; undefined when the pool was told to stop. */
export async function measure(
  pool: SimulationPool,
  link: Link,
  candidates: readonly (Candidate | undefined)[],
  { packets, seed }: Effort,
): Promise<Trial[] | undefined> {
  const each = Math.ceil(packets / RUNS)
  const duration = (timeFor(each, link) + drainOf(link)) * NS_PER_MS
  const seeds = Array.from({ length: RUNS }, (_, i) => seed + i)
  const tasks = candidates.flatMap((candidate) => {
    const config = configOf(link, candidate, each)
    return seeds.map((each) => ({ config, duration, seed: each }))
  })
  const results = (await pool.run(tasks)).filter((result) => result !== undefined)
  if (results.length < tasks.length) return undefined
  return candidates.map((candidate, i) => trialOf(candidate, link, seeds, results.slice(i * RUNS, (i + 1) * RUNS)))
}
