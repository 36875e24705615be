/** Impairments of a link as data: the profiles of examples/profiles, what the options change of them, and the pipeline they make. */
import { PAYLOAD_V4 } from '../dataplane/components/endpoints/datagram-mtu.ts'
import { components } from '../dataplane/components/registry.ts'
import { checkPipelineConfig } from '../dataplane/engine/check.ts'
import { Random } from '../dataplane/engine/random.ts'
import { DIRECTIONS, type Direction, profileFile, profileNames } from '../node/impairment-profiles.ts'
import { isObject } from '../text/json-object.ts'
import { readJson } from '../text/json-text.ts'
import { suggestion } from '../text/names.ts'
import { below, type Problem, tokensOf } from '../text/pointer.ts'
import { type Failure, UsageFailure } from './failure.ts'
import { readInput } from './input.ts'
import { invalid } from './problems.ts'

/** One emulation component without its connections: `{ key: fields }`. */
export type Step = Readonly<Record<string, Readonly<Record<string, unknown>>>>

/** A link: what packets pass through each way, in order. */
export interface Profile {
  readonly name: string
  readonly description: string
  /** Where the numbers are from. */
  readonly source: string
  /** From the clients to the server. */
  readonly up: readonly Step[]
  readonly down: readonly Step[]
}

/** What is set by hand. */
export interface Overrides {
  /** 0 to 1 */
  readonly loss?: number
  /** Packets that are lost in a row on average. */
  readonly burst?: number
  /** ms */
  readonly delay?: number
  /** ms */
  readonly jitter?: number
  /** Whether packets overtake those that the jitter holds longer. */
  readonly reorder?: boolean
  /** Mbit/s */
  readonly rate?: number
  /** Packets that wait for the link. */
  readonly queue?: number
}

/** Packets that wait for a link whose rate is set by hand: as many as the queue of tc-netem(8) takes. */
const DEFAULT_QUEUE = 1000

const FIELDS = ['name', 'description', 'source', ...DIRECTIONS]

/** The profile of that name that comes with the package. */
export function profileOf(name: string): Profile {
  const { file, text } = profileFile(name)
  return readProfile(text, file)
}

/** The profile that `--profile` names: a file when it has a slash, ends in .json or is `-`, else one that comes with the package. */
export async function loadProfile(given: string): Promise<Profile> {
  if (given === '-' || given.includes('/') || given.endsWith('.json')) return readProfile(await readInput(given), given)
  const names = profileNames()
  if (names.includes(given)) return profileOf(given)
  const guess = suggestion(given, names)
  const cure = 'penstock impair --list shows what there is; a file of your own is named by its path, ./FILE'
  throw new UsageFailure(`there is no profile "${given}".${guess} ${cure}`)
}

/** Reads and checks the text of a profile; all problems at once, with their places in the file, are the failure. */
function readProfile(text: string, file: string): Profile {
  const { value, problems } = readJson(text)
  const found = problems.length > 0 ? [...problems] : shapeProblems(value)
  if (found.length === 0) found.push(...stepProblems(value as Profile))
  if (found.length > 0) throw invalid(found, { file, text })
  return value as Profile
}

/** What is wrong with a profile before its components are looked at. */
function shapeProblems(value: unknown): Problem[] {
  if (!isObject(value)) return [{ pointer: '', message: `must be an object with the fields ${FIELDS.join(', ')}` }]
  const problems: Problem[] = Object.keys(value)
    .filter((field) => !FIELDS.includes(field))
    .map((field) => ({ pointer: below('', field), message: `unknown field "${field}".${suggestion(field, FIELDS)}` }))
  for (const field of ['name', 'description', 'source']) {
    if (typeof value[field] === 'string' && value[field] !== '') continue
    problems.push({ pointer: below('', field), message: 'is needed: a text that is not empty' })
  }
  for (const direction of DIRECTIONS) {
    const steps = value[direction]
    const pointer = below('', direction)
    if (!Array.isArray(steps)) {
      problems.push({ pointer, message: 'is needed: a list of emulation components, empty where nothing happens' })
      continue
    }
    steps.forEach((step: unknown, i) => {
      if (isObject(step) && Object.keys(step).length === 1 && isObject(Object.values(step)[0])) return
      const message = 'must have one member, the key of an emulation component with its fields'
      problems.push({ pointer: below(pointer, i), message })
    })
  }
  return problems
}

