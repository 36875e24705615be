/** Metrics that a component has for each entry of a list in its configuration, such as one set for each carrier. */
import type { EntryDeclarations } from './component.ts'
import type { MetricDeclaration } from './metrics.ts'

/** What one entry's metric is called: `carriers_0_lost_packets`, as the entry's ports are named. */
const nameOf = (list: string, entry: number | string, metric: string): string => `${list}_${entry}_${metric}`

function lengthOf(config: unknown, list: string): number {
  const entries = (config as Record<string, unknown> | null)?.[list]
  return Array.isArray(entries) ? entries.length : 0
}

/** The declarations for the entries that `config` has, by their full names. */
export function entryDeclarations(
  { entryMetrics = {} }: { readonly entryMetrics?: EntryDeclarations },
  config: unknown,
): Record<string, MetricDeclaration> {
  const found: Record<string, MetricDeclaration> = {}
  for (const [list, declarations] of Object.entries(entryMetrics)) {
    for (let entry = 0; entry < lengthOf(config, list); entry++) {
      for (const [metric, declaration] of Object.entries(declarations)) {
        found[nameOf(list, entry, metric)] = declaration
      }
    }
  }
  return found
}

/** The same for a page, where nobody knows how many entries there will be: `carriers_0.._lost_packets`. */
export function entryReference({ entryMetrics = {} }: { readonly entryMetrics?: EntryDeclarations }) {
  return Object.entries(entryMetrics).flatMap(([list, declarations]) =>
    Object.entries(declarations).map(([metric, declaration]) => [nameOf(list, '0..', metric), declaration] as const),
  )
}

/** What `bound` has under full names, by list and entry. */
export function byEntry<T>(
  { entryMetrics = {} }: { readonly entryMetrics?: EntryDeclarations },
  config: unknown,
  bound: Readonly<Record<string, T>>,
): Record<string, Record<string, T>[]> {
  return Object.fromEntries(
    Object.entries(entryMetrics).map(([list, declarations]) => [
      list,
      Array.from({ length: lengthOf(config, list) }, (_, entry) =>
        Object.fromEntries(Object.keys(declarations).map((metric) => [metric, bound[nameOf(list, entry, metric)]])),
      ),
    ]),
  )
}
