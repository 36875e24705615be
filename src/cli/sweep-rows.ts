/** What a sweep has found: a row for each combination, its runs, and the mean and spread of each figure over them. */

import type { SimulationResult } from './simulate-run.ts'
import { mean, standardDeviation } from './statistics.ts'
import type { Figure } from './sweep-figures.ts'
import type { Combination } from './sweep-settings.ts'

/** One simulation that is done. */
interface Run {
  readonly seed: number
  readonly result: SimulationResult
}

/** One combination with those of its runs that are done, by their seeds. */
export interface Row {
  readonly combination: Combination
  readonly runs: readonly Run[]
}

/** A figure over the runs of a row: of numbers mean and, of more than one, sample standard deviation, of texts the different ones. */
export interface Summary {
  /** In the order of the runs; null where one has none. */
  readonly values: readonly (number | string | null)[]
  readonly mean?: number
  readonly standardDeviation?: number
  readonly texts?: readonly string[]
  /** Where a run has none for its KPI could not be evaluated: why, in the order of the runs. */
  readonly errors?: readonly (string | null)[]
}

export function summaryOf(figure: Figure, { runs }: Row): Summary {
  const values = runs.map(({ result }) => (result.end.outcome === 'FAILED' ? null : (figure.of(result) ?? null)))
  const numbers = values.filter((value) => typeof value === 'number')
  const texts = [...new Set(values.filter((value) => typeof value === 'string'))]
  const errors = runs.map(({ result }) => {
    return result.end.outcome === 'FAILED' ? null : (figure.kpi?.errorOf(result) ?? null)
  })
  return {
    values,
    ...(numbers.length > 0 && { mean: mean(numbers) }),
    ...(numbers.length > 1 && { standardDeviation: standardDeviation(numbers) }),
    ...(texts.length > 0 && { texts }),
    ...(errors.some((error) => error !== null) && { errors }),
  }
}
