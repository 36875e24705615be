import { CompletionContext } from '@codemirror/autocomplete'
import { json } from '@codemirror/lang-json'
import { ensureSyntaxTree } from '@codemirror/language'
import { EditorState } from '@codemirror/state'
import { expect, test } from 'vitest'
import type { Schema } from '../../data/schema.ts'
import { completeFrom, helpAt } from './completion.ts'

const schema: Schema = {
  properties: {
    version: { type: 'integer', default: 1 },
    engine_config: {
      type: 'object',
      properties: { pipeline: { type: 'object', additionalProperties: { $ref: '#/$defs/Component' } } },
    },
  },
  $defs: {
    Component: { properties: { udp: { $ref: '#/$defs/udp' }, gate: { $ref: '#/$defs/gate' } } },
    gate: { properties: { closed: { type: 'boolean', description: 'Whether it is closed.' } }, required: ['closed'] },
    udp: {
      properties: {
        input: { type: 'string', 'x-port': 'input' },
        output: { type: 'string', 'x-port': 'output' },
        backend: { type: 'string', enum: ['GENERIC', 'LINUX'], default: 'LINUX' },
        mtu: {
          description: 'Largest packet.',
          'x-unit': 'bytes',
          anyOf: [{ const: 0 }, { minimum: 68, maximum: 1500 }],
        },
      },
    },
  },
}

/** The state of a text with the cursor at `|`. */
function at(text: string): { readonly state: EditorState; readonly pos: number } {
  const pos = text.indexOf('|')
  const state = EditorState.create({ doc: text.replace('|', ''), extensions: [json()] })
  ensureSyntaxTree(state, state.doc.length, 10_000)
  return { state, pos }
}

function complete(text: string, explicit = false) {
  const { state, pos } = at(text)
  return completeFrom(() => schema)(new CompletionContext(state, pos, explicit))
}

const labels = (text: string, explicit = false): string[] | undefined =>
  complete(text, explicit)?.options.map(({ label }) => label)

const udp = (fields: string): string => `{"engine_config": {"pipeline": {"u": {"udp": {${fields}}}}}}`

test.each<[string, readonly string[]]>([
  ['{"|"}', ['"version"', '"engine_config"']],
  ['{"version": 1, "e|"}', ['"engine_config"']],
  ['{"engine_config": {"|"}}', ['"pipeline"']],
  ['{"engineConfig": {"pipeline": {"u": {"|"}}}}', ['"udp"', '"gate"']],
  [udp('"backend": "LINUX", "|"'), ['"input"', '"output"', '"mtu"']],
  [udp('"backend": "|"'), ['"GENERIC"', '"LINUX"']],
])('%s is completed with %j', (text, expected) => {
  expect(labels(text)).toEqual(expected)
})

test('where nothing is begun, completion waits until it is asked for', () => {
  expect(labels(udp('|'))).toBeUndefined()
  expect(labels(udp('|'), true)).toEqual(['"input"', '"output"', '"backend"', '"mtu"'])
})

test('a connection is completed with the names that wait for their other end', () => {
  const text = `{"engine_config": {"pipeline": {"a": {"udp": {"output": "x", "input": "y"}}, "b": {"udp": {"output": "y", "input": "|"}}}}}`
  expect(labels(text)).toContain('"x"')
  expect(labels(text)).not.toContain('"y"')
})

test('a name is replaced as a whole; one that has its value gets no other', () => {
  const { state, pos } = at('{"v|er": 2}')
  const result = completeFrom(() => schema)(new CompletionContext(state, pos, false))
  expect([result?.from, result?.to]).toEqual([1, 6])
  expect(result?.options[0]?.apply).toBeUndefined()
  expect(complete('{"v|"}')?.options[0]?.apply).toBeTypeOf('function')
})

test('where the schema knows nothing there is nothing to offer', () => {
  expect(complete('{"nope": {"|"}}')).toBeNull()
  expect(completeFrom(() => undefined)(new CompletionContext(at('{"|"}').state, 2, true))).toBeNull()
})

test('help says what a field is, its range and unit, at its name and at its value', () => {
  for (const text of [udp('"m|tu": 100'), udp('"mtu": 1|00')]) {
    const { state, pos } = at(text)
    expect(helpAt(state, pos, schema)).toMatchObject({
      text: 'Largest packet.',
      range: '68 to 1,500 bytes, or 0: unset',
    })
  }
  const { state, pos } = at('{"nope|": 1}')
  expect(helpAt(state, pos, schema)).toBeUndefined()
})
