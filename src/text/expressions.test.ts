/** The language of expressions: what is read, and what is refused with its place. */
import { describe, expect, test } from 'vitest'
import {
  type Expression,
  ExpressionError,
  isVariableName,
  MAX_EXPRESSION_DEPTH,
  MAX_EXPRESSION_LENGTH,
  parseExpression,
} from './expressions.ts'

const constant = (value: number | boolean | string): Expression => ({ kind: 'constant', value })
const metric = (component: string, name: string): Expression => ({ kind: 'metric', component, metric: name })

/** The tree of a text as brackets, so that precedence can be seen. */
function shown(expression: Expression): string {
  switch (expression.kind) {
    case 'constant':
      return JSON.stringify(expression.value)
    case 'metric':
      return `{${expression.component}/${expression.metric}}`
    case 'variable':
      return expression.name
    case 'unary':
      return `(${expression.operator}${shown(expression.operand)})`
    case 'binary':
      return `(${shown(expression.left)}${expression.operator}${shown(expression.right)})`
    case 'choice':
      return `(${shown(expression.condition)}?${shown(expression.consequent)}:${shown(expression.alternate)})`
    case 'call':
      return `${expression.name}(${expression.operands.map(shown).join()})`
    case 'time':
      return `${expression.name}[${expression.milliseconds ?? 'sample'}](${shown(expression.operand)})`
  }
}

test.each([
  ['1 + 2 * 3', '(1+(2*3))'],
  ['10 - 4 - 3', '((10-4)-3)'],
  ['a || b && c == d < e + f', '(a||(b&&(c==(d<(e+f)))))'],
  ['-a * !b', '((-a)*(!b))'],
  ['- - 1', '(-(-1))'],
  ['a ? b : c ? d : e', '(a?b:(c?d:e))'],
  ['if(a > 1, "up", \'down\')', '((a>1)?"up":"down")'],
  ['rate({a/b}) * 8', '(rate[sample]({a/b})*8)'],
  ['delta({a/b}, "1m30s")', 'delta[90000]({a/b})'],
  ['avg(rate({a/b}), "10s")', 'avg[10000](rate[sample]({a/b}))'],
  ['min(1, {a/b}, c)', 'min(1,{a/b},c)'],
  ['round(1.25, 1) + abs(-.5e1)', '(round(1.25,1)+abs((-5)))'],
  ['true == false', '(true==false)'],
])('%s is %s', (text, tree) => {
  expect(shown(parseExpression(text))).toBe(tree)
})

describe('metrics', () => {
  test('the last / ends the name of the component, which may hold anything', () => {
    expect(parseExpression('{up link-1.a*b/in/packets}')).toEqual(metric('up link-1.a*b/in', 'packets'))
    expect(parseExpression('{/engine/breaths}')).toEqual(metric('/engine', 'breaths'))
    expect(parseExpression(String.raw`{a\}b\\/c}`)).toEqual(metric('a}b\\', 'c'))
  })

  test('their names and texts may have any character', () => {
    expect(parseExpression('{a\u00a0\\}\u2192/b}')).toEqual(metric('a\u00a0}\u2192', 'b'))
    for (const text of ['\u201cup\u201d \u2192', "it's \u2264", '']) {
      expect(parseExpression(JSON.stringify(text))).toEqual(constant(text))
      expect(parseExpression(`'${text.replace("'", "\\'")}'`)).toEqual(constant(text))
    }
    expect(() => parseExpression('"\u00d7')).toThrow(/Unclosed quote/)
    expect(() => parseExpression('{\u00d7/a')).toThrow(/has no \}/)
  })

  test('what looks like one within a text is text', () => {
    expect(parseExpression('"{a/b}"')).toEqual(constant('{a/b}'))
    expect(parseExpression(`true ? "}" : '{'`)).toEqual({
      kind: 'choice',
      condition: constant(true),
      consequent: constant('}'),
      alternate: constant('{'),
    })
  })
})

