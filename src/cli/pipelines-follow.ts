/** `penstock pipelines logs`, `telemetry` and `tap`: what a run says, what it measures, and its packets. */
import { Option } from 'commander'
import { Failure } from './failure.ts'
import { followLog } from './follow.ts'
import { whole, withAllMetrics } from './options.ts'
import { LINK_TYPES } from './pcapng-writer.ts'
import { type AddVerb, type Common, PIPELINE } from './pipelines-options.ts'
import { type TapOptions, tap } from './tap.ts'
import { findRun, targetOf } from './target.ts'
import { followTelemetry } from './telemetry.ts'

export function addLogs(add: AddVerb): void {
  add('logs', 'show the log of a run, until it ends')
    .argument('[pipeline]', PIPELINE)
    .option('--run <id>', 'a run, instead of the current one of a pipeline')
    .option('-n, --lines <number>', 'past lines shown first', whole(0, 1_000_000), 100)
    .action(async (name: string | undefined, options: Common & { run?: string; lines: number }) => {
      const { client, node } = await targetOf(options)
      await followLog(client, node, await findRun(client, node, name, options.run), options)
    })
}

export function addTelemetry(add: AddVerb): void {
  withAllMetrics(add('telemetry', 'show KPIs and metrics of a run, live, and a summary once it has ended'))
    .description(
      'Shows the KPIs and metrics of a run, live, and a summary once it has ended; exit code 1 when it failed. With -o json a line for each ' +
        'sample, {timestamp, kpis, metrics}, and one for the end, {outcome, error, seconds, kpis, metrics}.',
    )
    .argument('[pipeline]', PIPELINE)
    .argument('[component...]', 'only these components')
    .option('--run <id>', 'a run, instead of the current one of a pipeline')
    .option('-c, --count <number>', 'end after this many samples', whole(1, 1_000_000_000))
    .action(
      async (
        name: string | undefined,
        parts: string[],
        options: Common & { run?: string; count?: number; all?: boolean },
      ) => {
        const { client, node } = await targetOf(options)
        const run = await findRun(client, node, name, options.run)
        const ended = await followTelemetry(client, node, run, { ...options, components: parts })
        if (ended?.outcome === 'FAILED') throw new Failure(`the run failed: ${ended.error ?? 'its log says more'}`)
      },
    )
}

export function addTap(add: AddVerb): void {
  add('tap', 'show packets on their way through a run, or write them as pcapng')
    .description(
      'Copies packets that leave a component of a run, or with --input those that come to it. The run does not wait: what finds no room is ' +
        'dropped and counted. Without --write a line for each packet; with -o json {time, link, length, data}.',
    )
    .argument('<pipeline>', PIPELINE)
    .argument('<component>', 'the name of a component in the configuration')
    .option('--run <id>', 'a run, instead of the current one of the pipeline')
    .option('--input', 'packets that come to the component')
    .option('-w, --write <file>', 'write them as pcapng; - is standard output, as in … -w - | tshark -r -')
    .option('-c, --count <number>', 'end after this many packets', whole(1, 1_000_000_000))
    .option('-s, --snap-length <bytes>', 'bytes kept of each packet', whole(1, 65_535))
    .addOption(
      new Option(
        '--link-type <type>',
        'what pcapng calls the packets; left out: raw (IP) where they look like it',
      ).choices(Object.keys(LINK_TYPES)),
    )
    .action(
      async (name: string, component: string, options: Common & Omit<TapOptions, 'component'> & { run?: string }) => {
        const { client, node } = await targetOf(options)
        await tap(client, node, await findRun(client, node, name, options.run), { ...options, component })
      },
    )
}
