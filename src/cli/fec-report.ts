/** The advice of `fec advise` for people and for programs. */
import { timeText } from './durations.ts'
import type { Advice, Aim, Remedy } from './fec-advice.ts'
import { CHECK_FACTOR, timesThePackets } from './fec-advice.ts'
import type { Link } from './fec-codes.ts'
import { type Effort, MAX_PACKETS, RUNS } from './fec-effort.ts'
import { ADDRESSES, drainOf, receiverOf, senderOf, simulationOf, timeFor, type Written } from './fec-pipelines.ts'
import type { Trial } from './fec-trials.ts'
import { table } from './terminal.ts'

/** Where more packets than so many times those given were needed, what is lost is about the aim: to send them would tell little. */
const MAX_TIMES = 100

/** What was asked. */
export interface Question {
  readonly link: Link
  readonly aim: Aim
  readonly effort: Effort
}

const percent = (share: number, digits = 3): string => `${Number((share * 100).toPrecision(digits))} %`

const nameOf = ({ candidate }: Trial): string =>
  candidate === undefined ? 'without a code' : `${candidate.code} ${candidate.settings}`

/** The bare link and the best of each code; `all`: every trial. */
export function trialsTable(trials: readonly Trial[], all: boolean): string {
  const shown = trials.filter(
    ({ candidate }, i) => all || trials.findIndex((each) => each.candidate?.code === candidate?.code) === i,
  )
  const right = { align: 'right' } as const
  const columns = [
    { title: 'CODE' },
    { title: 'SETTINGS' },
    { title: 'RESIDUAL', ...right },
    { title: 'BELOW', ...right },
    { title: 'OVERHEAD', ...right },
    { title: 'P50', ...right },
    { title: 'P99', ...right },
  ]
  const rows = shown.map(({ candidate, residual, upper, overhead, p50, p99 }) => [
    candidate?.code ?? '(none)',
    candidate?.settings ?? '',
    percent(residual),
    percent(upper, 2),
    percent(overhead),
    timeText(p50, 'ms'),
    timeText(p99, 'ms'),
  ])
  const hidden = trials.length - shown.length
  const rest = hidden === 0 ? '' : `\n${hidden} more settings were tried: --all shows them.`
  return `${table(columns, rows)}${rest}`
}

/** What the columns are, and what the residual counts. */
export function legend({ link, effort }: Question): string {
  return (
    `Residual: packets not there within ${link.budget} ms,\nof ${effort.packets} in ${RUNS} runs (seeds from ${effort.seed}).\n` +
    'Below: so much the residual is below with 95 % confidence; packets lost together\n' +
    'count as one event. Overhead: bytes, headers of the code included.\n' +
    'P50, P99: delay of what came, beyond the time of its way.'
  )
}

/** The next number with two digits before zeros, always above `value`. */
function roundedUp(value: number): number {
  const unit = 10 ** Math.max(0, Math.floor(Math.log10(value)) - 1)
  return (Math.floor(value / unit) + 1) * unit
}

/** Packets to simulate instead, where too few were to know of a trial that has been checked; undefined where as many would not tell either. */
function packetsToTry(trial: Trial, { aim, effort }: Question): number | undefined {
  const times = timesThePackets(trial, aim)
  const packets = roundedUp(effort.packets * times)
  return times <= MAX_TIMES && packets <= MAX_PACKETS ? packets : undefined
}

/** Of a trial that has been checked and of which too few packets were sent. */
function mayText(trial: Trial, question: Question): string {
  const packets = packetsToTry(trial, question)
  const cure = packets === undefined ? '' : ` Try --packets ${packets}.`
  return `${nameOf(trial)} may: too few packets were sent to know.${cure}`
}

