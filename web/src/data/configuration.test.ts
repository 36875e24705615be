import { describe, expect, test } from 'vitest'
import { readConfiguration } from './configuration.ts'
import { nodeSchema } from './testing.ts'

const schema = await nodeSchema()
const read = (pipeline: object, more: object = {}) =>
  readConfiguration(JSON.stringify({ engine_config: { pipeline }, ...more }), schema)

const chain = {
  source: { uniform_traffic_source: { output: 'a', interval: 1, total_packets: 0 } },
  mux: { tag_mux: { inputs: [{ name: 'a', tag: 1 }], output: 'b' } },
  delay: { delay_constant: { flows: [{ input: 'b', output: 'c' }], delay: 1 } },
  sink: { traffic_sink: { input: 'c' } },
}

test('components have their family, and ports as metrics call them', () => {
  const [, mux, delay] = read(chain).components
  expect(mux).toMatchObject({ name: 'mux', key: 'tag_mux', family: 'routing' })
  expect(mux?.ports).toEqual([
    { name: 'inputs_0_name', side: 'input', connection: 'a' },
    { name: 'output', side: 'output', connection: 'b' },
  ])
  expect(delay?.ports.map(({ name }) => name)).toEqual(['flows_0_input', 'flows_0_output'])
})

test('connections lead from the output with their name to the input with it', () => {
  expect(read(chain).connections).toEqual([
    { name: 'a', from: { component: 'source', port: 'output' }, to: { component: 'mux', port: 'inputs_0_name' } },
    { name: 'b', from: { component: 'mux', port: 'output' }, to: { component: 'delay', port: 'flows_0_input' } },
    { name: 'c', from: { component: 'delay', port: 'flows_0_output' }, to: { component: 'sink', port: 'input' } },
  ])
})

test('camelCase says the same', () => {
  const text = JSON.stringify({
    engineConfig: { pipeline: { up: { tagMux: { inputs: [{ name: 'a', tag: 1 }], output: 'b' } } } },
    meta: { componentDisplayCoordinates: { up: { x: 3, y: 4 } } },
  })
  const { components, places } = readConfiguration(text, schema)
  expect(components[0]).toMatchObject({ key: 'tag_mux', path: ['engineConfig', 'pipeline', 'up', 'tagMux'] })
  expect(components[0]?.ports).toHaveLength(2)
  expect(places.get('up')).toEqual({ x: 3, y: 4 })
})

describe('meta', () => {
  test('the order of display is kept, those without one come last', () => {
    const meta = { component_display_order: { sink: 0, delay: 1 } }
    expect(read(chain, { meta }).components.map(({ name }) => name)).toEqual(['sink', 'delay', 'source', 'mux'])
  })

  test('a coordinate that is left out is 0', () => {
    const meta = { component_display_coordinates: { mux: { y: 9 } } }
    expect([...read(chain, { meta }).places]).toEqual([['mux', { x: 0, y: 9 }]])
  })
})

test('a component of a later version is there, without ports', () => {
  expect(read({ new: { thing: { input: 'a' } } }).components[0]).toMatchObject({ key: 'thing', family: '', ports: [] })
})

test('a member that is null is none', () => {
  const { components, connections } = read({ ...chain, sink: { udp: null, ...chain.sink } })
  expect(components.at(-1)).toMatchObject({ key: 'traffic_sink', family: 'sources' })
  expect(connections.map(({ name }) => name)).toEqual(['a', 'b', 'c'])
})
