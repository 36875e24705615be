/** `penstock fec`: advice on error correction. */
import { type Command, InvalidArgumentError } from 'commander'
import type { AdviseOptions } from './fec-action.ts'
import { DEFAULT_PACKETS, MAX_PACKETS, MIN_PACKETS, RUNS } from './fec-effort.ts'
import { fileName } from './file-name.ts'
import { duration, whole, withOutput } from './options.ts'
import { bitRate, milliseconds, share } from './quantities.ts'
import { MAX_JOBS } from './sweep-values.ts'

/** Beyond it a burst is no loss that packets sent meanwhile could mend. */
const MAX_BURST = 1000
/** Greatest seed of which the last of the runs still has one. */
const MAX_FIRST_SEED = 2 ** 31 - 1 - 2 * RUNS

/** Reads the mean length of bursts. */
function burstLength(given: string): number {
  const value = Number(given)
  if (!/^\d+(\.\d+)?$/.test(given) || value < 1 || value > MAX_BURST) {
    throw new InvalidArgumentError(`Expected the mean packets lost in a row, from 1 to ${MAX_BURST}.`)
  }
  return value
}

export function addFec(program: Command): void {
  const fec = program.command('fec').summary('advice on error correction').description('Advice on error correction.')
  withOutput(fec.command('advise'))
    .summary('which code, with which parameters, for a link')
    .description(
      'Simulates the codes that there are, with parameters that fit, over a link that loses packets; shows residual loss, overhead and delay ' +
        'of each and the configuration of the best. Of two that lose as little the cheaper is the better; with --residual the cheapest that reaches it ' +
        'is the best. Exits with 1 when none reaches it, and says what would help. See docs/fec-advise.md.',
    )
    .requiredOption('--loss <share>', 'share of the packets that are lost: 2%, 0.02', share('A loss'))
    .requiredOption('--rate <rate>', 'payload to be sent, bit/s: 500k, 10M', bitRate)
    .requiredOption('--packet <bytes>', 'payload of each packet', whole(32, 65_535))
    .requiredOption('--budget <time>', 'longest delay that the code may add to a packet: 30ms', milliseconds)
    .option('--burst <packets>', 'mean packets lost in a row', burstLength, 1)
    .option('--overhead <share>', 'most bytes beyond the payload', share('An overhead', 4), 0.2)
    .option('--in-order', 'hand packets over in their order, for receivers that do not sort: plain MPEG-TS')
    .option('--residual <share>', 'most loss that may stay (half of --loss)', share('A residual loss'))
    .option('--packets <number>', `packets for each code (${DEFAULT_PACKETS})`, whole(MIN_PACKETS, MAX_PACKETS))
    .option('--seconds <time>', 'the same as time of the flow: 60s', duration)
    .option('-s, --seed <number>', 'seed of the first run', whole(0, MAX_FIRST_SEED), 1)
    .option('-j, --jobs <number>', 'simulations at once (one for each CPU)', whole(1, MAX_JOBS))
    .option('--all', 'in the table, every setting that was tried')
    .option('--write <directory>', 'write sender.json, receiver.json and simulation.json of the best', fileName)
    .action(async (options: AdviseOptions) => {
      const { adviseOn } = await import('./fec-action.ts')
      await adviseOn(options)
    })
}
