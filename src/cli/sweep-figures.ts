/** The figures of a sweep: which metrics and KPIs are its columns, and their values of one simulation. */
import type { Kpi } from '../contract/types.ts'
import { components } from '../dataplane/components/registry.ts'
import type { PipelineConfig } from '../dataplane/engine/config.ts'
import { type KpiConfig, shapeOf } from '../dataplane/engine/kpis.ts'
import { layoutOf } from '../dataplane/engine/layout.ts'
import { suggestion } from '../text/names.ts'
import { tokensOf } from '../text/pointer.ts'
import { isTime, timeText } from './durations.ts'
import { Failure, UsageFailure } from './failure.ts'
import type { SimulationResult } from './simulate-run.ts'
import { named, number } from './terminal.ts'

/** One column: its name, the unit of its numbers, and its value of one simulation; undefined where that has none. */
export interface Figure {
  readonly name: string
  readonly unit: string
  of(result: SimulationResult): number | string | undefined
  /** Of a KPI: its id, and why it has no value. Its unit is its author's, and stands with each value. */
  readonly kpi?: { readonly id: string; errorOf(result: SimulationResult): string | undefined }
}

/** What a sink says of a path, shown where neither metrics nor KPIs are chosen. */
const OF_SINKS = ['loss', 'delay_p50', 'delay_p99', 'mean_goodput']

interface Metric {
  readonly path: string
  readonly name: string
  readonly unit: string
}

const metricFigure = ({ path, name, unit }: Metric): Figure => ({
  name: `${path}.${name}`,
  unit,
  of: ({ metrics }) => metrics[path]?.[name],
})

/** The figure that `--metric` names: `sink.loss`, `sink/loss`, or `loss` where one component has it. */
function chosenMetric(given: string, metrics: readonly Metric[]): Figure {
  const found = metrics.filter(({ path, name }) => [`${path}.${name}`, `${path}/${name}`, name].includes(given))
  const [metric, more] = found
  if (metric !== undefined && more === undefined) return metricFigure(metric)
  if (more !== undefined) {
    const places = found.map(({ path, name }) => `${path}.${name}`)
    throw new UsageFailure(named(`--metric ${given}: several components have it; say which: ${places.join(', ')}`))
  }
  const component = metrics.find(({ path }) => given.startsWith(`${path}.`) || given.startsWith(`${path}/`))?.path
  const within = metrics.filter(({ path }) => path === component).map(({ name }) => name)
  const all = metrics.map(({ path, name }) => `${path}.${name}`)
  const known = component === undefined ? [...all, ...metrics.map(({ name }) => name)] : within
  const name = component === undefined ? given : given.slice(component.length + 1)
  const cure = 'penstock components KEY lists the metrics of a component'
  throw new Failure(named(`--metric ${given}: there is no such metric.${suggestion(name, known)} ${cure}`))
}

type KpiValue = number | string | undefined

/** One figure for each value of a KPI. */
function kpiFigures(kpi: KpiConfig): Figure[] {
  const { id } = kpi
  const figure = (part: string, unit: string, read: (kpi: Kpi) => KpiValue): Figure => ({
    name: part === '' ? id : `${id}.${part}`,
    unit,
    of: ({ kpis }) => {
      const found = kpis.find((each) => each.id === id)
      return found === undefined || found.error !== undefined ? undefined : read(found)
    },
    kpi: { id, errorOf: ({ kpis }) => kpis.find((each) => each.id === id)?.error },
  })
  const items = (values: readonly { label: string }[], unit: string) =>
    values.map(({ label }, i) =>
      figure(label || String(i + 1), unit, (of) => (of.multipleValues ?? of.multipleValuesOverTime)?.values[i]?.value),
    )
  switch (shapeOf(kpi)) {
    case 'value':
      return [figure('', kpi.value?.unit ?? '', ({ value }) => value?.value)]
    case 'gauge':
      return [figure('', '', ({ gauge }) => gauge?.value)]
    case 'value_over_time':
      return [figure('', kpi.value_over_time?.unit ?? '', ({ valueOverTime }) => valueOverTime?.value)]
    case 'value_over_time_comparison': {
      const { unit = '', value1_text, value2_text } = kpi.value_over_time_comparison ?? {}
      return [
        figure(value1_text || '1', unit, ({ valueOverTimeComparison }) => valueOverTimeComparison?.value1),
        figure(value2_text || '2', unit, ({ valueOverTimeComparison }) => valueOverTimeComparison?.value2),
      ]
    }
    case 'data_rate': {
      const unit = kpi.data_rate?.type === 'RATE' ? 'bit/s' : 'bytes'
      return [
        figure('goodput', unit, ({ dataRate }) => dataRate?.goodput),
        figure('overhead', unit, ({ dataRate }) => dataRate?.overhead),
      ]
    }
    case 'value_to_text':
      return [figure('', '', ({ valueToText }) => valueToText?.text)]
    case 'value_to_text_conditions':
      return [figure('', '', ({ valueToTextConditions }) => valueToTextConditions?.text)]
    case 'multiple_values':
      return items(kpi.multiple_values?.values ?? [], kpi.multiple_values?.unit ?? '')
    case 'multiple_values_over_time':
      return items(kpi.multiple_values_over_time?.values ?? [], kpi.multiple_values_over_time?.unit ?? '')
  }
}

