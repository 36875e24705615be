/** KPIs of a configuration: what may stand in them, and whether their expressions can be evaluated over the metrics there are. */
import { type Static, Type } from '@sinclair/typebox'
import {
  type Expression,
  ExpressionError,
  isVariableName,
  MAX_EXPRESSION_LENGTH,
  type MetricReference,
  parseExpression,
  partsOf,
} from '../../text/expressions.ts'
import { isObject } from '../../text/json-object.ts'
import { suggestion } from '../../text/names.ts'
import { below, type Problem, pointerOf } from '../../text/pointer.ts'
import { Enumeration, Int32 } from './schema.ts'

/** Most KPIs of one configuration. */
const MAX_KPIS = 256
/** Most variables of them. */
const MAX_KPI_VARIABLES = 256
/** Most values of one KPI, conditions and texts of values included. */
const MAX_KPI_VALUES = 256
/** Characters of all expressions of one configuration together: they bound what its evaluation costs. */
const MAX_EXPRESSIONS_LENGTH = 65_536
/** Most functions in them that look back by a time: each keeps some 4 KiB. */
const MAX_LOOK_BACKS = 256

const Text = (options = {}) => Type.String({ maxLength: 4096, ...options })
const Expr = () => Type.String({ minLength: 1 })
const Unit = () => Type.Optional(Text())
const Color = () => Type.Optional(Text())
const List = <T extends Parameters<typeof Type.Array>[0]>(item: T) =>
  Type.Array(item, { minItems: 1, maxItems: MAX_KPI_VALUES })

const Item = Type.Object({
  expression: Expr(),
  label: Text({ default: '' }),
  description: Type.Optional(Text()),
  color: Color(),
})

const Shapes = {
  value_over_time: Type.Object({
    expression: Expr(),
    unit: Unit(),
    min_expression: Type.Optional(Expr()),
    max_expression: Type.Optional(Expr()),
    avg_expression: Type.Optional(Expr()),
  }),
  value: Type.Object({ expression: Expr(), unit: Unit() }),
  gauge: Type.Object({ expression: Expr() }),
  data_rate: Type.Object({
    goodput_expression: Expr(),
    overhead_expression: Expr(),
    type: Enumeration('What the values are.', 'DataRateType', { TOTAL: 0, RATE: 1 }, { default: 'TOTAL' }),
  }),
  value_over_time_comparison: Type.Object({
    value1_expression: Expr(),
    value2_expression: Expr(),
    unit: Unit(),
    value1_text: Type.Optional(Text()),
    value2_text: Type.Optional(Text()),
    value1_min_expression: Type.Optional(Expr()),
    value2_min_expression: Type.Optional(Expr()),
    value1_max_expression: Type.Optional(Expr()),
    value2_max_expression: Type.Optional(Expr()),
    value1_avg_expression: Type.Optional(Expr()),
    value2_avg_expression: Type.Optional(Expr()),
  }),
  value_to_text: Type.Object({
    expression: Expr(),
    mapping: Type.Record(Type.String(), Type.Object({ text: Text(), color: Color() }), {
      maxProperties: MAX_KPI_VALUES,
    }),
  }),
  value_to_text_conditions: Type.Object({
    conditions: List(Type.Object({ expression: Expr(), text: Text(), color: Color() })),
  }),
  multiple_values: Type.Object({ unit: Unit(), values: List(Item) }),
  multiple_values_over_time: Type.Object({
    unit: Unit(),
    values: List(Item),
    graph_type: Enumeration(
      'How they are drawn.',
      'MultipleValuesOverTimeGraphType',
      { AREA_STACK: 0, LINE: 1 },
      {
        default: 'AREA_STACK',
      },
    ),
  }),
}

const SHAPES = Object.keys(Shapes) as KpiShape[]

const KpiSchema = Type.Composite([
  Type.Object({
    id: Type.String({ minLength: 1, maxLength: 256 }),
    label: Text({ default: '' }),
    description: Text({ default: '' }),
    column_span: Type.Optional(Int32('Columns of the display.', { minimum: 0 })),
  }),
  Type.Partial(Type.Object(Shapes)),
])

/** What stands in `kpis` of a configuration. */
export const KpisSchema = Type.Object({
  variables: Type.Record(Type.String(), Expr(), { default: {}, maxProperties: MAX_KPI_VARIABLES }),
  metrics: Type.Array(KpiSchema, { default: [], maxItems: MAX_KPIS }),
})

export type KpiShape = keyof typeof Shapes
export type KpisConfig = Static<typeof KpisSchema>
export type KpiConfig = KpisConfig['metrics'][number]

/** The one shape of a checked KPI. */
export function shapeOf(kpi: KpiConfig): KpiShape {
  return SHAPES.find((shape) => kpi[shape] !== undefined) as KpiShape
}

/** The names of a run's metrics, by path. */
export type MetricNames = ReadonlyMap<string, ReadonlySet<string>>

/** Checks expressions one by one, and what they come to together. */
class ExpressionCheck {
  readonly problems: Problem[] = []
  readonly #variables: ReadonlySet<string>
  readonly #metrics: MetricNames
  readonly #components: ReadonlySet<string>
  #length = 0
  /** Characters of those that were parsed. */
  #parsed = 0
  #lookBacks = 0

  constructor(variables: readonly string[], metrics: MetricNames) {
    this.#variables = new Set(variables)
    this.#metrics = metrics
    this.#components = new Set(metrics.keys())
  }

