/** What `penstock fec advise` does: advice on error correction. */
import { Interrupted, SilentFailure, UsageFailure } from './failure.ts'
import { advise } from './fec-advice.ts'
import { spacing } from './fec-codes.ts'
import { DEFAULT_PACKETS, MAX_PACKETS, MIN_PACKETS } from './fec-effort.ts'
import { adviceJson, configurationsOf, legend, type Question, trialsTable, usage, verdict } from './fec-report.ts'
import { writeConfigurations } from './fec-write.ts'
import { type Format, interruption } from './options.ts'
import { LiveRegion, print, printJson } from './terminal.ts'

export interface AdviseOptions {
  loss: number
  burst: number
  rate: number
  packet: number
  budget: number
  overhead: number
  inOrder?: true
  residual?: number
  packets?: number
  seconds?: number
  seed: number
  jobs?: number
  all?: boolean
  write?: string
  output: Format
}

function questionOf(options: AdviseOptions): Question {
  const { loss, burst, rate, packet, budget, overhead, inOrder, residual, packets, seconds, seed } = options
  if (!(loss > 0 && loss < 1))
    throw new UsageFailure('--loss: there is nothing to advise on without loss, or without any packet that comes')
  if (budget === 0) throw new UsageFailure('--budget: no code recovers anything in no time; give some, as 30ms')
  if (burst > 1 && loss / (1 - loss) > burst) {
    throw new UsageFailure(`--burst: ${loss * 100} % of loss has longer bursts than ${burst} packets on average`)
  }
  if (packets !== undefined && seconds !== undefined) {
    throw new UsageFailure('--packets and --seconds both say how much is simulated: give one')
  }
  const link = { loss, burst, rate, packet, budget, overhead, ...(inOrder && { inOrder }) }
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

export async function adviseOn(options: AdviseOptions): Promise<void> {
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
