/** Runs a sweep on all CPUs and prints what it finds. */
import { NS_PER_MS } from '../dataplane/engine/clock.ts'
import { Failure, Interrupted } from './failure.ts'
import { interruption } from './options.ts'
import { defaultJobs, SimulationPool } from './simulate-pool.ts'
import { MAX_TOLD, type SweepPlan } from './sweep.ts'
import { sweepCaption, sweepCsv, sweepLines, sweepTable } from './sweep-report.ts'
import type { Row } from './sweep-rows.ts'
import { assignmentsOf } from './sweep-settings.ts'
import { LiveRegion, named, paint, print } from './terminal.ts'

/** Components that draw the same numbers in every run: worth a word where several seeds are asked for. */
function fixedSeeds({ combinations: [first], repeat, settings }: SweepPlan): void {
  if (repeat === 1) return
  const own = Object.entries(first?.config.components ?? {}).flatMap(([name, { config }]) =>
    config.seed === undefined || settings.some(({ target }) => target === `${name}.seed`) ? [] : [name],
  )
  if (own.length === 0) return
  const cure = own.map((name) => `--set ${name}.seed=null`).join(' ')
  const label = paint('note:', 'yellow', process.stderr)
  process.stderr.write(
    `${label} with seeds of their own, these draw the same in every run: ${own.join(', ')}; ${cure}\n`,
  )
}

export interface RunSweepOptions {
  /** Virtual time of each run, milliseconds. */
  readonly duration: number
  /** Simulations at once; absent: one for each CPU. */
  readonly jobs: number | undefined
  readonly output: 'table' | 'csv' | 'json'
}

const REPORTS = { table: sweepTable, csv: sweepCsv, json: sweepLines }

/** Runs it and prints what was found, all of it or what was done when a signal came. */
export async function runSweep(
  plan: SweepPlan,
  { duration, jobs = defaultJobs(), output }: RunSweepOptions,
): Promise<void> {
  const { combinations, repeat, seed } = plan
  fixedSeeds(plan)
  const tasks = combinations.flatMap(({ config }, i) =>
    Array.from({ length: repeat }, (_, j) => ({ config, duration: duration * NS_PER_MS, seed: seed + i * repeat + j })),
  )
  const live = new LiveRegion(process.stderr)
  const signal = interruption()
  const pool = new SimulationPool({
    jobs,
    signal,
    onDone: (done) => live.draw(`${done} of ${tasks.length} runs are done`),
  })
  live.draw(`0 of ${tasks.length} runs are done`)
  const results = await pool.run(tasks).finally(() => live.clear())
  const rows: Row[] = combinations.flatMap(({ values }, i) => {
    const runs = tasks.slice(i * repeat, (i + 1) * repeat).flatMap((task, j) => {
      const result = results[i * repeat + j]
      return result === undefined ? [] : [{ seed: task.seed, result }]
    })
    return runs.length === 0 ? [] : [{ combination: values, runs }]
  })
  const [first] = rows
  if (first !== undefined) print(REPORTS[output](rows, plan))
  const caption = first === undefined || output !== 'table' ? '' : sweepCaption(rows, plan)
  if (caption !== '') print(`\n${caption}`)
  await pool.close()
  if (signal.aborted) {
    const done = results.filter((result) => result !== undefined).length
    throw new Interrupted(`interrupted: ${done} of ${tasks.length} runs are done`, signal.reason)
  }
  complainOf(rows, plan)
}

/** Fails when runs did. */
function complainOf(rows: readonly Row[], { settings }: SweepPlan): void {
  const failures = rows.flatMap(({ combination, runs }) =>
    runs.flatMap(({ seed, result: { end } }) =>
      end.outcome === 'FAILED'
        ? [named(`${[...assignmentsOf(settings, combination), `seed ${seed}`].join(' ')}: ${end.error}`)]
        : [],
    ),
  )
  if (failures.length === 0) return
  const told = failures.slice(0, MAX_TOLD)
  const more = failures.length > told.length ? [`and ${failures.length - told.length} more`] : []
  throw new Failure([`${failures.length} runs failed:`, ...told, ...more].join('\n'))
}