/** The advice in a few sentences. */
export function verdict(advice: Advice, question: Question): string {
  const { link, aim } = question
  const { best } = advice
  if (best !== undefined) {
    const { lost, sent, residual, upper } = best
    return (
      `Take ${nameOf(best)}.\nWith fresh seeds and ${CHECK_FACTOR} times the packets ${lost} of ${sent} are missing: ${percent(residual)},\n` +
      `below ${percent(upper, 2)} with 95 % confidence.`
    )
  }
  const { unsure, moreOverhead, moreBudget } = advice
  const wanted = `at most ${percent(aim.residual)} of residual loss`
  const lines = [
    `No code reaches ${wanted} with ${link.budget} ms and ${percent(link.overhead)} of overhead${unsure ? ' for sure' : ''}.`,
  ]
  if (unsure) lines.push(mayText(unsure, question))
  const told = ({ trial, isSure }: Remedy) =>
    isSure ? `${nameOf(trial)} does, ${percent(trial.upper, 2)} at most.` : mayText(trial, question)
  if (moreOverhead)
    lines.push(`With --overhead ${percent(moreOverhead.link.overhead).replace(' ', '')} ${told(moreOverhead)}`)
  if (moreBudget) lines.push(`With --budget ${moreBudget.link.budget}ms ${told(moreBudget)}`)
  if (!moreOverhead && !moreBudget) {
    lines.push('Neither up to ten times the overhead nor sixteen times the budget alone was enough: give more of both,')
    lines.push('or allow more residual loss with --residual.')
  }
  return lines.join('\n')
}

/** Configurations by the names of their files. */
export function configurationsOf(best: Trial, { link }: Question): Record<string, Written> {
  const { candidate, sent, seeds } = best
  if (candidate === undefined) return {}
  return {
    'sender.json': senderOf(candidate),
    'receiver.json': receiverOf(candidate),
    'simulation.json': simulationOf(link, candidate, Math.round(sent / seeds.length)),
  }
}

/** `text` as one word of a shell. */
const shellWord = (text: string): string =>
  /^[\w./@%+,:=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`

/** Where the ends are, and the command that repeats a run of the check. */
export function usage(best: Trial, { link }: Question, directory = '.'): string {
  const { application, link: path, target } = ADDRESSES
  const run = timeFor(Math.round(best.sent / best.seeds.length), link) + drainOf(link)
  const file = (name: string) => shellWord(`${directory}/${name}`)
  return (
    `The sender takes datagrams at ${application} and sends them to ${path},\nwhere the receiver listens and sends on to ${target}: put in your own addresses.\n` +
    'Answers do not come back that way: a program that wants some takes a code for\neach direction (docs/fec-advise.md).\n' +
    `  penstock pipelines create sender ${file('sender.json')}\n` +
    `  penstock pipelines create receiver ${file('receiver.json')}\n` +
    `  penstock simulate ${file('simulation.json')} -d ${run}ms --seed ${best.seeds[0]}`
  )
}

const trialJson = ({ candidate, ...figures }: Trial) => ({
  code: candidate?.code ?? null,
  settings: candidate?.settings ?? null,
  encoder: candidate?.encoder ?? null,
  decoder: candidate?.decoder ?? null,
  ...figures,
})

/** The same for programs: shares as numbers, delays in ms. */
export function adviceJson(advice: Advice, question: Question): unknown {
  const { link, aim, effort } = question
  const { trials, best, unsure, moreOverhead, moreBudget } = advice
  const uncertain = (trial: Trial) => {
    const tryPackets = packetsToTry(trial, question)
    return { ...trialJson(trial), ...(tryPackets !== undefined && { tryPackets }) }
  }
  const remedy = ({ link: allowed, trial, isSure }: Remedy) => ({
    allowed,
    sure: isSure,
    ...(isSure ? trialJson(trial) : uncertain(trial)),
  })
  const configurations = best && configurationsOf(best, question)
  return {
    link,
    residual: aim.residual,
    packets: effort.packets,
    seed: effort.seed,
    best: best === undefined ? null : trialJson(best),
    ...(best &&
      configurations && {
        sender: configurations['sender.json'],
        receiver: configurations['receiver.json'],
        simulation: configurations['simulation.json'],
        simulationMs: timeFor(Math.round(best.sent / best.seeds.length), link) + drainOf(link),
      }),
    ...(unsure && { unsure: uncertain(unsure) }),
    ...(moreOverhead && { moreOverhead: remedy(moreOverhead) }),
    ...(moreBudget && { moreBudget: remedy(moreBudget) }),
    trials: trials.map(trialJson),
  }
}
