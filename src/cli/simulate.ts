/** `penstock simulate`: a pipeline on the virtual clock, and its metrics when the time is up. */
import type { Command } from 'commander'
import { components } from '../dataplane/components/registry.ts'
import { NS_PER_MS } from '../dataplane/engine/clock.ts'
import { layoutOf } from '../dataplane/engine/graph.ts'
import { simulate } from '../dataplane/engine/simulate.ts'
import { spanText } from './durations.ts'
import { Failure } from './failure.ts'
import { type MetricRow, metricsTable } from './metrics-table.ts'
import { duration, type Format, loadPipeline, whole, withOutput } from './options.ts'
import { print, printJson } from './terminal.ts'

export function addSimulate(program: Command): void {
  withOutput(program.command('simulate'))
    .summary('run a pipeline on a virtual clock, without sockets')
    .description(
      'Runs a pipeline on a virtual clock, without sockets and with seeded randomness: minutes in milliseconds, ' +
        'and the same seed gives the same result.',
    )
    .argument('<config.json>', 'the configuration, - for standard input')
    .requiredOption('-d, --duration <time>', 'virtual time to run: 60s, 500ms, 5m', duration)
    .option('-s, --seed <number>', 'seeds every component that has no seed of its own', whole(0, 2 ** 31 - 1), 1)
    .option('-v, --verbose', 'show the whole log of the run on stderr, not only warnings and errors')
    .action(async (file: string, options: { duration: number; seed: number; output: Format; verbose?: boolean }) => {
      const config = await loadPipeline(file)
      const { end, metrics, elapsed } = simulate(config, {
        registry: components,
        duration: options.duration * NS_PER_MS,
        seed: options.seed,
        onLog: ({ timestamp, level, component, message }) => {
          if (!options.verbose && level !== 'WARN' && level !== 'ERROR' && level !== 'FATAL') return
          const at = (timestamp / 1000).toFixed(6)
          process.stderr.write(`${at} ${level} ${component ? `${component}: ` : ''}${message}\n`)
        },
      })
      const ending = { outcome: end.outcome === 'STOPPED' ? 'DURATION' : end.outcome, error: end.error }
      if (options.output === 'json') {
        printJson({ ...ending, elapsedMs: elapsed / NS_PER_MS, seed: options.seed, metrics })
      } else {
        const { entries } = layoutOf(config, components).metrics
        const rows: MetricRow[] = entries.flatMap((entry) => {
          const value = metrics[entry.path]?.[entry.name]
          return value === undefined ? [] : [{ ...entry, value }]
        })
        const keys = new Map(Object.entries(config.components).map(([name, { key }]) => [name, key]))
        print(metricsTable(rows, keys))
        const how = ending.outcome === 'COMPLETED' ? 'completed' : 'time was up'
        if (end.outcome !== 'FAILED') {
          if (!entries.some(({ path, name, unit }) => unit === 'packets' && (metrics[path]?.[name] ?? 0) > 0)) {
            print(
              '\nNothing moved: in a simulation sockets hear each other only; put a traffic source into the pipeline.',
            )
          }
          print(`\n${how} after ${spanText(elapsed / (NS_PER_MS * 1000))} of virtual time, seed ${options.seed}`)
        }
      }
      if (end.outcome === 'FAILED') throw new Failure(`the simulation failed: ${end.error}`)
    })
}
