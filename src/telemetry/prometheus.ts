/**
 * Metrics as text for Prometheus, exposition format 0.0.4 (https://prometheus.io/docs/instrumenting/exposition_formats/), named by its
 * conventions: base units (seconds, bytes, ratios), the unit in the name, _total on counters.
 */
import { HISTOGRAM_BUCKETS, type HistogramBuckets } from '../dataplane/engine/histogram.ts'
import type { MetricEntry } from '../dataplane/engine/metrics.ts'
import { ENGINE_PATH, type processMetrics } from '../dataplane/engine/own-metrics.ts'

/** The media type of the text. */
export const PROMETHEUS_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

/** The numbers of one sample, by the index of their entries. */
export interface Numbers {
  readonly entries: readonly MetricEntry[]
  readonly values: ArrayLike<number>
}

export interface ExposedRun extends Numbers {
  readonly pipeline: string
  readonly run: string
}

interface Unit {
  readonly suffix: string
  /** What values of ours are divided by. */
  readonly divisor: number
  /** How names of ours end that have the unit in them; absent: as `suffix`. */
  readonly ours?: string
}

/** Units that are written in another way; every other one is written as it is. */
const UNITS: Readonly<Record<string, Unit>> = {
  ns: { suffix: 'seconds', divisor: 1e9 },
  ms: { suffix: 'seconds', divisor: 1e3, ours: 'ms' },
  'bit/s': { suffix: 'bytes_per_second', divisor: 8, ours: 'bits_per_second' },
  'bytes/s': { suffix: 'bytes_per_second', divisor: 1 },
  'packets/s': { suffix: 'packets_per_second', divisor: 1 },
  Hz: { suffix: 'hertz', divisor: 1 },
  fraction: { suffix: 'ratio', divisor: 1 },
  ratio: { suffix: 'ratio', divisor: 1 },
}

/** What every process exports that Prometheus reads is called the same everywhere. */
const PROCESS_NAMES: Readonly<Record<keyof typeof processMetrics, string>> = {
  cpu_time: 'process_cpu_seconds_total',
  resident_memory: 'process_resident_memory_bytes',
  heap_used: 'nodejs_heap_size_used_bytes',
  open_descriptors: 'process_open_fds',
  threads: 'process_threads',
}

type FamilyType = 'counter' | 'gauge' | 'histogram'
type Labels = Readonly<Record<string, string>>

/** All that is told of one name. */
class Family {
  readonly name: string
  readonly #type: FamilyType
  readonly #help: string
  readonly #lines: string[] = []

  constructor(name: string, type: FamilyType, help: string) {
    this.name = name
    this.#type = type
    this.#help = help
  }

  add(labels: Labels, value: number, suffix = ''): void {
    this.#lines.push(`${this.name}${suffix}${labelText(labels)} ${numberText(value)}`)
  }

  get text(): string {
    const help = this.#help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
    return `# HELP ${this.name} ${help}\n# TYPE ${this.name} ${this.#type}\n${this.#lines.join('\n')}\n`
  }
}

function labelText(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`)
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`
}

const escaped = (value: string): string => value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')

function numberText(value: number): string {
  if (Number.isFinite(value)) return String(value)
  return Number.isNaN(value) ? 'NaN' : value > 0 ? '+Inf' : '-Inf'
}

/** The name of a metric `name` of `unit` with the unit that Prometheus has it in, and what its values are divided by. */
function named(name: string, unit: string): { name: string; divisor: number } {
  const { suffix, divisor, ours = suffix } = UNITS[unit] ?? { suffix: unit, divisor: 1 }
  const clean = name.replace(/[^a-zA-Z0-9_]/g, '_')
  if (suffix === '') return { name: clean, divisor }
  const bare = clean.endsWith(`_${ours}`) ? clean.slice(0, -ours.length - 1) : clean
  return { name: bare === suffix ? bare : `${bare}_${suffix}`, divisor }
}

/** The families of a text, by name. */
class Families {
  readonly #families = new Map<string, Family>()

  /** Its type and help are those it was first asked for with. */
  get(name: string, type: FamilyType, help: string): Family {
    let family = this.#families.get(name)
    if (family === undefined) {
      family = new Family(name, type, help)
      this.#families.set(name, family)
    }
    return family
  }

  /** In the order of their names. */
  get text(): string {
    const sorted = [...this.#families.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
    return sorted.map(({ text }) => text).join('')
  }
}

/** The metrics of runs, and of the process that has them, which was started at `startedAt` (milliseconds since the Unix epoch). */
export function prometheusText(runs: readonly ExposedRun[], process: Numbers, startedAt: number): string {
  const families = new Families()
  const started = families.get(
    'process_start_time_seconds',
    'gauge',
    'When the process was started, since the Unix epoch.',
  )
  started.add({}, startedAt / 1000)
  for (const { name, kind, unit, description, index } of process.entries) {
    const known = PROCESS_NAMES[name as keyof typeof processMetrics]
    families.get(known, kind, description).add({}, (process.values[index] as number) / named(name, unit).divisor)
  }
  for (const run of runs) for (const entry of occupied(run)) addEntry(families, entry, run)
  return families.text
}

/** The entries without those of places that nobody has. */
function occupied({ entries, values }: Numbers): readonly MetricEntry[] {
  const vacant = new Set(
    entries.filter(({ index }) => values[index] === 0).map(({ path, name }) => JSON.stringify([path, name])),
  )
  return entries.filter(
    ({ path, occupancy }) => occupancy === undefined || !vacant.has(JSON.stringify([path, occupancy])),
  )
}

function addEntry(families: Families, entry: MetricEntry, { pipeline, run, values }: ExposedRun): void {
  const { path, kind, unit, index, port, histogram, description, each } = entry
  const isEngine = path === ENGINE_PATH
  const labels = { pipeline, run, ...(isEngine ? {} : { component: path }), ...(each && { [each.label]: each.value }) }
  const prefix = isEngine ? 'penstock_engine_' : 'penstock_'
  const value = values[index] as number
  if (histogram?.buckets !== undefined) {
    const { buckets } = histogram
    const { name, divisor } = named(prefix + histogram.name, buckets.unit)
    const family = families.get(name, 'histogram', buckets.description)
    addHistogram(family, labels, { values, buckets, count: value, divisor })
  } else if (port !== undefined) {
    const how = port.side === 'input' ? 'came in at an input' : 'left at an output'
    const help = `${unit === 'bytes' ? 'Bytes' : 'Packets'} that ${how} of a component.`
    families.get(`${prefix}${port.side}_${unit}_total`, 'counter', help).add({ ...labels, port: port.name }, value)
  } else if (histogram === undefined) {
    const { name, divisor } = named(prefix + (each ?? entry).name, unit)
    families.get(kind === 'counter' ? `${name}_total` : name, kind, description).add(labels, value / divisor)
  }
}

interface Counted {
  readonly values: ArrayLike<number>
  readonly buckets: HistogramBuckets
  readonly count: number
  readonly divisor: number
}

function addHistogram(family: Family, labels: Labels, { values, buckets, count, divisor }: Counted): void {
  let seen = 0
  for (let n = 0; n < HISTOGRAM_BUCKETS; n++) {
    seen += values[buckets.first + n] as number
    family.add({ ...labels, le: numberText(2 ** (buckets.exponent + n) / divisor) }, seen, '_bucket')
  }
  family.add({ ...labels, le: '+Inf' }, count, '_bucket')
  family.add(labels, (values[buckets.sum] as number) / divisor, '_sum')
  family.add(labels, count, '_count')
}