/** What `--metric` and `--kpi` ask for. */
export interface Wanted {
  readonly metrics: readonly string[]
  /** Ids, or `id=expression`. */
  readonly kpis: readonly string[]
}

/** The id of a `--kpi`, and its expression where it has one. */
function readKpi(given: string): { id: string; expression?: string } {
  const [id = '', ...rest] = given.split('=')
  const expression = rest.join('=')
  const example = (id: string) => `write --kpi '${id}={sink/loss} * 100'`
  if (id.trim() === '') {
    throw new UsageFailure(`--kpi '${given}': the id is empty: give one, or ${example('missing')}`)
  }
  if (rest.length === 0) return { id }
  if (expression.trim() === '') throw new UsageFailure(`--kpi '${given}': the expression is empty: ${example(id)}`)
  return { id, expression }
}

/** `config`, JSON of a checked configuration, with the KPIs that `--kpi id=expression` adds. */
export function withKpis(config: unknown, wanted: readonly string[]): unknown {
  const added = wanted.flatMap((given) => {
    const { id, expression } = readKpi(given)
    return expression === undefined ? [] : [{ id, value: { expression } }]
  })
  if (added.length === 0) return config
  const { kpis, ...rest } = config as { kpis?: { metrics?: unknown[] } }
  return { ...rest, kpis: { ...kpis, metrics: [...(kpis?.metrics ?? []), ...added] } }
}

/** The `--kpi` that the place is within which `pointer` leads to, in what `withKpis` made of `config`. */
export function kpiAt(pointer: string, config: unknown, wanted: readonly string[]): string | undefined {
  const [kpis, metrics, index] = tokensOf(pointer)
  if (kpis !== 'kpis' || metrics !== 'metrics') return undefined
  const own = (config as { kpis?: { metrics?: unknown[] } }).kpis?.metrics?.length ?? 0
  return wanted.filter((given) => readKpi(given).expression !== undefined)[Number(index) - own]
}

/**
 * The columns, each with a name of its own: what is wanted, else the KPIs of the configuration, else what its sinks say. Fails on what it does
 * not have.
 */
export function figuresOf(config: PipelineConfig, wanted: Wanted): Figure[] {
  const figures = chosenFigures(config, wanted)
  const taken = new Set<string>()
  const given = new Set(figures.map(({ name }) => name))
  return figures.map((figure) => {
    let { name } = figure
    // Values of a KPI may have the same label, or none.
    for (let n = 2; taken.has(name); n++) {
      const numbered = `${figure.name}.${n}`
      if (!given.has(numbered)) name = numbered
    }
    taken.add(name)
    return { ...figure, name }
  })
}

function chosenFigures(config: PipelineConfig, wanted: Wanted): Figure[] {
  const { entries } = layoutOf(config, components).metrics
  const kpis = config.kpis?.metrics ?? []
  const figures = wanted.metrics.map((given) => chosenMetric(given, entries))
  for (const given of wanted.kpis) {
    const { id } = readKpi(given)
    const kpi = kpis.find((each) => each.id === id)
    if (kpi === undefined) {
      const known = kpis.map((each) => each.id)
      const hint =
        suggestion(id, known) ||
        ` ${known.length > 0 ? `There are ${known.join(', ')}.` : `Give one with it: --kpi '${id}={sink/loss} * 100'`}`
      throw new Failure(named(`--kpi ${id}: the configuration has no KPI with this id.${hint}`))
    }
    figures.push(...kpiFigures(kpi))
  }
  if (figures.length > 0) return figures
  if (kpis.length > 0) return kpis.flatMap(kpiFigures)
  const sinks = Object.entries(config.components).flatMap(([name, { key }]) => (key === 'traffic_sink' ? [name] : []))
  const ofSinks = sinks.flatMap((sink) =>
    OF_SINKS.flatMap((name) => entries.filter((each) => each.path === sink && each.name === name)),
  )
  if (ofSinks.length > 0) return ofSinks.map(metricFigure)
  const some = entries.slice(0, 3).map(({ path, name }) => `${path}.${name}`)
  throw new UsageFailure(
    `say what to measure: --metric ${some[0]}, or --kpi; among others there are ${some.join(', ')}`,
  )
}

/** A number with three significant digits, more before the point; a time with its unit, and so all that a KPI says. */
export function figureText(value: number | string | undefined, { unit, kpi }: Figure): string {
  if (value === undefined) return '–'
  if (typeof value === 'string') return value
  if (isTime(unit) && value !== 0) return timeText(value, unit)
  const digits = Math.abs(value) < 1000 ? String(Number(value.toPrecision(3))) : number(Math.round(value))
  return kpi === undefined || unit === '' ? digits : `${digits} ${unit}`
}