/** What is wrong with the components of a profile. */
function stepProblems(profile: Profile): Problem[] {
  const problems: Problem[] = []
  for (const direction of DIRECTIONS) {
    profile[direction].forEach((step, i) => {
      const [[key, fields]] = Object.entries(step) as [[string, Record<string, unknown>]]
      const at = below(below(below('', direction), i), key)
      const definition = components.get(key)
      if (definition && definition.family !== 'emulation') {
        problems.push({ pointer: at, message: `${key} emulates no loss, delay or bandwidth: only such can be here` })
      }
      for (const port of ['input', 'output', 'flows']) {
        if (Object.hasOwn(fields, port))
          problems.push({ pointer: below(at, port), message: 'leave it out: the components are joined in their order' })
      }
    })
  }
  if (problems.length > 0) return problems
  const ends = { listen: '127.0.0.1:0', forward: '127.0.0.1:1' }
  return checkPipelineConfig(JSON.stringify(pipelineOf(profile, ends)), components).problems.map(
    ({ pointer, message }) => ({ pointer: pointerInProfile(pointer), message }),
  )
}

/** The place in the profile that a place in its pipeline comes from. */
function pointerInProfile(pointer: string): string {
  const [, , component = '', ...rest] = tokensOf(pointer)
  const [, direction, position] = /^(up|down) (\d+)$/.exec(component) ?? []
  if (direction === undefined) return ''
  return [direction, Number(position) - 1, ...rest].reduce<string>(below, '')
}

type Kind = 'rate' | 'delay' | 'loss' | 'other'
/** The order of what is set by hand: a link has a queue, then a length, and what it loses has taken its time. */
const ORDER: readonly Kind[] = ['rate', 'delay', 'loss']

const keyOf = (step: Step): string => Object.keys(step)[0] as string

function kindOf(step: Step): Kind {
  const key = keyOf(step)
  if (key.startsWith('bandwidth_')) return 'rate'
  if (key.startsWith('delay_')) return 'delay'
  return key.includes('loss') ? 'loss' : 'other'
}

/** `step` in the place of all of its kind, or in the order of kinds where there is none. */
function withStep(steps: readonly Step[], step: Step): Step[] {
  const kind = kindOf(step)
  const later = ORDER.slice(ORDER.indexOf(kind) + 1)
  const rest = steps.filter((each) => kindOf(each) !== kind)
  let at = steps.findIndex((each) => kindOf(each) === kind)
  if (at < 0) at = rest.findIndex((each) => later.includes(kindOf(each)))
  return at < 0 ? [...rest, step] : [...rest.slice(0, at), step, ...rest.slice(at)]
}

/** The number that all steps of a kind agree on, being one: undefined where there is none or several. */
function numberIn(steps: readonly Step[], kind: Kind, field: string): number | undefined {
  const [step, more] = steps.filter((each) => kindOf(each) === kind)
  const value = step === undefined || more !== undefined ? undefined : step[keyOf(step)]?.[field]
  return typeof value === 'number' ? value : undefined
}

/** One direction of a link with what is set by hand in the place of what it had. Fails where a part is set and the rest is not known. */
export function overridden(
  steps: readonly Step[],
  { loss, burst, delay, jitter, reorder, rate, queue }: Overrides,
): Step[] {
  let result = [...steps]
  if (rate !== undefined || queue !== undefined) {
    const mbit = rate ?? numberIn(steps, 'rate', 'bandwidth_limit_mbit')
    if (mbit === undefined) throw new UsageFailure('--queue needs --rate: there is no constant rate to wait for')
    const size = queue ?? numberIn(steps, 'rate', 'max_queue_size') ?? DEFAULT_QUEUE
    result = withStep(result, { bandwidth_limit_constant: { bandwidth_limit_mbit: mbit, max_queue_size: size } })
  }
  if (delay !== undefined || jitter !== undefined || reorder) {
    const centre = delay ?? numberIn(steps, 'delay', 'delay')
    if (centre === undefined) {
      const given = jitter === undefined ? '--reorder' : '--jitter'
      throw new UsageFailure(`${given} needs --delay: there is no constant delay to vary`)
    }
    const around = jitter ?? numberIn(steps, 'delay', 'jitter') ?? 0
    if (reorder && around === 0) {
      throw new UsageFailure('--reorder needs --jitter: packets that are all as late do not overtake each other')
    }
    const times = { delay: centre, jitter: around }
    result = withStep(result, reorder ? { delay_jitter: times } : { delay_constant: times })
  }
  if (loss !== undefined || burst !== undefined) {
    const share = loss ?? numberIn(steps, 'loss', 'loss_probability')
    if (share === undefined) throw new UsageFailure('--burst needs --loss: there is no constant loss to come in bursts')
    result = withStep(
      result,
      burst === undefined ? { loss_constant: { loss_probability: share } } : burstsOf(share, burst),
    )
  }
  return result
}

/** The model of Gilbert (1960) whose bad state loses everything: a share of all packets, `burst` in a row on average. */
function burstsOf(share: number, burst: number): Step {
  // Between two bursts there is one packet at least.
  const most = burst / (burst + 1)
  if (share > most) {
    const limit = `${Math.floor(most * 1000) / 10} %`
    throw new UsageFailure(`--burst ${burst} can lose ${limit} at most: a burst ends with a packet that comes through`)
  }
  const fields = {
    ...{ good_loss_probability: 0, bad_loss_probability: 1 },
    ...{ good_to_bad_probability: Math.min(share / (burst * (1 - share)), 1), bad_to_good_probability: 1 / burst },
  }
  return { loss_gilbert_elliot: fields }
}

