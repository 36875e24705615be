/** Editing configurations of every example, of every component, and of random ones, against the schema that a node publishes. */
import { readdirSync, readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { pipelineConfigSchema } from '../../src/node/config-schema.ts'
import type { JsonObject } from '../../web/src/data/json.ts'
import type { Port } from '../../web/src/data/ports.ts'
import { catalogueOf, kindsOf, type Schema } from '../../web/src/data/schema.ts'
import { withConnection, withoutConnection } from '../../web/src/views/editor/model-connect.ts'
import {
  withComponent,
  withComponentName,
  withConnectionName,
  withCoordinates,
  withCopies,
  withoutComponents,
} from '../../web/src/views/editor/model-edits.ts'
import {
  coordinatesOf,
  type Graph,
  graphOf,
  hasPipeline,
  othersOf,
  pipelineOf,
} from '../../web/src/views/editor/model-graph.ts'
import { placesOf } from '../../web/src/views/editor/model-layout.ts'

const catalogue = catalogueOf(pipelineConfigSchema() as Schema)
const kinds = kindsOf(catalogue).map(({ key }) => key)
const folder = new URL('../../examples/', import.meta.url)
const examples = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.json') && !file.startsWith('profiles/'))
  .map((file): [string, string] => [file, readFileSync(new URL(file, folder), 'utf8')])

const graph = (config: JsonObject): Graph => graphOf(config, catalogue)
const portsOf = (config: JsonObject): Port[] => graph(config).components.flatMap(({ ports }) => [...ports])
const shown = (config: JsonObject): string[] =>
  graph(config).connections.map(
    ({ from, to }) => `${from.component}.${from.path.join('.')} > ${to.component}.${to.path.join('.')}`,
  )

/** A configuration with nothing but these components, each with its fields. */
const of = (pipeline: JsonObject): JsonObject => ({ engine_config: { pipeline } })
const EMPTY = of({})

/** `config`, every part of which cannot be changed. */
function frozen<T>(config: T): T {
  if (typeof config === 'object' && config !== null) Object.values(Object.freeze(config)).forEach(frozen)
  return config
}

const port = (config: JsonObject, component: string, path: string): Port => {
  const found = portsOf(config).find((each) => each.component === component && each.path.join('.') === path)
  if (found === undefined) throw new Error(`${component} has no ${path}`)
  return found
}
const connected = (config: JsonObject, from: [string, string], to: [string, string]): JsonObject =>
  withConnection(config, catalogue, port(config, ...from), port(config, ...to))

describe.each(examples)('examples/%s', (_, text) => {
  const config = frozen(JSON.parse(text)) as JsonObject

  test('every connection is found, and nothing is changed by looking', () => {
    const { components, connections } = graph(config)
    expect(hasPipeline(config)).toBe(true)
    expect(components.map(({ name }) => name)).toEqual(Object.keys(pipelineOf(config)))
    expect(components.filter(({ kind }) => kind === undefined)).toEqual([])
    const used = components.flatMap(({ ports }) => ports).filter(({ connection }) => connection !== undefined)
    expect(connections.length * 2).toBe(used.length)
    placesOf(config, graph(config), new Map())
    expect(config).toEqual(JSON.parse(text))
  })

  test('a component that is moved changes its own coordinates and nothing else', () => {
    for (const name of Object.keys(pipelineOf(config))) {
      const { meta, ...others } = withCoordinates(config, new Map([[name, { x: 10.4, y: -3 }]])) as { meta: JsonObject }
      const { meta: before = {}, ...same } = config as { meta?: JsonObject }
      expect(others).toEqual(same)
      const coordinates = { ...(before.component_display_coordinates as JsonObject), [name]: { x: 10, y: -3 } }
      expect(meta).toEqual({ ...before, component_display_coordinates: coordinates })
    }
  })

  test('what is renamed and renamed back is as it was, and stays connected', () => {
    for (const name of Object.keys(pipelineOf(config))) {
      const renamed = withComponentName(config, name, 'another name/~')
      expect(graph(renamed).connections.length).toBe(graph(config).connections.length)
      expect(JSON.stringify(withComponentName(renamed, 'another name/~', name))).toBe(JSON.stringify(config))
    }
  })

  test('copies are connected among themselves, and taking them away leaves what was', () => {
    const { config: doubled, names } = withCopies(config, catalogue, Object.keys(pipelineOf(config)))
    expect(graph(doubled).connections.length).toBe(graph(config).connections.length * 2)
    expect(withoutComponents(doubled, new Set(names))).toEqual(config)
  })
})

test.each(kinds)('%s is added with its connection points named, and can be connected', (key) => {
  const { config, names } = withComponent(EMPTY, catalogue, key)
  expect(names).toEqual([key])
  const ports = portsOf(config)
  const named = ports.flatMap(({ connection }) => connection ?? [])
  expect(new Set(named).size).toBe(named.length)
  expect(ports.filter(({ isRequired, isNew, connection }) => isRequired && !isNew && connection === undefined)).toEqual(
    [],
  )
  for (const { side, path } of ports) {
    const between = withComponent(
      config,
      catalogue,
      side === 'input' ? 'bandwidth_traffic_source' : 'traffic_sink',
    ).config
    const own: [string, string] = [key, path.join('.')]
    const joined =
      side === 'input'
        ? connected(between, ['bandwidth_traffic_source', 'output'], own)
        : connected(between, own, ['traffic_sink', key === 'traffic_sink' ? 'x' : 'input'])
    expect(shown(joined)).toHaveLength(1)
  }
})

describe('ports', () => {
  test('of lists, of their items, and of objects inside are found, each list with one more', () => {
    const config = of({
      split: { splitter: { input: 'a', outputs: ['b', 'c'] } },
      gate: { gate: { flows: [{ input: 'b', output: 'd' }] } },
      mux: { tag_mux: { inputs: [{ name: 'c', tag: 1 }], output: 'e' } },
      look: {
        relayNetworkLookup: { network: { input: 'e', output: 'f' }, client: { input: 'd', output: 'g' }, clientId: [] },
      },
      u: { udp: { input: 'g' } },
    })
    const at = portsOf(config).map(
      ({ component, path, connection, isNew, isRequired }) =>
        `${component}.${path.join('.')} ${isNew ? 'new' : (connection ?? 'open')}${isRequired ? '' : '?'}`,
    )
    expect(at).toEqual([
      ...['split.input a', 'split.outputs.0 b', 'split.outputs.1 c', 'split.outputs.2 new'],
      ...['gate.flows.0.input b', 'gate.flows.0.output d', 'gate.flows.1.input new', 'gate.flows.1.output new'],
      ...['mux.inputs.0.name c', 'mux.inputs.1.name new', 'mux.output e'],
      ...['look.network.input e', 'look.network.output f', 'look.client.input d', 'look.client.output g'],
      ...['u.input g?', 'u.output open?'],
    ])
    expect(shown(config)).toEqual([
      'split.outputs.0 > gate.flows.0.input',
      'split.outputs.1 > mux.inputs.0.name',
      'gate.flows.0.output > look.client.input',
      'mux.output > look.network.input',
      'look.client.output > u.input',
    ])
  })

  test('a connection to an item that the list has not yet makes it, with a name for its other port', () => {
    const config = of({
      s: { throughput_traffic_source: { output: 'x' } },
      gate: { gate: { flows: [{ input: 'a', output: 'b' }] } },
    })
    const flows = [
      { input: 'a', output: 'b' },
      { input: 'x', output: 'gate.flows.1.output' },
    ]
    expect(pipelineOf(connected(config, ['s', 'output'], ['gate', 'flows.1.input'])).gate).toEqual({ gate: { flows } })
  })

  test('a list of names grows by the one that is connected', () => {
    const config = of({ split: { splitter: { input: 'a', outputs: ['b'] } }, sink: { traffic_sink: { input: 'c' } } })
    const grown = connected(config, ['split', 'outputs.1'], ['sink', 'input'])
    expect(pipelineOf(grown).split).toEqual({ splitter: { input: 'a', outputs: ['b', 'c'] } })
    expect(shown(grown)).toEqual(['split.outputs.1 > sink.input'])
  })
})

describe('connections', () => {
  const loss = (input: string, output: string): JsonObject => ({ uniform_loss: { input, output, loss_prob: 0 } })

  test('a circle is drawn like any other', () => {
    expect(shown(of({ a: loss('y', 'x'), b: loss('x', 'y') }))).toEqual(['a.output > b.input', 'b.output > a.input'])
    expect(placesOf({}, graph(of({ a: loss('y', 'x'), b: loss('x', 'y'), c: loss('z', 'z') })), new Map()).size).toBe(3)
  })

  test('of a name that two write and two read there are four', () => {
    expect(
      graph(of({ a: loss('1', 'x'), b: loss('2', 'x'), c: loss('x', '3'), d: loss('x', '4') })).connections,
    ).toHaveLength(4)
  })

  test('an output that goes elsewhere leaves the reader that it had open', () => {
    const moved = connected(
      of({ a: loss('1', 'x'), b: loss('x', '2'), c: loss('3', '4') }),
      ['a', 'output'],
      ['c', 'input'],
    )
    expect(shown(moved)).toEqual(['a.output > c.input'])
    expect(pipelineOf(moved).b).toEqual(loss('b.input', '2'))
  })

  test('an input that is read from elsewhere leaves the writer that it had open: without a name where that may be', () => {
    const config = of({ u: { udp: { input: '0', output: 'x' } }, a: loss('1', 'y'), b: loss('x', '2') })
    const moved = connected(config, ['a', 'output'], ['b', 'input'])
    expect(shown(moved)).toEqual(['a.output > b.input'])
    expect(pipelineOf(moved).u).toEqual({ udp: { input: '0' } })
  })

  test('the name of an end that waits for its other one is taken', () => {
    const config = of({ u: { udp: { remote_address: 'h:1' } }, b: loss('wanted', '2') })
    expect(pipelineOf(connected(config, ['u', 'output'], ['b', 'input'])).u).toMatchObject({
      udp: { output: 'wanted' },
    })
  })

  test('one that is taken apart leaves both ends open', () => {
    const config = of({ u: { udp: { output: 'x' } }, b: loss('x', 'y'), c: loss('y', 'z') })
    const first = withoutConnection(config, catalogue, port(config, 'b', 'input'))
    expect(pipelineOf(first)).toEqual({ u: { udp: {} }, b: loss('b.input', 'y'), c: loss('y', 'z') })
    const second = withoutConnection(config, catalogue, port(config, 'b', 'output'))
    expect(pipelineOf(second)).toEqual({ u: { udp: { output: 'x' } }, b: loss('x', 'y'), c: loss('c.input', 'z') })
  })

  test('fields stay as they are written, in lowerCamelCase too', () => {
    const config = of({
      a: { uniformLoss: { input: '1', output: 'x', lossProb: 0.5 } },
      f: { flowFilter: { input: '2', matchOutput: '3', mismatchOutput: '4' } },
    })
    const joined = connected(config, ['f', 'match_output'], ['a', 'input'])
    expect(pipelineOf(joined)).toEqual({
      a: { uniformLoss: { input: '3', output: 'x', lossProb: 0.5 } },
      f: { flowFilter: { input: '2', matchOutput: '3', mismatchOutput: '4' } },
    })
  })
})

describe('names', () => {
  test('a rename goes wherever the configuration speaks of the component', () => {
    const config: JsonObject = {
      engine_config: {
        pipeline: { loss: { bomb: {} }, 'loss/2': { bomb: {} } },
        log_filters: [{ path_filter: 'loss', actions: { actions: ['log'] } }, { path_filter: 'lo*' }],
      },
      kpis: {
        variables: { lost: '{loss/emulated_loss} + {loss/2/x}' },
        metrics: [{ label: '{loss/x}', valueOverTime: { expression: 'rate({loss/a})', minExpression: '{loss/b}' } }],
      },
      variables: [
        { id: 'p', paths: ['/engine_config/pipeline/loss/bomb/delay', '/engine_config/pipeline/loss~12/bomb'] },
      ],
      meta: { component_display_coordinates: { loss: { x: 1, y: 2 } }, component_display_order: { loss: 3 } },
    }
    expect(withComponentName(config, 'loss', 'a/b')).toEqual({
      engine_config: {
        pipeline: { 'a/b': { bomb: {} }, 'loss/2': { bomb: {} } },
        log_filters: [{ path_filter: 'a/b', actions: { actions: ['log'] } }, { path_filter: 'lo*' }],
      },
      kpis: {
        variables: { lost: '{a/b/emulated_loss} + {a/b/2/x}' },
        metrics: [{ label: '{loss/x}', valueOverTime: { expression: 'rate({a/b/a})', minExpression: '{a/b/b}' } }],
      },
      variables: [
        { id: 'p', paths: ['/engine_config/pipeline/a~1b/bomb/delay', '/engine_config/pipeline/loss~12/bomb'] },
      ],
      meta: { component_display_coordinates: { 'a/b': { x: 1, y: 2 } }, component_display_order: { 'a/b': 3 } },
    })
  })

  test('a connection is renamed at both of its ends', () => {
    const config = of({
      a: { udp: { output: 'x' } },
      b: { gate: { flows: [{ input: 'x', output: 'y' }] } },
      c: { bomb: {} },
    })
    const renamed = withConnectionName(config, catalogue, 'x', 'z')
    expect(pipelineOf(renamed)).toEqual({
      a: { udp: { output: 'z' } },
      b: { gate: { flows: [{ input: 'z', output: 'y' }] } },
      c: { bomb: {} },
    })
    expect(() => withConnectionName(config, catalogue, 'x', 'y')).toThrow(RangeError)
    expect(() => withConnectionName(config, catalogue, 'x', '')).toThrow(RangeError)
  })

  test('a name that another component has, and none, are refused', () => {
    const config = of({ a: { bomb: {} }, b: { bomb: {} } })
    expect(() => withComponentName(config, 'a', 'b')).toThrow(RangeError)
    expect(() => withComponentName(config, 'a', '')).toThrow(RangeError)
  })

  test('what is added is called like nothing that is there', () => {
    const { config } = withComponent(
      withComponent(of({ udp: { bomb: {} } }), catalogue, 'udp').config,
      catalogue,
      'udp',
    )
    expect(Object.keys(pipelineOf(config))).toEqual(['udp', 'udp_2', 'udp_3'])
  })
})

describe('what is no configuration', () => {
  test.each([null, 1, [], { engine_config: [] }, { engineConfig: { pipeline: 'x' } }])('%j is not drawn', (value) => {
    expect(hasPipeline(value)).toBe(false)
  })

  test('components that are none are boxes without ports', () => {
    const config = of({
      a: 1,
      b: {},
      c: { udp: {}, tcp: {} },
      d: { nope: {} },
      e: { udp: 'x' },
      __proto__: null,
    } as unknown as JsonObject)
    expect(graph(config).components.map(({ name, key, kind }) => [name, key, kind?.key])).toEqual([
      ['a', undefined, undefined],
      ['b', undefined, undefined],
      ['c', undefined, undefined],
      ['d', 'nope', undefined],
      ['e', 'udp', 'udp'],
    ])
  })
})

describe('random edits', () => {
  const edits = fc.array(
    fc.oneof(
      fc.record({ do: fc.constant('add' as const), key: fc.constantFrom(...kinds) }),
      fc.record({ do: fc.constant('connect' as const), from: fc.nat(), to: fc.nat() }),
      fc.record({ do: fc.constant('disconnect' as const), from: fc.nat() }),
      fc.record({ do: fc.constant('remove' as const), from: fc.nat() }),
      fc.record({ do: fc.constant('copy' as const), from: fc.nat() }),
    ),
    { maxLength: 40, size: 'max' },
  )

  test('no name is ever written or read twice, and the rest of the configuration is never touched', () => {
    const rest = { version: 1, kpis: { metrics: [] }, variables: [], x: '__proto__' }
    fc.assert(
      fc.property(edits, (steps) => {
        let config: JsonObject = frozen({ ...rest, ...EMPTY })
        for (const step of steps) {
          const ports = portsOf(config)
          const [outputs, inputs] = (['output', 'input'] as const).map((side) =>
            ports.filter((each) => each.side === side),
          )
          const names = Object.keys(pipelineOf(config))
          const pick = <T>(list: readonly T[] | undefined, i: number): T | undefined => list?.[i % (list.length || 1)]
          if (step.do === 'add') config = withComponent(config, catalogue, step.key).config
          else if (step.do === 'connect') {
            const from = pick(outputs, step.from)
            const to = pick(inputs, step.to)
            if (from === undefined || to === undefined) continue
            config = withConnection(config, catalogue, from, to)
            const made = port(config, from.component, from.path.join('.'))
            expect(othersOf(graph(config), made).map(({ component, path }) => [component, path])).toEqual([
              [to.component, to.path],
            ])
          } else if (step.do === 'disconnect') {
            const end = pick(ports, step.from)
            if (end === undefined) continue
            config = withoutConnection(config, catalogue, end)
            const left = portsOf(config).find(
              ({ component, path }) => component === end.component && path.join() === end.path.join(),
            )
            expect(left === undefined ? [] : othersOf(graph(config), left)).toEqual([])
          } else if (step.do === 'remove') config = withoutComponents(config, new Set([pick(names, step.from) ?? '']))
          else if (names.length > 0) config = withCopies(config, catalogue, [pick(names, step.from) as string]).config
          frozen(config)
        }
        for (const side of ['output', 'input'] as const) {
          const used = portsOf(config).flatMap((each) => (each.side === side ? (each.connection ?? []) : []))
          expect(used.length).toBe(new Set(used).size)
        }
        const { engine_config: _, ...others } = config
        expect(others).toEqual(rest)
      }),
      { numRuns: 150 },
    )
  })

  test('coordinates are of whom they were', () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.record({ x: fc.integer(), y: fc.integer() })), (points) => {
        const config = withCoordinates({ meta: { own: 1 } }, new Map(Object.entries(points)))
        expect(Object.fromEntries(coordinatesOf(config))).toEqual(points)
        expect((config.meta as JsonObject).own).toBe(1)
        const moved = withCoordinates(config, new Map([['moved', { x: 1, y: 2 }]]))
        expect(Object.fromEntries(coordinatesOf(moved))).toEqual({ ...points, moved: { x: 1, y: 2 } })
      }),
    )
  })
})
