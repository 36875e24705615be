/** `penstock simulate`: a pipeline on the virtual clock, and its metrics when the time is up. */
import type { Command } from 'commander'
import { components } from '../dataplane/components/registry.ts'
import { NS_PER_MS } from '../dataplane/engine/clock.ts'
import type { AnyComponent } from '../dataplane/engine/component.ts'
import { simulate } from '../dataplane/engine/simulate.ts'
import { spanText } from './durations.ts'
import { Failure } from './failure.ts'
import { type MetricRow, metricsTable } from './metrics-table.ts'
import { duration, type Format, loadPipeline, whole, withOutput } from './options.ts'
import { print, printJson } from './terminal.ts'

/** Units and kinds are the definitions'; port counters are the engine's. */
function describe(key: string, name: string): { unit: string; kind: 'counter' | 'gauge' } {
  const { metrics } = components.get(key) as AnyComponent
  const declared = metrics[name] ?? metrics[name.replace(/_(count|min|max|mean|p50|p90|p99)$/, '')]
  if (declared) {
    const unit = declared.type === 'histogram' && name.endsWith('_count') ? '' : declared.unit
    return { unit, kind: declared.type === 'counter' ? 'counter' : 'gauge' }
  }
  return { unit: name.endsWith('_bytes') ? 'bytes' : 'packets', kind: 'counter' }
}

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
        const rows: MetricRow[] = []
        for (const [path, values] of Object.entries(metrics)) {
          const { key } = config.components[path]
          for (const [name, value] of Object.entries(values)) rows.push({ path, name, value, ...describe(key, name) })
        }
        const keys = new Map(Object.entries(config.components).map(([name, { key }]) => [name, key]))
        print(metricsTable(rows, keys))
        const how = ending.outcome === 'COMPLETED' ? 'completed' : 'time was up'
        if (end.outcome !== 'FAILED') {
          if (
            Object.entries(metrics).every(
              ([, values]) => !Object.keys(values).some((name) => name.endsWith('_packets') && values[name] > 0),
            )
          ) {
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
