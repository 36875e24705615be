/** The JSON Schema of configurations against what the node checks: examples, defaults, and what both refuse. */
import { readdirSync, readFileSync } from 'node:fs'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, test } from 'vitest'
import { exampleOf } from '../../src/cli/component-example.ts'
import { components } from '../../src/dataplane/components/registry.ts'
import { checkPipelineConfig } from '../../src/dataplane/engine/check.ts'
import { COMPONENT_KEYS } from '../../src/dataplane/engine/component-keys.ts'
import type { JsonSchema } from '../../src/dataplane/engine/config-schema.ts'
import { OWN_PATHS } from '../../src/dataplane/engine/own-metrics.ts'
import { pipelineConfigSchema } from '../../src/node/config-schema.ts'

const schema = pipelineConfigSchema()
const definitions = schema.$defs as Record<string, JsonSchema>
const ajv = new Ajv2020({ allErrors: true, strict: true, strictTypes: false, allowUnionTypes: true })
ajv.addVocabulary(['x-family', 'x-live', 'x-one-of', 'x-port', 'x-secret', 'x-summary', 'x-unit'])
const validate = ajv.compile(schema)

function accepts(config: unknown): boolean {
  return validate(config)
}

const problemsOf = (config: unknown) => checkPipelineConfig(JSON.stringify(config), components).problems

const folder = new URL('../../examples/', import.meta.url)
const examples = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(
  // Profiles are parts of pipelines.
  (file) => file.endsWith('.json') && !file.startsWith('profiles/'),
)

test('has every component of the format, each with a title and a description', () => {
  const { Component, ...own } = definitions
  expect(Object.keys(own).sort()).toEqual([...COMPONENT_KEYS].sort())
  expect(Object.keys(Component?.properties as object).sort()).toEqual([...COMPONENT_KEYS].sort())
  for (const [key, each] of Object.entries(own)) {
    expect(each).toMatchObject({ title: key, type: 'object', additionalProperties: false })
    expect(each.description, key).toMatch(/\w/)
  }
})

test('every field has a description', () => {
  const missing: string[] = []
  const walk = (node: JsonSchema, at: string): void => {
    for (const [name, child] of Object.entries((node.properties ?? {}) as Record<string, JsonSchema>)) {
      if (child.$ref === undefined && !child.description) missing.push(`${at}/${name}`)
      walk(child, `${at}/${name}`)
    }
    for (const inner of [node.items, node.additionalProperties]) {
      if (typeof inner === 'object') walk(inner as JsonSchema, at)
    }
  }
  walk(schema, '')
  for (const [key, each] of Object.entries(definitions)) walk(each, key)
  expect(missing).toEqual([])
})

test('bounds and defaults are those that the node checks by', () => {
  expect(definitions.uniform_loss?.properties).toMatchObject({
    loss_prob: {
      type: 'number',
      minimum: 0,
      maximum: 1,
      description: expect.stringContaining('takes a change of it over'),
    },
  })
  expect(definitions.udp?.properties).toMatchObject({
    mtu: { anyOf: [{ enum: [0] }, { minimum: 68, maximum: 65_535 }] },
  })
  const defaults = [...components.values()].flatMap(({ key, config }) =>
    Object.entries(config.properties as Record<string, { default?: unknown }>).map(([name, field]) => [
      `${key}/${name}`,
      field.default,
    ]),
  )
  expect(defaults.filter(([, value]) => value !== undefined).length).toBeGreaterThan(10)
  const published = Object.entries(definitions).flatMap(([key, { properties }]) =>
    Object.entries(properties as Record<string, { default?: unknown }>).map(([name, field]) => [
      `${key}/${name}`,
      field.default,
    ]),
  )
  expect(Object.fromEntries(published)).toMatchObject(Object.fromEntries(defaults))
})

test('programs find what a field is in keywords of its own', () => {
  expect(definitions.delay_constant).toMatchObject({
    'x-family': 'emulation',
    properties: {
      flows: { items: { properties: { input: { 'x-port': 'input' }, output: { 'x-port': 'output' } } } },
      delay: { 'x-live': true, 'x-unit': 'ms' },
    },
  })
  expect(definitions.delay_constant).not.toHaveProperty('properties.seed.x-live')
  expect(definitions.loss_constant).toHaveProperty('properties.loss_probability.x-unit', 'probability')
  expect(definitions.chacha20_encrypt).toHaveProperty('properties.key.x-secret', true)
  for (const { key, family, summary, live = [] } of components.values()) {
    const { properties, ...own } = definitions[key] as { properties: Record<string, JsonSchema> }
    expect(own).toMatchObject({ 'x-family': family, 'x-summary': summary })
    const named = Object.keys(properties).filter((name) => properties[name]?.['x-live'] === true)
    expect(named.sort(), key).toEqual([...live].sort())
  }
})

