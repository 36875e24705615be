/** `penstock simulate`: pipelines on the virtual clock. */
import type { Command } from 'commander'
import { collect, duration, whole, withAllMetrics, withOutput } from './options.ts'
import type { SimulateCommandOptions } from './simulate-action.ts'
import { MAX_JOBS, MAX_RUNS, MAX_SEED } from './sweep-values.ts'

export function addSimulate(program: Command): void {
  withAllMetrics(withOutput(program.command('simulate'), ['table', 'json', 'yaml', 'csv']))
    .summary('run pipelines on a virtual clock, without sockets')
    .description(
      'Runs a pipeline on a virtual clock, without sockets and with seeded randomness: minutes in milliseconds, ' +
        'and the same seed gives the same result. Several run at the same time, joined by their simulated networks; ' +
        'the first has the seed that is given, the others seeds drawn from it.\n\n' +
        'With --set of several values, --repeat, --metric, --kpi or -o csv it is a sweep: all combinations of values run, on all CPUs, each with a ' +
        'seed of its own, and there is one table with a row for each. See docs/simulate.md.',
    )
    .argument('<config.json...>', 'the configurations, - for standard input')
    .requiredOption('-d, --duration <time>', 'virtual time to run: 60s, 500ms, 5m', duration)
    .option('-s, --seed <number>', 'seeds every component that has no seed of its own', whole(0, MAX_SEED), 1)
    .option(
      '--set <component.field=value,…>',
      'set a field, or a variable: one value, several, 1..5, or 0..0.1:0.02; may be given again, all combinations are run',
      collect,
    )
    .option('--metric <name>', 'a column of the sweep: component.metric; may be given again', collect)
    .option('--kpi <id>', 'a column: a KPI by its id, or id=expression; may be given again', collect)
    .option('--repeat <number>', 'seeds for each combination: mean ± standard deviation', whole(1, MAX_RUNS))
    .option('--replay <seed>', 'run only the run of the sweep with this seed, and show all of it', whole(0, MAX_SEED))
    .option('-j, --jobs <number>', 'simulations of a sweep at once (one for each CPU)', whole(1, MAX_JOBS))
    .option('-v, --verbose', 'show the whole log of the run on stderr, not only warnings and errors')
    .action(async (files: string[], options: SimulateCommandOptions) => {
      const { simulate } = await import('./simulate-action.ts')
      await simulate(files, options)
    })
}
