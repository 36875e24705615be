/** What expressions evaluate to: a tree of terms that is walked once a sample. */
import {
  type BinaryOperator,
  checkDecimals,
  type Expression,
  ExpressionError,
  type ExpressionValue,
  type TimeFunction,
  type UnaryOperator,
  type ValueFunction,
} from '../../text/expressions.ts'
import type { History } from './history.ts'

/** A part of an expression, joined to what it reads. `value` throws ExpressionError where it has none. */
export interface Term {
  value(): ExpressionValue
}

/** What terms are joined to. */
export interface Surroundings {
  /** The term of a metric; of one that does not exist its value throws. */
  metric(component: string, metric: string): Term
  variable(name: string): Term
  /** Keeps the values of `operand` over time, for function `name`; `milliseconds` as the expression has them. */
  history(name: TimeFunction, operand: Term, milliseconds: number | undefined): History
}

/** A number, truth as 1 or 0; throws for a text. */
export function numberOf(value: ExpressionValue): number {
  if (typeof value === 'string')
    throw new ExpressionError(`${JSON.stringify(value)} is a text where a number is needed`)
  return Number(value)
}

/** Whether a value holds as a condition: a number other than 0 does; throws for a text, and for what is no number at all. */
export function truthOf(value: ExpressionValue): boolean {
  const number = numberOf(value)
  if (Number.isNaN(number)) throw new ExpressionError('a condition is not a number: 0 is divided by 0')
  return number !== 0
}

/** Whether two values are the same; truth is 1 or 0, and a text is no number. */
function isSame(a: ExpressionValue, b: ExpressionValue): boolean {
  if (typeof a === 'string' || typeof b === 'string') return a === b
  return Number(a) === Number(b)
}

const UNARY: Readonly<Record<UnaryOperator, (value: ExpressionValue) => ExpressionValue>> = {
  '-': (value) => -numberOf(value),
  '+': numberOf,
  '!': (value) => !truthOf(value),
}

const BINARY: Readonly<Record<BinaryOperator, (left: ExpressionValue, right: Term) => ExpressionValue>> = {
  '+': (left, right) => numberOf(left) + numberOf(right.value()),
  '-': (left, right) => numberOf(left) - numberOf(right.value()),
  '*': (left, right) => numberOf(left) * numberOf(right.value()),
  '/': (left, right) => numberOf(left) / numberOf(right.value()),
  '%': (left, right) => numberOf(left) % numberOf(right.value()),
  '<': (left, right) => numberOf(left) < numberOf(right.value()),
  '>': (left, right) => numberOf(left) > numberOf(right.value()),
  '<=': (left, right) => numberOf(left) <= numberOf(right.value()),
  '>=': (left, right) => numberOf(left) >= numberOf(right.value()),
  '==': (left, right) => isSame(left, right.value()),
  '!=': (left, right) => !isSame(left, right.value()),
  '&&': (left, right) => truthOf(left) && truthOf(right.value()),
  '||': (left, right) => truthOf(left) || truthOf(right.value()),
}

const FUNCTIONS: Readonly<Record<ValueFunction, (operands: readonly Term[]) => number>> = {
  abs: ([operand]) => Math.abs(numberOf((operand as Term).value())),
  min: (operands) =>
    operands.reduce((least, term) => Math.min(least, numberOf(term.value())), Number.POSITIVE_INFINITY),
  max: (operands) => operands.reduce((most, term) => Math.max(most, numberOf(term.value())), Number.NEGATIVE_INFINITY),
  avg: (operands) => operands.reduce((sum, term) => sum + numberOf(term.value()), 0) / operands.length,
  round: ([operand, decimals]) => rounded(numberOf((operand as Term).value()), decimals),
}

/** Half away from zero, as people round. */
function rounded(value: number, decimals: Term | undefined): number {
  const places = decimals === undefined ? 0 : numberOf(decimals.value())
  checkDecimals(places)
  const scaled = shifted(Math.abs(value), places)
  // What has no decimals there is what it was, and so is what is no finite number.
  if (!(scaled <= Number.MAX_SAFE_INTEGER)) return value
  // 0 has no sign, also where it was -0.4.
  return Math.sign(value) * shifted(Math.round(scaled), -places) + 0
}

/** `value` times ten to the power of `places`, by its decimal digits: a product would not round 1.005 up. */
function shifted(value: number, places: number): number {
  // Numbers from 1e21 on and below 1e-6 are written with an exponent of their own.
  const [digits, exponent = '0'] = String(value).split('e')
  return Number(`${digits}e${Number(exponent) + places}`)
}

/** The terms of `expression`; the histories in it are made from the inside out. */
export function termOf(expression: Expression, around: Surroundings): Term {
  switch (expression.kind) {
    case 'constant': {
      const { value } = expression
      return { value: () => value }
    }
    case 'metric':
      return around.metric(expression.component, expression.metric)
    case 'variable':
      return around.variable(expression.name)
    case 'unary': {
      const operand = termOf(expression.operand, around)
      const apply = UNARY[expression.operator]
      return { value: () => apply(operand.value()) }
    }
    case 'binary':
      return rowOf(expression, around)
    case 'choice': {
      const condition = termOf(expression.condition, around)
      const consequent = termOf(expression.consequent, around)
      const alternate = termOf(expression.alternate, around)
      return { value: () => (truthOf(condition.value()) ? consequent : alternate).value() }
    }
    case 'call': {
      const operands = expression.operands.map((operand) => termOf(operand, around))
      const apply = FUNCTIONS[expression.name]
      return { value: () => apply(operands) }
    }
    case 'time': {
      const { name, milliseconds } = expression
      const history = around.history(name, termOf(expression.operand, around), milliseconds)
      return { value: () => history.value(name) }
    }
  }
}

/** A row of operators that bind from the left, evaluated one after the other: as long as a row may be, recursion is not for it. */
function rowOf(expression: Expression, around: Surroundings): Term {
  const steps: { apply: (left: ExpressionValue, right: Term) => ExpressionValue; right: Expression }[] = []
  let first = expression
  for (; first.kind === 'binary'; first = first.left) {
    steps.push({ apply: BINARY[first.operator], right: first.right })
  }
  const start = termOf(first, around)
  const row = steps.reverse().map(({ apply, right }) => ({ apply, right: termOf(right, around) }))
  return { value: () => row.reduce((value, { apply, right }) => apply(value, right), start.value()) }
}
