/** KPIs of a configuration: what is taken, and every problem with its place and what was probably meant. */
import { describe, expect, test } from 'vitest'
import { loadSchema } from '../../contract/load-schema.ts'
import type { MessageSchema } from '../../contract/schema.ts'
import { components } from '../components/registry.ts'
import { checkPipelineConfig } from './check.ts'
import { diffConfig } from './diff.ts'
import { checkKpis, KpisSchema } from './kpis.ts'
import type { SchemaNode } from './schema.ts'

const pipeline = {
  source: { uniform_traffic_source: { output: 'a', total_packets: 1, interval: 1 } },
  sink: { traffic_sink: { input: 'a' } },
}

const check = (kpis: unknown) => checkPipelineConfig(JSON.stringify({ engine_config: { pipeline }, kpis }), components)

const problemsOf = (kpis: unknown) => check(kpis).problems.map(({ pointer, message }) => `${pointer}: ${message}`)

const value = (expression: unknown) => ({ metrics: [{ id: 'k', value: { expression } }] })

test('expressions over what components, the loop and the process have are taken, defaults filled in', () => {
  const { config, problems } = check({
    variables: { rate_in: 'rate({source/output_packets})', share: 'rate_in / rate({/engine/breaths})' },
    metrics: [
      { id: 'share', value: { expression: 'share' } },
      { id: 'delay', gauge: { expression: '{sink/delay_p99} + {/process/resident_memory}' } },
      { id: 'rate', dataRate: { goodputExpression: 'rate_in', overheadExpression: '0', type: 1 }, columnSpan: 2 },
    ],
  })
  expect(problems).toEqual([])
  expect(config?.kpis?.metrics).toEqual([
    { id: 'share', label: '', description: '', value: { expression: 'share' } },
    {
      id: 'delay',
      label: '',
      description: '',
      gauge: { expression: '{sink/delay_p99} + {/process/resident_memory}' },
    },
    {
      id: 'rate',
      label: '',
      description: '',
      column_span: 2,
      data_rate: { goodput_expression: 'rate_in', overhead_expression: '0', type: 'RATE' },
    },
  ])
})

