/** `penstock fec`: advice on error correction. */
import { type Command, InvalidArgumentError } from 'commander'
import { Interrupted, SilentFailure, UsageFailure } from './failure.ts'
import { advise } from './fec-advice.ts'
import { spacing } from './fec-codes.ts'
import { adviceJson, configurationsOf, legend, type Question, trialsTable, usage, verdict } from './fec-report.ts'
import { MAX_PACKETS, RUNS } from './fec-trials.ts'
import { writeConfigurations } from './fec-write.ts'
import { fileName } from './file-name.ts'
import { duration, type Format, interruption, whole, withOutput } from './options.ts'
import { bitRate, milliseconds, share } from './quantities.ts'
import { MAX_JOBS } from './sweep-values.ts'
import { LiveRegion, print, printJson } from './terminal.ts'

interface AdviseOptions {
  loss: number
  burst: number
  rate: number
  packet: number
  budget: number
  overhead: number
  residual?: number
  packets?: number
  seconds?: number
  seed: number
  jobs?: number
  all?: boolean
  write?: string
  output: Format
}

const DEFAULT_PACKETS = 100_000
const MIN_PACKETS = 400
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

function questionOf(options: AdviseOptions): Question {
  const { loss, burst, rate, packet, budget, overhead, residual, packets, seconds, seed } = options
  if (!(loss > 0 && loss < 1))
    throw new UsageFailure('--loss: there is nothing to advise on without loss, or without any packet that comes')
  if (budget === 0) throw new UsageFailure('--budget: no code recovers anything in no time; give some, as 30ms')
  if (burst > 1 && loss / (1 - loss) > burst) {
    throw new UsageFailure(`--burst: ${loss * 100} % of loss has longer bursts than ${burst} packets on average`)
  }
  if (packets !== undefined && seconds !== undefined) {
    throw new UsageFailure('--packets and --seconds both say how much is simulated: give one')
  }
  const link = { loss, burst, rate, packet, budget, overhead }
  const bySeconds = seconds === undefined ? undefined : Math.round(seconds / spacing(link))
  if (bySeconds !== undefined && (bySeconds < MIN_PACKETS || bySeconds > MAX_PACKETS)) {
    throw new UsageFailure(
      `--seconds: these are ${bySeconds} packets; ${MIN_PACKETS} to ${MAX_PACKETS} can be simulated`,
    )
  }
  return {
    link,
    aim: { residual: residual ?? loss / 2, isCheapest: residual !== undefined },
    effort: { packets: packets ?? bySeconds ?? DEFAULT_PACKETS, seed },
  }
}

async function adviseOn(options: AdviseOptions): Promise<void> {
  const question = questionOf(options)
  const { defaultJobs, SimulationPool } = await import('./simulate-pool.ts')
  const live = new LiveRegion(process.stderr)
  const signal = interruption()
  const jobs = options.jobs ?? defaultJobs()
  const pool = new SimulationPool({ jobs, signal, onDone: (done) => live.draw(`${done} simulations are done`) })
  const { link, aim, effort } = question
  const advice = await advise(pool, link, aim, effort).finally(async () => {
    live.clear()
    await pool.close()
  })
  if (advice === undefined || signal.aborted) {
    throw new Interrupted('interrupted: there is no advice yet', signal.reason)
  }
  const { trials, best } = advice
  if (best !== undefined && options.write !== undefined) {
    await writeConfigurations(options.write, configurationsOf(best, question))
  }
  if (options.output === 'json') printJson(adviceJson(advice, question))
  else {
    print(`${trialsTable(trials, options.all ?? false)}\n\n${legend(question)}\n\n${verdict(advice, question)}`)
    if (best !== undefined) {
      const { 'sender.json': sender, 'receiver.json': receiver } = configurationsOf(best, question)
      if (options.write === undefined) {
        print(`\nSender:\n${JSON.stringify(sender, null, 2)}\n\nReceiver:\n${JSON.stringify(receiver, null, 2)}`)
        print('\n--write DIRECTORY makes files of both, and of the simulation.')
      } else print(`\n${usage(best, question, options.write)}`)
    }
  }
  if (best === undefined) throw new SilentFailure()
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
    .option('--residual <share>', 'most loss that may stay (half of --loss)', share('A residual loss'))
    .option('--packets <number>', `packets for each code (${DEFAULT_PACKETS})`, whole(MIN_PACKETS, MAX_PACKETS))
    .option('--seconds <time>', 'the same as time of the flow: 60s', duration)
    .option('-s, --seed <number>', 'seed of the first run', whole(0, MAX_FIRST_SEED), 1)
    .option('-j, --jobs <number>', 'simulations at once (one for each CPU)', whole(1, MAX_JOBS))
    .option('--all', 'in the table, every setting that was tried')
    .option('--write <directory>', 'write sender.json, receiver.json and simulation.json of the best', fileName)
    .action(adviseOn)
}