export interface Ends {
  /** Where clients send to, `ip:port`. */
  readonly listen: string
  /** Where the server is, `ip:port`. */
  readonly forward: string
  /** Longest datagram that is carried, bytes; unset: of both families what IPv4 carries over Ethernet, so that neither way is the narrower. */
  readonly mtu?: number
  /** Seeds every component that draws numbers, each with one of its own. */
  readonly seed?: number
}

/** The names of the components of one direction, in order. */
export const namesOf = (direction: Direction, steps: readonly Step[]): string[] =>
  steps.map((_, i) => `${direction} ${i + 1}`)

/** The name of the component that packets of a direction pass last. */
export const observerOf = (direction: Direction): string => `${direction} observer`

/** The pipeline configuration that puts the link between two UDP endpoints, as it stands in a file. */
export function pipelineOf(
  { up, down }: Pick<Profile, Direction>,
  { listen, forward, mtu = PAYLOAD_V4, seed }: Ends,
): { version: number; engine_config: { pipeline: Record<string, Step> } } {
  const random = seed === undefined ? undefined : new Random(seed)
  const pipeline: Record<string, Step> = {
    clients: {
      udp: { local_address: listen, mtu, lock_to_first_peer: true, output: 'up at 0', input: 'down observed' },
    },
    server: { udp: { remote_address: forward, mtu, output: 'down at 0', input: 'up observed' } },
  }
  for (const [direction, steps] of [
    ['up', up],
    ['down', down],
  ] as const) {
    const names = namesOf(direction, steps)
    steps.forEach((step, i) => {
      const key = keyOf(step)
      const properties: Record<string, unknown> = components.get(key)?.config.properties ?? {}
      const ends = { input: `${direction} at ${i}`, output: `${direction} at ${i + 1}` }
      pipeline[names[i] as string] = {
        [key]: {
          ...('flows' in properties ? { flows: [ends] } : ends),
          ...step[key],
          ...(random !== undefined && 'seed' in properties ? { seed: random.bits() >>> 1 } : {}),
        },
      }
    })
    pipeline[observerOf(direction)] = {
      observer: { input: `${direction} at ${steps.length}`, output: `${direction} observed` },
    }
  }
  return { version: 1, engine_config: { pipeline } }
}

/** What wrong addresses are called on the command line. */
const OPTION_OF: Readonly<Record<string, string>> = { clients: '--listen', server: '--forward' }

/** The failure that tells what is wrong with a pipeline made of options and a profile that has been checked. */
export function refused(problems: readonly Problem[]): Failure {
  const lines = problems.map(({ pointer, message }) => {
    const [, , component = '', ...rest] = tokensOf(pointer)
    return `${OPTION_OF[component] ?? `${component} ${rest.join(' ')}`.trim()}: ${message}`
  })
  return new UsageFailure([...new Set(lines)].join('\n'))
}

/** `13 Mbit/s, 35 ± 8 ms, 0.1 % loss`: one direction for people. */
export function linkText(steps: readonly Step[]): string {
  return steps.map(stepText).join(', ') || 'unchanged'
}

const percent = (share: number): string => `${Number((share * 100).toPrecision(2))} %`

function stepText(step: Step): string {
  const key = keyOf(step)
  const fields = step[key] as Record<string, number>
  switch (key) {
    case 'bandwidth_limit_constant':
      return `${fields.bandwidth_limit_mbit} Mbit/s`
    case 'delay_jitter':
      return `${fields.delay} ± ${fields.jitter} ms reordered`
    case 'delay_constant':
      return fields.jitter ? `${fields.delay} ± ${fields.jitter} ms` : `${fields.delay} ms`
    case 'loss_constant':
      return `${percent(fields.loss_probability)} loss`
    case 'loss_gilbert_elliot': {
      const { good_to_bad_probability: to, bad_to_good_probability: back } = fields
      const bad = to + back > 0 ? to / (to + back) : 0
      const mean = (1 - bad) * fields.good_loss_probability + bad * fields.bad_loss_probability
      return `${percent(mean)} loss in bursts`
    }
    case 'delay_dynamic': {
      const { phases } = step[key] as { phases: { delay: number }[] }
      const delays = phases.map(({ delay }) => delay)
      return `${Math.min(...delays)} to ${Math.max(...delays)} ms`
    }
    case 'timed_burst_loss':
      if (!fields.burst_duration_ms) return key
      return `out for ${fields.burst_duration_ms} ms every ${fields.interval_ms + fields.burst_duration_ms} ms`
    default:
      return key
  }
}
