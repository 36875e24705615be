/** Puts a profile of a link on the emulation components that a pipeline has. */
import type { ProfileStep } from './documents.ts'
import type { Emulation, Link, LiveField } from './emulation.ts'
import { isRequired } from './schema.ts'

/** What a field means, whatever its component calls it. */
type Quantity = 'rate' | 'queue' | 'delay' | 'jitter' | 'loss' | 'goodLoss' | 'badLoss' | 'toBad' | 'toGood'

/** The fields of components by what they mean. */
const FIELDS: Readonly<Record<string, Readonly<Partial<Record<Quantity, string>>>>> = {
  bandwidth_limit_constant: { rate: 'bandwidth_limit_mbit', queue: 'max_queue_size' },
  bandwidth_constrictor: { rate: 'bandwidth_limit_mbit', queue: 'max_queue_size' },
  delay_constant: { delay: 'delay', jitter: 'jitter' },
  delay_jitter: { delay: 'delay', jitter: 'jitter' },
  delay_fixed: { delay: 'delay' },
  loss_constant: { loss: 'loss_probability' },
  uniform_loss: { loss: 'loss_prob' },
  loss_gilbert_elliot: {
    ...{ goodLoss: 'good_loss_probability', badLoss: 'bad_loss_probability' },
    ...{ toBad: 'good_to_bad_probability', toGood: 'bad_to_good_probability' },
  },
  gilbert_elliot_loss: {
    ...{ goodLoss: 'good_loss_prob', badLoss: 'bad_loss_prob' },
    ...{ toBad: 'good_to_bad_prob', toGood: 'bad_to_good_prob' },
  },
}

/** A link that does nothing to packets; the rate is the highest that components take, in Mbit/s. */
const NOTHING: Readonly<Partial<Record<Quantity, number>>> = {
  ...{ rate: 1_000_000, delay: 0, jitter: 0, loss: 0, goodLoss: 0, badLoss: 0 },
}

export interface ProfilePlan {
  /** By JSON pointer; undefined takes a value away. */
  readonly values: ReadonlyMap<string, unknown>
  /** Components of the profile that the link has nothing for. */
  readonly missing: readonly string[]
  /** Components of the link that the profile says nothing of and that stay as they are. */
  readonly kept: readonly string[]
  /** Components of the link that are set to the mean of what the profile has. */
  readonly simplified: readonly string[]
}

/**
 * What to set so that the link is like one direction of a profile. A component takes the step of the profile that it can say best; one that
 * the profile has no step for does nothing to packets then, where it can be set to that.
 */
export function planOf({ emulations }: Link, steps: readonly ProfileStep[]): ProfilePlan {
  const values = new Map<string, unknown>()
  const missing: string[] = []
  const simplified: string[] = []
  const free = new Set(emulations)
  for (const step of steps) {
    const [key = '', fields = {}] = Object.entries(step)[0] ?? []
    const same = [...free].find(({ component }) => component.key === key)
    const meant = meaningOf(key, fields)
    const best = same ?? bestFor(free, meant)
    // Two states that lose the same are one.
    const asStates = { ...meant, goodLoss: meant.loss, badLoss: meant.loss }
    const like = best ?? bestFor(free, asStates)
    if (like === undefined) {
      missing.push(key)
      continue
    }
    free.delete(like)
    if (best !== undefined && same === undefined && !isWhole(like, meant)) simplified.push(like.component.name)
    for (const [name, value] of Object.entries(
      same === undefined ? named(like, best === undefined ? asStates : meant) : withDefaults(same, fields),
    )) {
      put(values, like, name, value)
    }
  }
  const kept: string[] = []
  for (const emulation of free) {
    const nothing = Object.entries(named(emulation, NOTHING))
    if (nothing.length === 0) kept.push(emulation.component.name)
    for (const [name, value] of nothing) put(values, emulation, name, value)
  }
  return { values, missing, kept, simplified }
}

type Meaning = Readonly<Partial<Record<Quantity, number | undefined>>>

/** What the fields of a step mean; of what changes over time, the mean too. */
function meaningOf(key: string, fields: Readonly<Record<string, unknown>>): Meaning {
  const meant: Partial<Record<Quantity, number>> = {}
  for (const [quantity, name] of Object.entries(FIELDS[key] ?? {})) {
    const value = fields[name]
    if (typeof value === 'number') meant[quantity as Quantity] = value
  }
  const { goodLoss, badLoss, toBad, toGood } = meant
  if (goodLoss !== undefined && badLoss !== undefined && toBad !== undefined && toGood !== undefined) {
    const bad = toBad + toGood > 0 ? toBad / (toBad + toGood) : 0
    meant.loss = (1 - bad) * goodLoss + bad * badLoss
  }
  if (key === 'delay_dynamic' && Array.isArray(fields.phases)) {
    const phases = fields.phases as readonly { duration: number; delay: number; jitter?: number }[]
    const whole = phases.reduce((sum, { duration }) => sum + duration, 0)
    meant.delay = Math.round(phases.reduce((sum, { duration, delay }) => sum + duration * delay, 0) / whole)
    meant.jitter = Math.max(...phases.map(({ jitter = 0 }) => jitter))
  }
  return meant
}

/** The component that can say most of what is meant. */
function bestFor(free: ReadonlySet<Emulation>, meant: Meaning): Emulation | undefined {
  const score = (emulation: Emulation): number => Object.keys(named(emulation, meant)).length
  const [best] = [...free].filter((each) => score(each) > 0).sort((a, b) => score(b) - score(a))
  return best
}

/** Whether the component can say all of it, the mean left out where it has more. */
function isWhole({ component }: Emulation, meant: Meaning): boolean {
  const has = FIELDS[component.key] ?? {}
  return (Object.keys(meant) as Quantity[]).every(
    (quantity) => quantity in has || meant[quantity] === 0 || (quantity === 'loss' && 'goodLoss' in has),
  )
}

/** What is meant, by the component's own names. */
function named({ component }: Emulation, meant: Meaning): Readonly<Record<string, unknown>> {
  const has = Object.entries(FIELDS[component.key] ?? {})
  const said = has.flatMap(([quantity, name]) => {
    const value = meant[quantity as Quantity]
    return value === undefined ? [] : [[name, value] as const]
  })
  // A delay without a word on jitter has none.
  const jitter = has.find(([quantity]) => quantity === 'jitter')
  if (meant.delay !== undefined && meant.jitter === undefined && jitter !== undefined) said.push([jitter[1], 0])
  return Object.fromEntries(said)
}

/** The fields of a step, and of those that it leaves out the defaults: undefined, which takes away, where they have none. */
function withDefaults(
  { component, live }: Emulation,
  fields: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const defaults = live.flatMap(({ steps: [name = '', ...inner], schema }) =>
    inner.length === 0 && !isRequired(component.schema, name) ? [[name, schema.default] as const] : [],
  )
  return { ...Object.fromEntries(defaults), ...fields }
}

function put(values: Map<string, unknown>, { component, live }: Emulation, name: string, value: unknown): void {
  const isLive = component.schema.properties?.[name]?.['x-live'] === true
  const field = live.find(({ steps }) => steps[0] === name)
  if (isLive && field !== undefined) values.set(pointerOfField(field), value)
}

/** Of a number within a list, the list: a profile has all of it. */
function pointerOfField({ pointer, steps }: LiveField): string {
  return steps.length === 1
    ? pointer
    : pointer
        .split('/')
        .slice(0, 1 - steps.length)
        .join('/')
}