test.each([
  ['', /is empty/],
  ['   ', /is empty/],
  ['1 +', /Expected expression after \+ \(character 4\)/],
  ['1 2', /one expression/],
  ['1; 2', /one expression/],
  ['"abc', /Unclosed quote/],
  ['(1', /Unclosed \(/],
  ['1)', /Unexpected "\)" \(character 2\)/],
  ['1.5.2', /period/],
  ['10s', /cannot start with a number/],
  ['{a}', /\{component\/metric\}, not \{a\} \(character 1\)/],
  ['1 + {/b}', /not \{\/b\} \(character 5\)/],
  ['{a/}', /not \{a\/\}/],
  ['1 + {a/b', /has no \} \(character 5\)/],
  [String.raw`{a/b\}`, /has no \}/],
  ['rat({a/b})', /no function rat\(\)\. Did you mean "rate"\?/],
  ['abs()', /abs\(\) takes one value, found 0/],
  ['abs(1, 2)', /found 2/],
  ['if(1, 2)', /a condition and two values, found 2/],
  ['max()', /found 0/],
  ['max(1, 2, "10s")', /found 3/],
  ['max("10s")', /found 1/],
  ['avg(1, "10s", 2)', /avg\(\) takes numbers, and "10s" is a text; a time to look back stands last, after one value/],
  ['max("up", {a/b})', /max\(\) takes numbers, and "up" is a text$/],
  ['min("1s", "10s")', /"1s" is a text/],
  ['rate("10s")', /"10s" is a text/],
  ['delta("x", "10s")', /"x" is a text/],
  ['abs("1")', /"1" is a text/],
  ['round("1")', /"1" is a text/],
  ['round(1, "2")', /"2" is a text/],
  ['round(1, 2.5)', /0 to 15 decimals, not 2\.5/],
  ['round({a/b}, -1)', /0 to 15 decimals, not -1/],
  ['round({a/b}, 16)', /0 to 15 decimals, not 16/],
  ['1 + round({a/b}, -+2)', /0 to 15 decimals, not -2/],
  ['rate({a/b}, 10)', /a time such as/],
  ['rate({a/b}, "0s")', /a time such as/],
  ['rate({a/b}, "25h")', /at most a day/],
  ['avg({a/b}, "soon")', /a time such as/],
  // What other languages have.
  ['1 === 2', /Expected expression|Unexpected/],
  ['2 ** 3', /Expected expression/],
  ['a = 3', /Unexpected/],
  ['1 & 2', /Unexpected/],
  ['~1', /Unexpected/],
  ['`x`', /Unexpected/],
  ['[1]', /lists/],
  ['a.b', /not part of the language/],
  ['a["b"]', /not part of the language/],
  ['a?.b', /not part of the language/],
  ['{a/b}.c', /character 7/],
  ['this', /"this"/],
  // What comes along where an expression is copied from a page.
  ['a\u00a0- b', /^"\u00a0", U\+00A0, is neither letter, digit nor operator \(character 2\)$/],
  ['a \u2212 b', /U\+2212, .*\(character 3\)/],
  ['5\u00d78', /U\+00D7, .*\(character 2\)/],
  ['a == \u201cup\u201d', /U\+201C, .*\(character 6\)/],
  ['\u200brate({a/b})', /U\+200B, .*\(character 1\)/],
  ['"\\"\u00d7" == a \u2264 2', /U\+2264, .*\(character 12\)/],
  ['a \u{1f600} b', /U\+1F600, .*\(character 3\)/],
  ['new Date()', /one expression/],
  ['() => 1', /Unexpected|Expected|one expression|not part/],
])('%s is refused', (text, why) => {
  expect(() => parseExpression(text)).toThrow(ExpressionError)
  expect(() => parseExpression(text)).toThrow(why)
})

test('decimals that are given as they are may be those that round() takes, or calculated', () => {
  for (const decimals of ['0', '15', '+2', '--3', 'true', '{a/b}', '8 + 8', 'v']) {
    expect(() => parseExpression(`round(1.5, ${decimals})`)).not.toThrow()
  }
})

test.each([
  'constructor.constructor("return process")()',
  '__proto__.polluted',
  'toString()',
  '__proto__()',
  'hasOwnProperty("a")',
  'constructor("x")',
  '"a".constructor',
  'abs.call(1)',
  '(1).constructor',
  'rate.constructor("x")()',
])('%s does not reach an object of JavaScript', (text) => {
  expect(() => parseExpression(text)).toThrow(ExpressionError)
})

test('names of JavaScript objects are names of variables like any other', () => {
  for (const name of [
    '__proto__',
    'constructor',
    'toString',
    'hasOwnProperty',
    'process',
    'null',
    'undefined',
    'NaN',
  ]) {
    expect(parseExpression(name)).toEqual({ kind: 'variable', name })
  }
})

describe('bounds', () => {
  const nested = (open: string, close: string, count: number) => `${open.repeat(count)}1${close.repeat(count)}`

  test('an expression of the greatest length and depth is taken', () => {
    expect(() => parseExpression(nested('(', ')', MAX_EXPRESSION_DEPTH - 1))).not.toThrow()
    expect(() => parseExpression(`${'1+'.repeat(MAX_EXPRESSION_LENGTH / 2 - 1)}10`)).not.toThrow()
    expect(() => parseExpression(`${'abs(1)+'.repeat(200)}1`)).not.toThrow()
  })

  test.each([
    ['brackets', nested('(', ')', MAX_EXPRESSION_DEPTH)],
    ['open brackets', '('.repeat(MAX_EXPRESSION_LENGTH)],
    ['signs', nested('-', '', MAX_EXPRESSION_LENGTH - 1)],
    ['calls', nested('abs(', ')', 300)],
    ['lists', '['.repeat(MAX_EXPRESSION_LENGTH)],
    ['choices', nested('1?1:', '', 400)],
    ['choices in choices', nested('1?', ':1', 400)],
    ['members', nested('a[', ']', 400)],
  ])('%s too deep are refused', (_, text) => {
    expect(() => parseExpression(text)).toThrow(/nested more than 100 levels/)
  })

  test('a text too long is refused, whatever is in it', () => {
    expect(() => parseExpression('1'.repeat(MAX_EXPRESSION_LENGTH + 1))).toThrow(/2001 characters, more than the 2000/)
  })

  test('one that was refused leaves nothing behind', () => {
    for (let i = 0; i < 300; i++) expect(() => parseExpression('((((((((((1')).toThrow(/Unclosed/)
    expect(shown(parseExpression(nested('(', ')', 99)))).toBe('1')
  })
})

test('which names variables can have', () => {
  const possible = ['loss', '_a1', 'größe', 'µ', '損失', 'हानि', '𝒳2', '__proto__', '$x', 'rate']
  const others = ['true', 'this', '1a', 'a b', 'a.b', '', ' a', '{a/b}', 'a\u00a0', '\ufeffa', 'a→b', '€']
  expect([...possible, ...others].filter(isVariableName)).toEqual(possible)
})
