/** Expressions over metrics, as KPIs have them: from a text to a checked tree. Grammar and meaning: docs/kpi-expressions.md. */
import jsep from 'jsep'
import { readDuration } from './durations.ts'
import { suggestion } from './names.ts'

/** Longest text of an expression, characters. */
export const MAX_EXPRESSION_LENGTH = 2_000
/** Most brackets, calls, signs and choices within each other. */
export const MAX_EXPRESSION_DEPTH = 100
/** Longest time that a function looks back, milliseconds. */
const MAX_LOOK_BACK_MS = 86_400_000
/** Most decimals that round() leaves: a number has no more digits that mean something. */
const MAX_DECIMALS = 15

export type ExpressionValue = number | boolean | string

/** Functions of values. */
export type ValueFunction = 'min' | 'max' | 'avg' | 'abs' | 'round'
/** Functions of one value over time. */
export type TimeFunction = 'min' | 'max' | 'avg' | 'rate' | 'delta'
export type UnaryOperator = '-' | '+' | '!'
export type BinaryOperator = '+' | '-' | '*' | '/' | '%' | '==' | '!=' | '<' | '>' | '<=' | '>=' | '&&' | '||'

/** A metric that an expression reads: `{component/metric}`. */
export interface MetricReference {
  readonly kind: 'metric'
  readonly component: string
  readonly metric: string
}

export type Expression =
  | { readonly kind: 'constant'; readonly value: ExpressionValue }
  | MetricReference
  | { readonly kind: 'variable'; readonly name: string }
  | { readonly kind: 'unary'; readonly operator: UnaryOperator; readonly operand: Expression }
  | {
      readonly kind: 'binary'
      readonly operator: BinaryOperator
      readonly left: Expression
      readonly right: Expression
    }
  | {
      readonly kind: 'choice'
      readonly condition: Expression
      readonly consequent: Expression
      readonly alternate: Expression
    }
  | { readonly kind: 'call'; readonly name: ValueFunction; readonly operands: readonly Expression[] }
  /** `milliseconds` to look back; absent: to the sample before. */
  | {
      readonly kind: 'time'
      readonly name: TimeFunction
      readonly operand: Expression
      readonly milliseconds: number | undefined
    }

/** Why a text is no expression, or an expression has no value. */
export class ExpressionError extends Error {
  override readonly name = 'ExpressionError'
}

const FUNCTIONS = ['abs', 'avg', 'delta', 'if', 'max', 'min', 'rate', 'round']
const UNARY: readonly string[] = ['-', '+', '!'] satisfies UnaryOperator[]
const BINARY = '+ - * / % == != < > <= >= && ||'.split(' ')
const OPENING = '{'.charCodeAt(0)
const POINT = '.'.charCodeAt(0)
const ZERO = '0'.charCodeAt(0)
const NINE = '9'.charCodeAt(0)

for (const operator of Object.keys(jsep.binary_ops)) if (!BINARY.includes(operator)) jsep.removeBinaryOp(operator)
for (const operator of Object.keys(jsep.unary_ops)) if (!UNARY.includes(operator)) jsep.removeUnaryOp(operator)
jsep.removeLiteral('null')

/** How deep the parser is in terms and in expressions; it is recursive, and both may follow each other without the other. */
const depth = { terms: 0, expressions: 0 }

function deepen(level: keyof typeof depth): void {
  if (++depth[level] > MAX_EXPRESSION_DEPTH) {
    throw new ExpressionError(`is nested more than ${MAX_EXPRESSION_DEPTH} levels deep; name parts of it by variables`)
  }
}