  /** Reads the expression at `pointer`; returns the variables in it. */
  read(text: string, pointer: string): Set<string> {
    const names = new Set<string>()
    // One that is too long by itself is refused before it is parsed, and told by itself.
    const cost = text.length > MAX_EXPRESSION_LENGTH ? 0 : text.length
    const before = this.#length
    this.#length += cost
    // Told once: where it becomes too much.
    if (before <= MAX_EXPRESSIONS_LENGTH && this.#length > MAX_EXPRESSIONS_LENGTH) {
      this.tell(
        pointer,
        `all expressions together have more than the ${MAX_EXPRESSIONS_LENGTH} characters that are taken`,
      )
    }
    // Shorter ones may still fit after one that does not.
    if (this.#parsed + cost > MAX_EXPRESSIONS_LENGTH) return names
    this.#parsed += cost
    try {
      this.#walk(parseExpression(text), pointer, names)
    } catch (error) {
      if (!(error instanceof ExpressionError)) throw error
      this.tell(pointer, error.message)
    }
    return names
  }

  tell(pointer: string, message: string): void {
    this.problems.push({ pointer, message })
  }

  #walk(expression: Expression, pointer: string, names: Set<string>): void {
    const { kind } = expression
    if (kind === 'metric') this.#metric(expression, pointer)
    else if (kind === 'variable') {
      const { name } = expression
      if (this.#variables.has(name)) names.add(name)
      else this.tell(pointer, `there is no variable "${name}".${this.#guess(name, this.#variables)} ${NAMES_HINT}`)
    } else if (kind === 'time' && expression.milliseconds !== undefined && ++this.#lookBacks === MAX_LOOK_BACKS + 1) {
      this.tell(pointer, `more than ${MAX_LOOK_BACKS} functions look back by a time`)
    }
    for (const part of partsOf(expression)) this.#walk(part, pointer, names)
  }

  #metric({ component, metric }: MetricReference, pointer: string): void {
    const known = this.#metrics.get(component)
    if (known === undefined) {
      this.tell(pointer, `no component is called "${component}".${this.#guess(component, this.#components)}`)
    } else if (!known.has(metric)) {
      this.tell(pointer, `"${component}" has no metric "${metric}".${this.#guess(metric, known)}`)
    }
  }

  #guess(name: string, known: ReadonlySet<string>): string {
    return suggestion(name, known, this.problems.length)
  }
}

const NAMES_HINT = 'Metrics are written {component/metric}, variables stand in kpis.variables'

/**
 * Every problem of `kpis` but those of its schema, `faults`, which were told already: what they are about is passed over. Pointers begin below
 * `kpis`. `metrics` are those that the run will have.
 */
export function checkKpis(kpis: unknown, metrics: MetricNames, faults: readonly Problem[] = []): Problem[] {
  const given = isObject(kpis) ? kpis : {}
  const expressions = isObject(given.variables) ? given.variables : {}
  const variables = Object.keys(expressions)
  const check = new ExpressionCheck(variables, metrics)
  if (variables.length <= MAX_KPI_VARIABLES) readVariables(check, expressions)
  const list: unknown[] = Array.isArray(given.metrics) && given.metrics.length <= MAX_KPIS ? given.metrics : []
  const faulty = new Set(faults.map(({ pointer }) => pointer.split('/', 3).join('/')))
  const ids = new Set<string>()
  list.forEach((kpi, i) => {
    if (!isObject(kpi)) return
    const at = pointerOf(['metrics', i])
    const { id } = kpi
    if (typeof id === 'string') {
      if (ids.has(id)) check.tell(below(at, 'id'), `two KPIs have the id "${id}"`)
      ids.add(id)
    }
    const shapes = SHAPES.filter((shape) => kpi[shape] !== undefined)
    // One without any may have one whose name is wrong.
    if (shapes.length > 1 || (shapes.length === 0 && !faulty.has(at))) {
      const found = shapes.length === 0 ? 'none' : shapes.join(', ')
      check.tell(at, `exactly one of ${SHAPES.join(', ')} must be set, found ${found}`)
    }
    for (const shape of shapes) readAll(check, kpi[shape], below(at, shape))
  })
  return check.problems
}

function readVariables(check: ExpressionCheck, variables: Readonly<Record<string, unknown>>): void {
  const uses = new Map<string, ReadonlySet<string>>()
  for (const [name, text] of Object.entries(variables)) {
    const pointer = pointerOf(['variables', name])
    if (!isVariableName(name)) {
      check.tell(pointer, `"${name}" cannot be used in an expression: a name has letters, digits and _`)
    }
    if (isExpression(text)) uses.set(name, check.read(text, pointer))
  }
  for (const name of circular(uses)) {
    check.tell(pointerOf(['variables', name]), `variable "${name}" depends on itself`)
  }
}

/** Whether there is something to read; where not, the schema has told it. */
const isExpression = (value: unknown): value is string => typeof value === 'string' && value !== ''

/** Reads every expression in a shape: its members that are called so, and those in its list. */
function readAll(check: ExpressionCheck, shape: unknown, at: string): void {
  if (!isObject(shape)) return
  for (const [key, value] of Object.entries(shape)) {
    if (key.endsWith('expression') && isExpression(value)) check.read(value, below(at, key))
    if ((key === 'values' || key === 'conditions') && Array.isArray(value) && value.length <= MAX_KPI_VALUES) {
      value.forEach((item, i) => {
        readAll(check, item, below(below(at, key), i))
      })
    }
  }
}

/** The variables that are part of a circle, of `uses`: name to the names in its expression. */
function circular(uses: ReadonlyMap<string, ReadonlySet<string>>): string[] {
  return [...uses.keys()].filter((name) => {
    const seen = new Set<string>()
    const left = [...(uses.get(name) ?? [])]
    for (let other = left.pop(); other !== undefined; other = left.pop()) {
      if (other === name) return true
      if (seen.has(other)) continue
      seen.add(other)
      left.push(...(uses.get(other) ?? []))
    }
    return false
  })
}