test.each<[place: string, fields: readonly string[], others: Record<string, unknown>, values: Record<string, unknown>]>(
  [
    [
      'ssl_encrypt',
      ['aes_128_gcm_sha_256', 'aes_256_gcm_sha_384', 'chacha20_poly1305_sha_256'],
      { input: 'a', output: 'b' },
      {
        aes_128_gcm_sha_256: { key: '00'.repeat(16) },
        aes_256_gcm_sha_384: { key: '00'.repeat(32) },
        chacha20_poly1305_sha_256: { key: '00'.repeat(32) },
      },
    ],
    [
      'unix_socket',
      ['server', 'client'],
      { input: 'a', output: 'b' },
      { server: { listen_address: '@x' }, client: { server_address: '@y' } },
    ],
    [
      'raft.streams',
      ['realtime_stream', 'transit_stream'],
      { input: 'a', output: 'b', stream_handle: 1 },
      { realtime_stream: { timeout: 1 }, transit_stream: { bonding_delay: 1 } },
    ],
  ],
)(
  'of the fields that x-one-of of %s names, the node takes one, and no more or less',
  (place, fields, others, values) => {
    const [key = '', list] = place.split('.')
    const own = definitions[key] as { properties: Record<string, { items: JsonSchema }> }
    expect(list === undefined ? own : own.properties[list]?.items).toHaveProperty('x-one-of', fields)
    const isTaken = (names: readonly string[]): boolean => {
      const part = { ...others, ...Object.fromEntries(names.map((name) => [name, values[name]])) }
      const carriers = [{ input: 'b', output: 'a', carrier_handle: 1 }]
      const config = list === undefined ? part : { [list]: [part], carriers }
      const problems = problemsOf({ engine_config: { pipeline: { x: { [key]: config } } } })
      return !problems.some(({ message }) => fields.some((name) => message.includes(name)))
    }
    expect(fields.map((name) => isTaken([name]))).toEqual(fields.map(() => true))
    expect([isTaken([]), isTaken(fields)]).toEqual([false, false])
  },
)

test.each(examples)('takes examples/%s', (file) => {
  expect(accepts(JSON.parse(readFileSync(new URL(file, folder), 'utf8'))), JSON.stringify(validate.errors)).toBe(true)
})

test.each([...components.keys()])('takes the example of the reference page of %s', (key) => {
  const config = exampleOf(components.get(key)!)
  expect(accepts(config), JSON.stringify(validate.errors)).toBe(true)
})

const loss = (config: unknown) => ({
  engine_config: {
    pipeline: {
      source: { uniform_traffic_source: { output: 'a', total_packets: 10, interval: 10 } },
      loss: { uniform_loss: config },
      sink: { traffic_sink: { input: 'b' } },
    },
  },
})
const right = { input: 'a', output: 'b', loss_prob: 0.1 }
const shell = loss(right)

test('schema and node take what the refused ones below are made from', () => {
  expect([accepts(shell), problemsOf(shell)]).toEqual([true, []])
})

test.each<[string, unknown]>([
  ['no object', []],
  ['no engine_config', { version: 1 }],
  ['no components', { engine_config: { pipeline: {} } }],
  ['a later version', { ...shell, version: 2 }],
  ['an unknown field at the top', { ...shell, engine: {} }],
  ['an unknown component', { engine_config: { pipeline: { a: { unknown_thing: {} } } } }],
  ['no component in a component', { engine_config: { pipeline: { a: {} } } }],
  ['two components in one', { engine_config: { pipeline: { a: { traffic_sink: { input: 'a' }, gate: {} } } } }],
  [
    'the name of a component that is taken',
    {
      engine_config: {
        pipeline: { ...shell.engine_config.pipeline, [OWN_PATHS[0]!]: { traffic_sink: { input: 'c' } } },
      },
    },
  ],
  ['a field that is missing', loss({ input: 'a', output: 'b' })],
  ['an unknown field', loss({ ...right, loss: 1 })],
  ['a number out of range', loss({ ...right, loss_prob: 1.5 })],
  ['a text for a number', loss({ ...right, loss_prob: '0.1' })],
  ['an empty connection', loss({ ...right, input: '' })],
  ['a seed that is no whole number', loss({ ...right, seed: 0.5 })],
  [
    'an enum that has no such value',
    {
      ...shell,
      engine_config: { ...shell.engine_config, log_filters: [{ level: 'LOUD', actions: { actions: ['log'] } }] },
    },
  ],
  [
    'an address without a port',
    { engine_config: { pipeline: { u: { udp: { remote_address: '192.0.2.1', input: 'a' } } } } },
  ],
  [
    'a key of the wrong length',
    {
      engine_config: {
        pipeline: { c: { ssl_encrypt: { input: 'a', output: 'b', aes_128_gcm_sha_256: { key: '00' } } } },
      },
    },
  ],
  ['a text for $schema that is none', { ...shell, $schema: 1 }],
])('schema and node refuse %s', (_, config) => {
  expect(accepts(config), 'the schema').toBe(false)
  expect(problemsOf(config).length, 'the node').toBeGreaterThan(0)
})

describe('$schema', () => {
  const named = { $schema: 'http://127.0.0.1:8769/v1/schema/pipeline-config.json', ...shell }

  test('is taken by the schema and the node, and makes no other configuration', () => {
    expect(accepts(named)).toBe(true)
    expect(problemsOf(named)).toEqual([])
    const [with$, without] = [named, shell].map((each) => checkPipelineConfig(JSON.stringify(each), components).config)
    expect(with$).toEqual(without)
  })

  test('is taken at the top only', () => {
    expect(problemsOf({ engine_config: { ...shell.engine_config, $schema: 'x' } })).toHaveLength(1)
  })
})
