/** In-process measurements of single calls, made by Benchmark.js. */
import Benchmark from 'benchmark'
import { median } from '../measure.ts'

/** Suites run, each candidate in turn; the median of a candidate counts. */
const ROUNDS = 5
/** Longest time that Benchmark.js takes for one candidate of one suite, s. */
const SECONDS = 0.4

/** Nanoseconds a call of each candidate takes. */
export function nanoseconds<K extends string>(candidates: Record<K, () => unknown>): Record<K, number> {
  const names = Object.keys(candidates) as K[]
  const seen = new Map<string, number[]>(names.map((name) => [name, []]))
  for (let round = 0; round < ROUNDS; round++) {
    const suite = new Benchmark.Suite()
    for (const name of names) suite.add(name, candidates[name], { maxTime: SECONDS, minSamples: 3 })
    suite.run()
    for (const { name, stats, error } of suite.map((target: Benchmark) => target) as Benchmark[]) {
      if (error) throw error
      seen.get(name as string)?.push(stats.mean * 1e9)
    }
  }
  return Object.fromEntries(names.map((name) => [name, median(seen.get(name) as number[])])) as Record<K, number>
}