test.each<[string, unknown, RegExp]>([
  [
    'a component that is not there',
    value('{snk/packets}'),
    /^\/kpis\/metrics\/0\/value\/expression: no component is called "snk"\. Did you mean "sink"\?/,
  ],
  [
    'a metric that is not there',
    value('1 + {sink/packet}'),
    /expression: "sink" has no metric "packet"\. Did you mean "packets"\?/,
  ],
  ['a metric of the loop that is not there', value('{/engine/breath}'), /Did you mean "breaths"\?/],
  ['an object of JavaScript', value('{__proto__/constructor}'), /no component is called "__proto__"/],
  ['a member of one', value('{sink/constructor}'), /"sink" has no metric "constructor"/],
  [
    'a variable that is not there',
    { variables: { loss: '1' }, ...value('los') },
    /no variable "los"\. Did you mean "loss"\?/,
  ],
  ['a name of JavaScript', value('constructor'), /no variable "constructor"/],
  ['a call of JavaScript', value('toString()'), /no function toString\(\)/],
  ['no expression', value('1 +'), /Expected expression after \+ \(character 4\)/],
  ['an empty one', value(''), /must not be empty/],
  ['no text', value(5), /must be a string/],
  [
    'a time to look back that is not last',
    value('avg(1, "10s", 2)'),
    /^\/kpis\/metrics\/0\/value\/expression: avg\(\) takes numbers/,
  ],
  ['decimals that are not whole', value('round(1, 2.5)'), /^\/kpis\/metrics\/0\/value\/expression: .* not 2\.5/],
  [
    'fewer decimals than none',
    { variables: { a: 'round({sink/delay_mean}, -1)' } },
    /^\/kpis\/variables\/a: .* not -1/,
  ],
  ['too many decimals', value('round({sink/delay_mean}, 16)'), /^\/kpis\/metrics\/0\/value\/expression: .* not 16/],
  ['a variable of a wrong expression', { variables: { a: '(' } }, /^\/kpis\/variables\/a: /],
  [
    'a variable that no expression can name',
    { variables: { 'a/b': '1' } },
    /^\/kpis\/variables\/a~1b: "a\/b" cannot be used/,
  ],
  [
    'a variable of itself',
    { variables: { a: 'b', b: 'a + 1', c: 'a' } },
    /^\/kpis\/variables\/a: variable "a" depends on itself\n\/kpis\/variables\/b: [^\n]*$/,
  ],
  ['no shape', { metrics: [{ id: 'k' }] }, /^\/kpis\/metrics\/0: exactly one of .* found none/],
  [
    'two shapes',
    { metrics: [{ id: 'k', value: { expression: '1' }, gauge: { expression: '1' } }] },
    /found value, gauge/,
  ],
  [
    'an id twice',
    {
      metrics: [
        { id: 'k', value: { expression: '1' } },
        { id: 'k', gauge: { expression: '1' } },
      ],
    },
    /^\/kpis\/metrics\/1\/id: two KPIs have the id "k"/,
  ],
  ['no id', { metrics: [{ value: { expression: '1' } }] }, /required field "id" is missing/],
  ['an unknown field', { metrics: [{ id: 'k', valu: {} }] }, /unknown field "valu"\. Did you mean "value"\?/],
  [
    'a wrong item of a list',
    { metrics: [{ id: 'k', multipleValues: { values: [{ label: '', expression: '1' }, { expression: '{a/b}' }] } }] },
    /^\/kpis\/metrics\/0\/multipleValues\/values\/1\/expression: no component/,
  ],
  [
    'a wrong condition, in lowerCamelCase',
    { metrics: [{ id: 'k', valueToTextConditions: { conditions: [{ expression: 'x', text: '' }] } }] },
    /^\/kpis\/metrics\/0\/valueToTextConditions\/conditions\/0\/expression: /,
  ],
  [
    'an unknown type',
    { metrics: [{ id: 'k', data_rate: { goodput_expression: '1', overhead_expression: '1', type: 'MEAN' } }] },
    /none of TOTAL, RATE/,
  ],
  ['too deep an expression', value(`${'('.repeat(200)}1${')'.repeat(200)}`), /nested more than 100 levels/],
  ['too long an expression', value(`${'1+'.repeat(1000)}1`), /2001 characters, more than the 2000/],
  [
    'too many expressions',
    { metrics: Array.from({ length: 40 }, (_, i) => ({ id: `${i}`, value: { expression: `${'1+'.repeat(999)}1` } })) },
    /^\/kpis\/metrics\/32\/value\/expression: all expressions together have more than the 65536/,
  ],
  [
    'too many windows',
    {
      metrics: Array.from({ length: 257 }, (_, i) => ({ id: `${i}`, value: { expression: 'max(1, "1s")' } }))
        .slice(0, 256)
        .concat({ id: 'x', value: { expression: 'max(1, "1s") + max(2, "1s")' } })
        .slice(1),
    },
    /more than 256 functions look back/,
  ],
])('%s is refused', (_, kpis, problem) => {
  const problems = problemsOf(kpis)
  expect(problems.join('\n')).toMatch(problem)
  expect(check(kpis).config).toBe(null)
})

test('every problem is told, each once', () => {
  const problems = problemsOf({
    variables: { a: 'b', b: 'a' },
    metrics: [
      { id: '1', value: { expression: '{x/y} + {sink/z}' } },
      { id: '2', value: { expression: '1 1' } },
    ],
  })
  expect(problems.map((problem) => problem.split(':')[0])).toEqual([
    '/kpis/variables/a',
    '/kpis/variables/b',
    '/kpis/metrics/0/value/expression',
    '/kpis/metrics/0/value/expression',
    '/kpis/metrics/1/value/expression',
  ])
})

test.each<[string, unknown, string[]]>([
  [
    'an empty expression',
    {
      variables: { empty: '', a: 'empty + b', b: 'a' },
      metrics: [
        { id: 'a', value: { expression: '' } },
        { id: 'b', value: { expression: '{sink/nope}' } },
        { id: 'b', value: { expression: 'foo(' } },
        { id: 'c' },
        { id: 'd', valueOverTime: { expression: '', minExpression: 'x' } },
      ],
    },
    [
      '/kpis/variables/empty',
      '/kpis/metrics/0/value/expression',
      '/kpis/metrics/4/valueOverTime/expression',
      '/kpis/variables/a',
      '/kpis/variables/b',
      '/kpis/metrics/1/value/expression',
      '/kpis/metrics/2/id',
      '/kpis/metrics/2/value/expression',
      '/kpis/metrics/3',
      '/kpis/metrics/4/valueOverTime/minExpression',
    ],
  ],
  [
    'values of wrong types',
    {
      variables: { a: 5 },
      metrics: [
        5,
        { id: 'x', gauge: [{ expression: '(' }] },
        { id: 'y', value: { expression: ['('] } },
        { id: 'z', multiple_values: { values: ['(', { label: '', expression: 'a + b' }] } },
      ],
    },
    [
      '/kpis/variables/a',
      '/kpis/metrics/0',
      '/kpis/metrics/1/gauge',
      '/kpis/metrics/2/value/expression',
      '/kpis/metrics/3/multiple_values/values/0',
      '/kpis/metrics/3/multiple_values/values/1/expression',
    ],
  ],
  ['a shape whose name is wrong', { metrics: [{ id: 'a', valu: { expression: '1' } }] }, ['/kpis/metrics/0/valu']],
  [
    'too many characters in all',
    {
      metrics: [
        ...Array.from({ length: 33 }, (_, i) => ({ id: `${i}`, value: { expression: `${'1+'.repeat(999)}1` } })),
        { id: 'x', value: { expression: '{sink/nope}' } },
        { id: 'y', value: { expression: '1'.repeat(2001) } },
      ],
    },
    ['/kpis/metrics/32/value/expression', '/kpis/metrics/33/value/expression', '/kpis/metrics/34/value/expression'],
  ],
])('%s hides no other problem', (_, kpis, pointers) => {
  expect(check(kpis).problems.map(({ pointer }) => pointer)).toEqual(pointers)
})

