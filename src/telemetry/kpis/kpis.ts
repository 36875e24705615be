/** The KPIs of a run, evaluated once a sample from its metrics. */
import type { Kpi, KpiMultipleValuesItem, KpiText } from '../../contract/types.ts'
import { type KpiConfig, type KpisConfig, shapeOf } from '../../dataplane/engine/kpis.ts'
import { ExpressionError, type ExpressionValue } from '../../text/expressions.ts'
import { causeIn, Evaluator, finite, type NumberPlace } from './evaluator.ts'
import { numberOf, truthOf } from './terms.ts'

type Shape<K extends keyof KpiConfig> = NonNullable<KpiConfig[K]>

/** `kpis` are checked; an expression over what this run does not have after all is an error text in its KPI, no failure. */
export class Kpis {
  readonly #evaluator: Evaluator
  readonly #kpis: (() => Kpi)[]

  /** `places`: where the metrics stand in what `evaluate` is given. */
  constructor({ variables, metrics }: KpisConfig, places: readonly NumberPlace[]) {
    this.#evaluator = new Evaluator(variables, places)
    this.#kpis = metrics.map((kpi) => this.#kpi(kpi))
  }

  /** Evaluates all from `values`, the numbers of one sample, taken at `time` in seconds. To be called once for each sample. */
  evaluate(values: ArrayLike<number>, time: number): Kpi[] {
    this.#evaluator.sample(values, time)
    return this.#kpis.map((kpi) => kpi())
  }

  #kpi(config: KpiConfig): () => Kpi {
    const { id, label, description, column_span: columnSpan } = config
    const common = { id, label, description, ...(columnSpan ? { columnSpan } : {}) }
    const result = this.#shape(config)
    return () => {
      try {
        return { ...common, ...result() }
      } catch (error) {
        return { ...common, error: causeIn(error).message }
      }
    }
  }

  /** What makes the result of a KPI, a member of Kpi's one-of. */
  #shape(kpi: KpiConfig): () => Partial<Kpi> {
    const shape = shapeOf(kpi)
    switch (shape) {
      case 'value':
      case 'gauge': {
        const { expression, ...rest } = kpi[shape] as Shape<'value'>
        const value = this.#number(expression)
        return () => ({ [shape]: { value: value(), ...rest } })
      }
      case 'value_over_time': {
        const { expression, unit, min_expression, max_expression, avg_expression } = kpi[
          shape
        ] as Shape<'value_over_time'>
        const value = this.#number(expression)
        const numbers = this.#numbers({ min: min_expression, max: max_expression, avg: avg_expression })
        return () => ({ valueOverTime: { value: value(), ...numbers(), ...given({ unit }) } })
      }
      case 'value_over_time_comparison':
        return this.#comparison(kpi[shape] as Shape<'value_over_time_comparison'>)
      case 'data_rate': {
        const { goodput_expression, overhead_expression, type } = kpi[shape] as Shape<'data_rate'>
        const goodput = this.#number(goodput_expression)
        const overhead = this.#number(overhead_expression)
        return () => ({ dataRate: { goodput: goodput(), overhead: overhead(), type } })
      }
      case 'value_to_text': {
        const { expression, mapping } = kpi[shape] as Shape<'value_to_text'>
        const term = this.#evaluator.term(expression)
        const texts = new Map(Object.entries(mapping))
        return () => {
          const value = checked(term.value())
          return { valueToText: textOf(texts.get(JSON.stringify(value)), value) }
        }
      }
      case 'value_to_text_conditions': {
        const { conditions } = kpi[shape] as Shape<'value_to_text_conditions'>
        const terms = conditions.map(({ expression, ...text }) => ({ term: this.#evaluator.term(expression), text }))
        return () => ({
          valueToTextConditions: textOf(terms.find(({ term }) => truthOf(checked(term.value())))?.text),
        })
      }
      case 'multiple_values': {
        const { unit, values } = kpi[shape] as Shape<'multiple_values'>
        const items = this.#items(values)
        return () => ({ multipleValues: { ...given({ unit }), values: items() } })
      }
      case 'multiple_values_over_time': {
        const { unit, values, graph_type: graphType } = kpi[shape] as Shape<'multiple_values_over_time'>
        const items = this.#items(values)
        return () => ({ multipleValuesOverTime: { ...given({ unit }), values: items(), graphType } })
      }
    }
  }

  #comparison(config: Shape<'value_over_time_comparison'>): () => Partial<Kpi> {
    const { unit, value1_text: value1Text, value2_text: value2Text } = config
    const value1 = this.#number(config.value1_expression)
    const value2 = this.#number(config.value2_expression)
    const numbers = this.#numbers({
      value1Min: config.value1_min_expression,
      value2Min: config.value2_min_expression,
      value1Max: config.value1_max_expression,
      value2Max: config.value2_max_expression,
      value1Avg: config.value1_avg_expression,
      value2Avg: config.value2_avg_expression,
    })
    const texts = given({ unit, value1Text, value2Text })
    return () => ({
      valueOverTimeComparison: { value1: value1(), value2: value2(), ...numbers(), ...texts },
    })
  }

  #number(expression: string): () => number {
    const term = this.#evaluator.term(expression)
    return () => finite(numberOf(term.value()))
  }

  /** The numbers of those expressions that are there, by the same names. */
  #numbers<K extends string>(expressions: Record<K, string | undefined>): () => { [P in K]?: number } {
    const numbers = Object.entries<string | undefined>(expressions).flatMap(([name, text]) =>
      text === undefined ? [] : [[name, this.#number(text)] as const],
    )
    return () => Object.fromEntries(numbers.map(([name, number]) => [name, number()])) as { [P in K]?: number }
  }

  #items(values: Shape<'multiple_values'>['values']): () => KpiMultipleValuesItem[] {
    const items = values.map(({ expression, ...rest }) => ({ number: this.#number(expression), rest }))
    return () =>
      items.map(({ number, rest }) => {
        try {
          return { value: number(), ...rest }
        } catch (error) {
          throw new ExpressionError(`${rest.label === '' ? '' : `${rest.label}: `}${causeIn(error).message}`)
        }
      })
  }
}

/** What is not undefined. */
function given<F extends Record<string, unknown>>(fields: F): { [K in keyof F]?: Exclude<F[K], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as never
}

function textOf(found: { text: string; color?: string } | undefined, value?: ExpressionValue): KpiText {
  const number = value === undefined || typeof value === 'string' ? {} : { value: Number(value) }
  return { ...(found ?? { text: '' }), ...number }
}

const checked = (value: ExpressionValue): ExpressionValue => (typeof value === 'number' ? finite(value) : value)
