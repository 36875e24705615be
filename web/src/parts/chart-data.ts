/** Numbers over time made ready for a chart. */
import type { Series } from '../data/history.ts'

/** Colours of curves that have none of their own, by custom property; each can be told from its neighbours in both themes. */
export const CURVES = ['--curve-1', '--curve-2', '--curve-3', '--curve-4', '--curve-5', '--curve-6'] as const

/** Each series with those before it added, as areas on top of each other are drawn; what is not known counts as nothing where another is. */
export function stacked(all: readonly Series[]): readonly Series[] {
  const sums: number[] = []
  return all.map((series) =>
    series.map((value, i) => {
      const sum = (sums[i] ?? 0) + (value ?? 0)
      sums[i] = sum
      return all.some((each) => each[i] !== undefined) ? sum : undefined
    }),
  )
}

/** The last value that is known; undefined: none is. */
export function lastOf(series: Series): number | undefined {
  return series.findLast((value) => value !== undefined)
}