test('what is parsed stays within the limit for all expressions, and lists that are too long are not read', () => {
  const wrong = `${'1+'.repeat(992)}{sink/nope}`
  const metrics = Array.from({ length: 256 }, (_, i) => ({ id: `${i}`, value: { expression: wrong } }))
  // 32 are parsed; the 33rd passes the limit.
  expect(problemsOf({ metrics }).filter((problem) => problem.includes('no metric'))).toHaveLength(32)
  expect(problemsOf({ metrics }).filter((problem) => problem.includes('all expressions together'))).toHaveLength(1)
  expect(problemsOf({ metrics: [...metrics, ...metrics] })).toEqual(['/kpis/metrics: takes at most 256 entries'])
})

test('no component may stand where metrics of the node itself are', () => {
  const json = JSON.stringify({ engine_config: { pipeline: { ...pipeline, '/engine': pipeline.sink } } })
  expect(checkPipelineConfig(json, components).problems[0]).toMatchObject({
    pointer: '/engine_config/pipeline/~1engine',
    message: expect.stringMatching(/cannot be called "\/engine"/),
  })
})

describe('changes', () => {
  const configOf = (kpis?: unknown) => check(kpis).config as NonNullable<ReturnType<typeof check>['config']>

  test('of KPIs are live', () => {
    const changes = diffConfig(configOf(), configOf(value('1')), components)
    expect(changes).toEqual({ restart: [], live: [{ pointer: '/kpis', reason: 'BESIDE_THE_RUN' }] })
    expect(diffConfig(configOf(value('1')), configOf(value('2')), components).live).toMatchObject([
      { pointer: '/kpis' },
    ])
    expect(diffConfig(configOf(value('1')), configOf(value('1')), components).live).toEqual([])
  })
})

test('of many unknown components and variables the first are told what was probably meant', () => {
  const names = new Map(Array.from({ length: 1000 }, (_, i) => [`loss ${i}`, new Set(['input_packets'])]))
  const guesses = (part: string) => {
    const expression = Array(60).fill(part).join('+')
    const metrics = Array.from({ length: 5 }, (_, i) => ({ id: `k${i}`, value: { expression } }))
    const problems = checkKpis({ metrics, variables: { rate_in: '1' } }, names)
    expect(problems).toHaveLength(300)
    return problems.filter(({ message }) => message.includes('Did you mean')).length
  }
  expect(guesses('{los 7/input_packets}')).toBe(100)
  expect(guesses('{loss 7/inputpackets}')).toBe(300)
  expect(guesses('rat_in')).toBe(300)
})

/** The fields of a schema by name, those within too. */
function fieldsOf(node: SchemaNode): unknown {
  if (node.properties === undefined && node.items) return fieldsOf(node.items)
  if (node.patternProperties) return fieldsOf(Object.values(node.patternProperties)[0] as SchemaNode)
  if (node.properties === undefined) return true
  return Object.fromEntries(Object.entries(node.properties).map(([name, inner]) => [name, fieldsOf(inner)]))
}

function fieldsOfMessage({ fields }: MessageSchema): unknown {
  return Object.fromEntries(
    fields.map(({ name, type }) => [name, type.kind === 'message' ? fieldsOfMessage(type.message) : true]),
  )
}

test('the fields are those of the contract', () => {
  const message = loadSchema().messages.get('servicegrpc.pipeline.Kpis') as MessageSchema
  expect(fieldsOf(KpisSchema as SchemaNode)).toEqual(fieldsOfMessage(message))
})