/** A text or a metric as it stands in an expression, or a character that stands beside them and is in no name. */
const FOREIGN =
  /"(?:\\.|[^"\\])*(?:"|$)|'(?:\\.|[^'\\])*(?:'|$)|\{(?:\\.|[^}\\])*(?:\}|$)|([^\p{ASCII}\p{ID_Continue}])/gsu

/** To the parser all beyond ASCII is a letter: with a space or minus sign that was copied from a page, names would not be those that are seen. */
function refuseForeign(text: string): void {
  for (const { 1: character, index } of text.matchAll(FOREIGN)) {
    if (character === undefined) continue
    const code = (character.codePointAt(0) as number).toString(16).toUpperCase().padStart(4, '0')
    throw new ExpressionError(
      `${JSON.stringify(character)}, U+${code}, is neither letter, digit nor operator${place(index)}`,
    )
  }
}

const isDigit = (code: number): boolean => code >= ZERO && code <= NINE

jsep.plugins.register({
  name: 'metrics',
  init() {
    jsep.hooks.add('gobble-expression', () => deepen('expressions'))
    jsep.hooks.add('after-expression', () => void depth.expressions--)
    jsep.hooks.add('gobble-token', function (env) {
      deepen('terms')
      if (this.code === OPENING) env.node = metricAt(this)
      // Of numbers the parser does not tell by itself that they are over.
      else if (isDigit(this.code) || this.code === POINT) env.node = this.gobbleNumericLiteral() as jsep.Expression
    })
    jsep.hooks.add('after-token', () => void depth.terms--)
  },
})

/** Reads `{component/metric}`, where a backslash takes the next character as it is; the last `/` ends the component's name. */
function metricAt(parser: jsep.HookScope): jsep.Expression {
  const { expr, index: start } = parser
  let name = ''
  let slash = -1
  for (let at = start + 1; at < expr.length; at++) {
    const character = expr.charAt(at)
    if (character === '}') {
      parser.index = at + 1
      if (slash <= 0 || slash === name.length - 1) {
        throw new ExpressionError(
          `a metric is written {component/metric}, not ${expr.slice(start, at + 1)}${place(start)}`,
        )
      }
      return { type: 'Metric', component: name.slice(0, slash), metric: name.slice(slash + 1) }
    }
    if (character === '/') slash = name.length
    name += character === '\\' ? expr.charAt(++at) : character
  }
  throw new ExpressionError(`a metric begins with { and has no }${place(start)}`)
}

const place = (index: number): string => ` (character ${index + 1})`

/**
 * Reads the text of an expression. Throws ExpressionError, whose message says what is wrong and where.
 * What is read is data only: no name in it ever reaches a JavaScript object.
 */
export function parseExpression(text: string): Expression {
  if (text.length > MAX_EXPRESSION_LENGTH) {
    throw new ExpressionError(`has ${text.length} characters, more than the ${MAX_EXPRESSION_LENGTH} that are taken`)
  }
  if (text.trim() === '') throw new ExpressionError('is empty')
  refuseForeign(text)
  depth.terms = 0
  depth.expressions = 0
  try {
    return treeOf(jsep(text))
  } catch (error) {
    if (error instanceof ExpressionError) throw error
    const { description, index } = error as Error & { description?: string; index?: number }
    if (description === undefined || index === undefined) throw error
    throw new ExpressionError(`${description}${place(index)}`)
  }
}

/** What the parser made, as a tree of ours; what the language does not have is refused. */
function treeOf(node: jsep.Expression): Expression {
  const known = node as jsep.CoreExpression | { type: 'Metric'; component: string; metric: string }
  switch (known.type) {
    case 'Metric':
      return { kind: 'metric', component: known.component, metric: known.metric }
    case 'Literal':
      return { kind: 'constant', value: known.value as ExpressionValue }
    case 'Identifier':
      return { kind: 'variable', name: known.name }
    case 'UnaryExpression':
      return { kind: 'unary', operator: known.operator as UnaryOperator, operand: treeOf(known.argument) }
    case 'BinaryExpression': {
      const operator = known.operator as BinaryOperator
      return { kind: 'binary', operator, left: treeOf(known.left), right: treeOf(known.right) }
    }
    case 'ConditionalExpression':
      return choice(treeOf(known.test), treeOf(known.consequent), treeOf(known.alternate))
    case 'CallExpression':
      return callOf(known)
    case 'Compound':
    case 'SequenceExpression':
      throw new ExpressionError('must be one expression, not several')
    case 'ThisExpression':
      throw new ExpressionError('"this" means nothing here')
    case 'ArrayExpression':
      throw new ExpressionError('lists in [ ] are not part of the language')
    case 'MemberExpression':
      throw new ExpressionError('. and [ ] are not part of the language; a metric is written {component/metric}')
    default:
      throw new ExpressionError(`${(node as jsep.Expression).type} is not part of the language`)
  }
}

const choice = (condition: Expression, consequent: Expression, alternate: Expression): Expression => {
  return { kind: 'choice', condition, consequent, alternate }
}

function callOf({ callee, arguments: given }: jsep.CallExpression): Expression {
  const name = callee.type === 'Identifier' ? (callee as jsep.Identifier).name : undefined
  if (name === undefined || !FUNCTIONS.includes(name)) {
    const what = name === undefined ? 'what stands before ( is no function' : `there is no function ${name}()`
    throw new ExpressionError(
      `${what}.${name === undefined ? '' : suggestion(name, FUNCTIONS)} There are: ${FUNCTIONS.join(', ')}`,
    )
  }
  const operands = given.map(treeOf)
  const wants = (least: number, most: number, what: string) => {
    if (operands.length < least || operands.length > most) {
      throw new ExpressionError(`${name}() takes ${what}, found ${operands.length}`)
    }
  }
  switch (name) {
    case 'abs':
      wants(1, 1, 'one value')
      refuseTexts(name, operands)
      return { kind: 'call', name, operands }
    case 'round':
      wants(1, 2, 'a value and, if wanted, a number of decimals')
      refuseTexts(name, operands)
      if (operands[1] !== undefined) checkDecimals(constantOf(operands[1]))
      return { kind: 'call', name, operands }
    case 'if':
      wants(3, 3, 'a condition and two values')
      return choice(operands[0] as Expression, operands[1] as Expression, operands[2] as Expression)
    case 'rate':
    case 'delta':
      wants(1, 2, 'a value and, if wanted, a time to look back such as "10s"')
      return overTime(name, operands[0] as Expression, operands[1])
    default: {
      wants(1, Number.POSITIVE_INFINITY, 'values, or one value and a time to look back such as "10s"')
      const last = operands.at(-1) as Expression
      if (last.kind === 'constant' && typeof last.value === 'string') {
        wants(2, 2, 'values, or one value and a time to look back such as "10s"')
        return overTime(name as 'min' | 'max' | 'avg', operands[0] as Expression, last)
      }
      refuseTexts(name, operands)
      return { kind: 'call', name: name as 'min' | 'max' | 'avg', operands }
    }
  }
}

/** What is always wrong is told before an expression is evaluated: no function calculates with a text. */
function refuseTexts(name: string, operands: readonly Expression[]): void {
  for (const operand of operands) {
    if (operand.kind !== 'constant' || typeof operand.value !== 'string') continue
    const time = readDuration(operand.value) === undefined ? '' : '; a time to look back stands last, after one value'
    throw new ExpressionError(`${name}() takes numbers, and ${JSON.stringify(operand.value)} is a text${time}`)
  }
}

/** The number that stands in an expression as such, with its sign; undefined where it is to be calculated first. */
function constantOf(expression: Expression): number | undefined {
  if (expression.kind === 'constant') return typeof expression.value === 'string' ? undefined : Number(expression.value)
  const isSigned = expression.kind === 'unary' && expression.operator !== '!'
  const number = isSigned ? constantOf(expression.operand) : undefined
  return isSigned && number !== undefined && expression.operator === '-' ? -number : number
}

/** Throws ExpressionError where round() cannot round to so many decimals; undefined: not known yet. */
export function checkDecimals(decimals: number | undefined): void {
  if (decimals === undefined || (Number.isInteger(decimals) && decimals >= 0 && decimals <= MAX_DECIMALS)) return
  throw new ExpressionError(`round() takes 0 to ${MAX_DECIMALS} decimals, not ${decimals}`)
}

function overTime(name: TimeFunction, operand: Expression, window: Expression | undefined): Expression {
  refuseTexts(name, [operand])
  if (window === undefined) return { kind: 'time', name, operand, milliseconds: undefined }
  const text = window.kind === 'constant' && typeof window.value === 'string' ? window.value : ''
  const milliseconds = readDuration(text)
  if (milliseconds === undefined || milliseconds === 0 || milliseconds > MAX_LOOK_BACK_MS) {
    throw new ExpressionError(`${name}() looks back for a time such as "500ms", "10s" or "5m", at most a day`)
  }
  return { kind: 'time', name, operand, milliseconds }
}

/** The parts of an expression that stand directly in it. */
export function partsOf(expression: Expression): readonly Expression[] {
  switch (expression.kind) {
    case 'unary':
    case 'time':
      return [expression.operand]
    case 'binary':
      return [expression.left, expression.right]
    case 'choice':
      return [expression.condition, expression.consequent, expression.alternate]
    case 'call':
      return expression.operands
    default:
      return []
  }
}

/** Whether `name` can be the name of a variable in an expression. */
export function isVariableName(name: string): boolean {
  if (name.length > MAX_EXPRESSION_LENGTH) return false
  try {
    const expression = parseExpression(name)
    return expression.kind === 'variable' && expression.name === name
  } catch {
    return false
  }
}
