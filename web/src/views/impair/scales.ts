/** How a slider stands for a value: the values that links have lie close together where they are small. */
import type { Schema } from '../../data/schema.ts'

/** Steps of a slider from end to end. */
export const STEPS = 1_000

interface Scale {
  /** The value at a step, 0 to STEPS, rounded to what one would write. */
  readonly value: (step: number) => number
  /** The step for a value; of one beyond the end, the end. */
  readonly step: (value: number) => number
}

/** What a slider reaches, where the field itself takes far more. */
const REACH: Readonly<Record<string, number>> = { ms: 1_000, 'Mbit/s': 1_000, packets: 10_000 }
const DEFAULT_REACH = 1_000

/** The scale of a number; `now` is what it is set to, which is on the slider in any case. */
export function scaleOf(schema: Schema, now: number | undefined): Scale {
  const unit = schema['x-unit'] ?? ''
  const least = Math.max(0, schema.minimum ?? schema.exclusiveMinimum ?? 0)
  const reach = unit === 'probability' ? 1 : (REACH[unit] ?? DEFAULT_REACH)
  const most = Math.min(schema.maximum ?? Number.POSITIVE_INFINITY, Math.max(reach, now ?? 0))
  if (unit === 'Mbit/s') return logarithmic(Math.max(least, 0.1, 1e-9), most)
  return cubic(least, most, isWhole(schema))
}

/** Whether only integers are allowed. */
export function isWhole({ type, anyOf = [] }: Schema): boolean {
  return type === 'integer' || anyOf.some((each) => each.type === 'integer')
}

/** Half way stands for an eighth. */
function cubic(least: number, most: number, isInteger: boolean): Scale {
  const span = most - least
  return {
    value: (step) => {
      const value = least + span * (step / STEPS) ** 3
      return isInteger ? Math.round(value) : shortened(value)
    },
    step: (value) => bounded(Math.cbrt((value - least) / span) * STEPS),
  }
}

/** The same distance multiplies by the same factor. */
function logarithmic(least: number, most: number): Scale {
  const factor = Math.log(most / least)
  return {
    value: (step) => shortened(least * Math.exp((factor * step) / STEPS)),
    step: (value) => bounded((Math.log(Math.max(value, least) / least) / factor) * STEPS),
  }
}

const bounded = (step: number): number => Math.round(Math.min(STEPS, Math.max(0, step)))

/** Two digits; what is next to nothing is nothing. */
function shortened(value: number): number {
  return value < 5e-5 ? 0 : Number(value.toPrecision(2))
}
