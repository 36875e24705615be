/** The expressions of a run's KPIs, joined to its metrics and brought up to date once a sample. */
import {
  type Expression,
  ExpressionError,
  type ExpressionValue,
  parseExpression,
  partsOf,
  type TimeFunction,
} from '../../text/expressions.ts'
import { suggestion } from '../../text/names.ts'
import { type History, LastSamples, Span, Window } from './history.ts'
import { numberOf, type Surroundings, type Term, termOf } from './terms.ts'

/** Where a metric stands among the numbers of a sample. */
export interface NumberPlace {
  readonly path: string
  readonly name: string
  readonly index: number
}

/** An expression with the histories in it, inner ones first. */
interface Evaluated {
  readonly term: Term
  readonly histories: readonly { readonly history: History; readonly operand: Term }[]
}

/** A variable: what it came to in this sample. */
class Variable implements Term {
  readonly evaluated: Evaluated
  #value: ExpressionValue | undefined
  #cause: ExpressionError | undefined

  constructor(evaluated: Evaluated) {
    this.evaluated = evaluated
  }

  evaluate(): void {
    this.#value = undefined
    this.#cause = undefined
    try {
      this.#value = this.evaluated.term.value()
    } catch (error) {
      this.#cause = causeIn(error)
    }
  }

  value(): ExpressionValue {
    if (this.#value === undefined) throw this.#cause
    return this.#value
  }
}

/** What was thrown, if it is of an expression; throws what is not. */
export function causeIn(error: unknown): ExpressionError {
  if (error instanceof ExpressionError) return error
  throw error
}

export class Evaluator {
  readonly #indices = new Map<string, Map<string, number>>()
  readonly #variables = new Map<string, Variable>()
  /** In the order in which they are brought up to date: each after what it uses. */
  readonly #units: { histories: Evaluated['histories']; variable?: Variable }[] = []
  #values: ArrayLike<number> = []

  /** `variables`: expressions by name; `places`: where the metrics stand in what `sample` is given. */
  constructor(variables: Readonly<Record<string, string>>, places: readonly NumberPlace[]) {
    for (const { path, name, index } of places) {
      const known = this.#indices.get(path)
      if (known === undefined) this.#indices.set(path, new Map([[name, index]]))
      else known.set(name, index)
    }
    const parsed = new Map(Object.entries(variables).map(([name, text]) => [name, parseExpression(text)]))
    for (const name of inOrder(parsed)) {
      const variable = new Variable(this.#evaluated(parsed.get(name) as Expression))
      this.#variables.set(name, variable)
      this.#units.push({ histories: variable.evaluated.histories, variable })
    }
  }

  /**
   * The term of an expression, whose value is that of the last sample. What the expression names and the run does not have is no error
   * before its value is asked for.
   */
  term(text: string): Term {
    const { term, histories } = this.#evaluated(parseExpression(text))
    if (histories.length > 0) this.#units.push({ histories })
    return term
  }

  /** Takes `values`, the numbers of one sample, taken at `time` in seconds. To be called once for each sample. */
  sample(values: ArrayLike<number>, time: number): void {
    this.#values = values
    for (const { histories, variable } of this.#units) {
      for (const { history, operand } of histories) {
        try {
          history.observe(time, finite(numberOf(operand.value())))
        } catch (error) {
          history.observe(time, undefined, causeIn(error))
        }
      }
      variable?.evaluate()
    }
  }

  #evaluated(expression: Expression): Evaluated {
    const histories: { history: History; operand: Term }[] = []
    const around: Surroundings = {
      metric: (component, metric) => this.#metric(component, metric),
      variable: (name) => this.#variables.get(name) ?? failing(`there is no variable "${name}"`),
      history: (name, operand, milliseconds) => {
        const history = historyFor(name, milliseconds)
        histories.push({ history, operand })
        return history
      },
    }
    return { term: termOf(expression, around), histories }
  }

  #metric(component: string, metric: string): Term {
    const known = this.#indices.get(component)
    if (known === undefined) {
      return failing(`the run has no component "${component}".${suggestion(component, [...this.#indices.keys()])}`)
    }
    const index = known.get(metric)
    if (index === undefined)
      return failing(`"${component}" has no metric "${metric}".${suggestion(metric, [...known.keys()])}`)
    return { value: () => this.#values[index] as number }
  }
}

function historyFor(name: TimeFunction, milliseconds: number | undefined): History {
  if (milliseconds === undefined) return new LastSamples()
  return name === 'rate' || name === 'delta' ? new Span(milliseconds / 1000) : new Window(milliseconds / 1000)
}

/** Throws where `value` is NaN or infinite. */
export function finite(value: number): number {
  if (Number.isFinite(value)) return value
  throw new ExpressionError(`the result is no finite number (${value}): it is divided by 0, or too large`)
}

function failing(message: string): Term {
  const error = new ExpressionError(message)
  return {
    value: () => {
      throw error
    },
  }
}

/** The names of `variables`, each after those in its expression; one that depends on itself comes without them. */
function inOrder(variables: ReadonlyMap<string, Expression>): string[] {
  const ordered = new Set<string>()
  const entered = new Set<string>()
  const left = [...variables.keys()].reverse()
  for (let name = left.at(-1); name !== undefined; name = left.at(-1)) {
    const used = entered.has(name) ? [] : variablesIn(variables.get(name) as Expression)
    entered.add(name)
    const missing = used.filter((other) => variables.has(other) && !entered.has(other))
    if (missing.length > 0) left.push(...missing)
    else ordered.add(left.pop() as string)
  }
  return [...ordered]
}

function variablesIn(expression: Expression): string[] {
  return expression.kind === 'variable' ? [expression.name] : partsOf(expression).flatMap(variablesIn)
}
