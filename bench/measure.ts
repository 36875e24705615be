/** What every bench is made of: two or more things measured in turn in one run, medians, ratios, a table. */
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { packageRoot } from '../src/package-root.ts'

export interface BenchRow {
  label: string
  value: number
  unit: string
  /** Against the thing that the label names. */
  ratio?: number
  /** What the ratio (or, without one, the value) is to reach: '≥ 0.85', '≤ 30'. */
  goal?: string
}

export interface BenchResult {
  name: string
  rows: BenchRow[]
}

export type Bench = () => Promise<BenchResult>

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}

/** Measures the candidates in turn, A B A B …, `rounds` times each; gives what every round showed. */
export async function roundsInTurn<K extends string>(
  rounds: number,
  candidates: Record<K, () => number | Promise<number>>,
): Promise<Record<K, number[]>> {
  const names = Object.keys(candidates) as K[]
  const seen = Object.fromEntries(names.map((name) => [name, [] as number[]])) as Record<K, number[]>
  for (let round = 0; round < rounds; round++) {
    for (const name of names) seen[name].push(await candidates[name]())
  }
  return seen
}

/** The same; gives the median of each. */
export async function inTurn<K extends string>(
  rounds: number,
  candidates: Record<K, () => number | Promise<number>>,
): Promise<Record<K, number>> {
  const seen = await roundsInTurn(rounds, candidates)
  const names = Object.keys(seen) as K[]
  return Object.fromEntries(names.map((name) => [name, median(seen[name])])) as Record<K, number>
}

/** The median of the ratios of one candidate to another, each of two rounds that followed each other. */
export function medianOfPairs(of: readonly number[], to: readonly number[]): number {
  return median(of.map((value, round) => value / to[round]))
}

/** Linux counts CPU time in ticks of this length, s (sysconf(_SC_CLK_TCK) is 100 everywhere). */
const TICK = 0.01

/** CPU time that all threads of a process have used so far, s. */
export function cpuOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) * TICK
}

/** Builds the C programs that benches compare with and returns the path of one. */
export function nativeProgram(name: string): string {
  const built = spawnSync('bash', [join(packageRoot(), 'bench/native/build.sh')], { encoding: 'utf8' })
  const path = join(packageRoot(), 'bench/.build', name)
  if (!existsSync(path)) throw new Error(`bench/native/build.sh did not build ${name}: ${built.stderr || built.stdout}`)
  return path
}

/** Whether a value meets a goal such as '≥ 0.85' or '≤ 30'. */
export function meets(value: number, goal: string): boolean {
  const [sign, limit] = goal.split(' ')
  return sign === '≥' ? value >= Number(limit) : value <= Number(limit)
}

function short(value: number): string {
  if (value !== 0 && Math.abs(value) < 10) return value.toPrecision(3)
  return value >= 1e4 ? Math.round(value).toLocaleString('en-US') : value.toFixed(1)
}

/** The table of one bench as text. */
export function table({ name, rows }: BenchResult): string {
  const cells = rows.map(({ label, value, unit, ratio, goal }) => [
    label,
    `${short(value)} ${unit}`,
    ratio === undefined ? '' : `× ${ratio.toPrecision(3)}`,
    goal === undefined ? '' : `${goal} ${meets(ratio ?? value, goal) ? 'reached' : 'MISSED'}`,
  ])
  const widths = [0, 1, 2, 3].map((column) => Math.max(...cells.map((row) => row[column].length)))
  const lines = cells.map((row) => `  ${row.map((cell, i) => cell.padEnd(widths[i])).join('  ')}`.trimEnd())
  return [name, ...lines].join('\n')
}

/** Runs a bench file that was started by itself: `node dist/bench/hop.js`. */
export async function runAlone(url: string, bench: Bench): Promise<void> {
  if (process.argv[1] === undefined || url !== pathToFileURL(process.argv[1]).href) return
  console.log(table(await bench()))
}
