/** What every available component owes, whatever it does: run over the whole registry. */
import { createHash } from 'node:crypto'
import type { TSchema } from '@sinclair/typebox'
import { describe, expect, test } from 'vitest'
import { loadSchema } from '../../src/contract/load-schema.ts'
import type { MessageSchema } from '../../src/contract/schema.ts'
import { components } from '../../src/dataplane/components/registry.ts'
import type { AnyComponent } from '../../src/dataplane/engine/component.ts'
import { COMPONENT_KEYS } from '../../src/dataplane/engine/component-keys.ts'
import { LogConfig } from '../../src/dataplane/engine/log-filters.ts'
import type { MetricDeclarations } from '../../src/dataplane/engine/metrics.ts'
import { ENGINE_PATH } from '../../src/dataplane/engine/own-metrics.ts'
import { portsOf } from '../../src/dataplane/engine/ports.ts'
import { Random } from '../../src/dataplane/engine/random.ts'
import { RelayConfiguration } from '../../src/dataplane/engine/relay-configuration.ts'
import type { Annotations } from '../../src/dataplane/engine/schema.ts'
import { camelCase } from '../../src/text/names.ts'
import { type Bench, type DriveOptions, drive, type Pipeline, payload, Refused } from '../harness/component.ts'
import { type Example, examples } from './examples.ts'
import { differences } from './schema-against-proto.ts'

const MS = 1e6
const LARGEST = 2048

type Node = TSchema &
  Annotations & { properties?: Record<string, Node>; required?: string[]; items?: Node; default?: unknown }

const componentMessage = loadSchema().messages.get('servicegrpc.pipeline.Component') as MessageSchema

function exampleOf(key: string): Example {
  const example = examples[key]
  if (!example) {
    throw new Error(`"${key}" has no example: add a working configuration of it to test/contract-suite/examples.ts`)
  }
  return example
}

function pipelineOf(key: string, config?: Record<string, unknown>): Pipeline {
  const example = exampleOf(key)
  return { ...example.others, it: { [key]: config ?? example.config } }
}

function problemsOf(key: string, config: Record<string, unknown>): { pointer: string; message: string }[] {
  try {
    drive(pipelineOf(key, config)).stop()
    return []
  } catch (error) {
    if (error instanceof Refused) return error.problems
    throw error
  }
}

/** The configuration as the check made it, defaults filled in. */
function checked(key: string, config?: Record<string, unknown>): Record<string, unknown> {
  const bench = drive(pipelineOf(key, config))
  const made = bench.config.components.it.config
  bench.stop()
  return made
}

/** Every property of a schema, those of nested objects and lists included. */
function propertiesOf(schema: Node, at = ''): [pointer: string, property: Node, isOptional: boolean][] {
  const nested = schema.items ? propertiesOf(schema.items, `${at}/0`) : []
  return Object.entries(schema.properties ?? {}).reduce(
    (all, [name, property]) =>
      all.concat(
        [[`${at}/${name}`, property, !schema.required?.includes(name)]],
        propertiesOf(property, `${at}/${name}`),
      ),
    nested,
  )
}

/** For each live number every one of its bounds, and what is as near to them as a number can be, with one to change to. */
function boundaryValues(schema: Node, live: readonly string[]): [{ name: string; value: number }, number][] {
  return live.flatMap((name) => {
    const { type, minimum = -1e9, maximum = 1e9, exclusiveMinimum } = (schema.properties as Record<string, Node>)[name]
    if (type !== 'integer' && type !== 'number') return []
    const low = exclusiveMinimum === undefined ? minimum : exclusiveMinimum + Number.MIN_VALUE
    const values = [
      low,
      maximum,
      low === 0 && type === 'number' ? Number.MIN_VALUE : low,
      Math.min(maximum, Math.max(low, 1)),
    ]
    return [...new Set(values)].flatMap((value) =>
      [...new Set(values)]
        .filter((other) => other !== value)
        .map((other): [{ name: string; value: number }, number] => [{ name, value }, other]),
    )
  })
}

/** Values of a live field to change to, other than `value`: those of the example, or what its type allows. */
function otherValues(key: string, name: string, property: Node, value: unknown): unknown[] {
  const { type, enumeration } = property
  const candidates: unknown[] = [...(exampleOf(key).live?.[name] ?? [])]
  if (property.default !== undefined) candidates.push(property.default)
  if (enumeration) candidates.push(...Object.keys(enumeration))
  else if (type === 'boolean') candidates.push(true, false)
  else if (typeof value === 'number') candidates.push(value / 2, value * 2, value + 1, value * 20)
  else if (Array.isArray(value))
    candidates.push(value.slice(0, -1), value.slice().reverse(), value.concat(value.slice(0, 1)))
  const config = checked(key)
  return candidates.filter((other) => {
    if (JSON.stringify(other) === JSON.stringify(value)) return false
    const next = { ...config, ...exampleOf(key).along?.[name], [name]: other }
    const pointsOf = (made: unknown) => portsOf(key, (components.get(key) as AnyComponent).config, made)
    if (JSON.stringify(pointsOf(next)) !== JSON.stringify(pointsOf(config))) return false
    return problemsOf(key, next).length === 0
  })
}

/** Steps of `traced`, and the one in the middle. */
const STEPS = 240
const MIDDLE = 80

/**
 * For each step all that came out and when, every number, and what was logged. Before the traffic of step `change.step` the
 * configuration becomes `change.next`. The last third of the steps is without traffic.
 */
function traced(
  key: string,
  config: Record<string, unknown>,
  change?: { next: Record<string, unknown>; step: number },
): string[] {
  const bench = drive(pipelineOf(key, config), { seed: 7 })
  const random = new Random(9)
  const steps: string[] = []
  for (let step = 0; step < STEPS; step++) {
    if (change?.step === step) bench.reconfigure({ it: { [key]: change.next } })
    for (const input of step < (2 * STEPS) / 3 ? bench.inputs : []) {
      bench.send(
        input,
        Array.from({ length: random.below(6) }, () => randomPacket(random)),
        { remote: '198.51.100.7:4000', client: 5 },
      )
    }
    try {
      bench.advance(random.below(20 * MS))
    } catch (error) {
      if (!exampleOf(key).ends) throw error
      return steps.concat((error as Error).message)
    }
    bench.check()
    const hash = createHash('sha256')
    for (const output of bench.outputs) {
      for (const { bytes, time, remote, client } of bench.take(output)) {
        hash.update(`${output} ${time} ${remote} ${client} ${bytes.length} `).update(bytes)
      }
    }
    const shown = Object.entries(bench.metrics()).filter(([path]) => path !== ENGINE_PATH)
    steps.push(hash.update(JSON.stringify([shown, bench.log.splice(0)])).digest('hex'))
  }
  bench.stop()
  return steps
}

/** Names of the metrics that say how many packets wait. */
function heldOf({ metrics }: AnyComponent): string[] {
  return Object.entries(metrics as MetricDeclarations).flatMap(([name, { role }]) => (role === 'held' ? [name] : []))
}

function renamed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(renamed)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [camelCase(key), renamed(item)]))
}

function randomPacket(random: Random): Uint8Array {
  const bytes = new Uint8Array(random.chance(0.1) ? random.below(40) : random.below(LARGEST - 600))
  random.fill(bytes, 0, bytes.length)
  return bytes
}

/** Traffic of every size at every open input, notifications among it, over 1.2 s; `each` sees the bench now and then. */
function traffic(bench: Bench, seed: number, each: () => void = () => {}): void {
  const random = new Random(seed)
  const { inputs } = bench
  for (let step = 0; step < 120; step++) {
    for (const input of inputs) {
      const count = random.chance(0.05) ? 300 : random.below(6)
      const packets = Array.from({ length: count }, () => randomPacket(random))
      bench.send(input, packets, random.chance(0.5) ? { remote: '198.51.100.7:4000', client: 5 } : {})
      if (random.chance(0.03)) bench.notify(input, random.chance(0.5) ? 'FLUSH' : 'RESET')
    }
    bench.advance(random.below(20 * MS))
    if (step % 10 === 0) each()
  }
}

/** All that came out, and when, and every number at the end. */
function fingerprint(key: string, seed: number, options: DriveOptions): string {
  const bench = drive(pipelineOf(key), options)
  traffic(bench, seed)
  const hash = createHash('sha256')
  for (const output of bench.outputs) {
    hash.update(`${output} ${bench.notifications(output)}`)
    for (const { bytes, time, remote, client } of bench.received(output)) {
      hash.update(`${time} ${remote} ${client} ${bytes.length} `).update(bytes)
    }
  }
  hash.update(JSON.stringify(bench.metrics()))
  bench.stop()
  return hash.digest('hex')
}

/** Genuine packets for a component: what its others make of random ones, or random ones. */
function genuine(key: string, random: Random): Uint8Array[] {
  const fresh = Array.from({ length: 200 }, () => randomPacket(random))
  const { others } = exampleOf(key)
  if (!others || (components.get(key) as AnyComponent).decoupled) return fresh
  const bench = drive(others)
  const wire: Uint8Array[] = []
  for (const packet of fresh) {
    for (const input of bench.inputs) bench.send(input, packet)
    bench.advance(MS)
    for (const output of bench.outputs) wire.push(...bench.take(output).map(({ bytes }) => bytes))
  }
  bench.stop()
  return wire
}

/** Datagrams as an attacker or a broken network makes them. */
function* junk(packets: readonly Uint8Array[], random: Random): Generator<Uint8Array[]> {
  for (const packet of packets) {
    const cut = packet.slice(0, random.below(packet.length + 1))
    const long = new Uint8Array(LARGEST)
    random.fill(long, 0, LARGEST)
    long.set(packet.subarray(0, LARGEST))
    const flipped = packet.slice()
    for (let i = 0; i <= random.below(4) && flipped.length > 0; i++) {
      flipped[random.below(random.chance(0.7) ? Math.min(48, flipped.length) : flipped.length)] ^= 1 << random.below(8)
    }
    const old = packets[random.below(packets.length)]
    yield [cut, packet, packet, long, flipped, old, randomPacket(random), new Uint8Array(0)]
  }
  for (let bytes = 0; bytes < 64; bytes++) {
    for (const value of [0, 1, 127, 255]) yield [new Uint8Array(bytes).fill(value), new Uint8Array(bytes).fill(value)]
  }
}

test('every available component is one of the known keys', () => {
  expect(COMPONENT_KEYS).toEqual(expect.arrayContaining([...components.keys()]))
})

test('every example belongs to an available component', () => {
  for (const key of Object.keys(examples)) expect([...components.keys()]).toContain(key)
})

test.each([
  ['RelayConfiguration', RelayConfiguration],
  ['LogConfig', LogConfig],
])('fields and types of %s are those of the proto message', (name, schema) => {
  const message = loadSchema().messages.get(`servicegrpc.pipeline.${name}`) as MessageSchema
  expect(differences(schema, message)).toEqual([])
})

describe.each([...components.values()].map((definition): [string, AnyComponent] => [definition.key, definition]))(
  '%s',
  (key, definition) => {
    const schema = definition.config as Node

    test('fields and types are those of the proto message', () => {
      const type = componentMessage.byName.get(key)?.type
      expect(type?.kind).toBe('message')
      if (type?.kind === 'message') expect(differences(schema, type.message)).toEqual([])
    })

    test('a field in milliseconds takes all that its type has', () => {
      for (const [pointer, { type, unit, proto, maximum }] of propertiesOf(schema)) {
        if (type !== 'integer' || unit !== 'ms') continue
        expect(maximum, `maximum of ${pointer}`).toBe(proto === 'u32' ? 4_294_967_295 : 2_147_483_647)
      }
    })

    test('0 is taken as unset wherever it has no meaning and the field may be left out', () => {
      for (const [pointer, { minimum = 0, default: preset, zeroUnset = false }, isOptional] of propertiesOf(schema)) {
        if (minimum <= 0 || (preset === undefined && !isOptional)) continue
        expect(zeroUnset, pointer).toBe(true)
        const [, field = '', ...rest] = pointer.split('/')
        if (rest.length > 0) continue
        expect(problemsOf(key, { ...exampleOf(key).config, [field]: 0 }), pointer).toEqual([])
      }
    })

    test('summary, fields and metrics say what they are', () => {
      expect(definition.summary).toMatch(/^[A-Z].*\.$/s)
      for (const [pointer, { description }] of propertiesOf(schema)) {
        expect(description, `description of ${pointer}`).toMatch(/\.$/)
      }
      for (const [name, { help, unit }] of Object.entries(definition.metrics as MetricDeclarations)) {
        expect(name).toMatch(/^[a-z][a-z0-9_]*$/)
        expect(help, `help of ${name}`).toMatch(/^\S.*\.$/)
        expect(typeof unit).toBe('string')
      }
    })

    test('what holds packets says how many it lost when the run ended', () => {
      const metrics = definition.metrics as MetricDeclarations
      const holds = Object.values(metrics).some(({ role }) => role === 'held')
      expect(metrics.held_at_end_packets?.role).toBe(holds ? 'drop' : undefined)
    })

    test('an unknown field is refused where it stands', () => {
      const problems = problemsOf(key, { ...exampleOf(key).config, no_such_field: 1 })
      expect(problems).toEqual([
        {
          pointer: `/engine_config/pipeline/it/${key}/no_such_field`,
          message: expect.stringContaining('unknown field "no_such_field"'),
        },
      ])
    })

    test('a value of the wrong type is refused where it stands', () => {
      for (const name of Object.keys(schema.properties ?? {})) {
        const property = (schema.properties as Record<string, Node>)[name]
        const wrong = property.type === 'object' || property.type === 'array' ? 'text' : { wrong: true }
        const problems = problemsOf(key, { ...exampleOf(key).config, [name]: wrong })
        expect(problems.map(({ pointer }) => pointer)).toContain(`/engine_config/pipeline/it/${key}/${name}`)
      }
    })

    test('defaults are valid and stay as they are when given back', () => {
      const full = checked(key)
      for (const [name, property] of Object.entries(schema.properties ?? {})) {
        if (property.default !== undefined) expect(full).toHaveProperty(name)
      }
      expect(checked(key, full)).toEqual(full)
      expect(checked(key, renamed(full) as Record<string, unknown>)).toEqual(full)
    })

    test('0 of a field that has no meaning as 0 is as if the field were not there', () => {
      const { config } = exampleOf(key)
      for (const [name, { zeroUnset, minimum }] of Object.entries(schema.properties ?? {})) {
        if (name === 'mtu') expect(zeroUnset || minimum === 0, 'an mtu of 0').toBe(true)
        if (!zeroUnset) continue
        const { [name]: _, ...without } = config
        expect(checked(key, { ...config, [name]: 0 })).toEqual(checked(key, without))
      }
    })

    test('packets are conserved at all times and after a stop in the middle of traffic, which frees every slot', () => {
      for (const seed of [1, 2]) {
        const bench = drive(pipelineOf(key), { record: false })
        traffic(bench, seed, () => bench.check())
        for (const input of bench.inputs) bench.send(input, randomPacket(new Random(seed)))
        const moved = Object.entries(bench.metrics().it).some(([name, value]) => name.endsWith('_packets') && value > 0)
        expect(moved).toBe(!exampleOf(key).packetless)
        expect(bench.stop().error).toBe(undefined)
      }
    })

    test('what is not of held packets says in the last sample what was so at the end', () => {
      const bench = drive(pipelineOf(key), { record: false })
      traffic(bench, 3)
      // The measured loss counts the blocks that are given up then.
      const gauges = Object.entries(definition.metrics as MetricDeclarations)
        .filter(([name, { type, role }]) => type === 'gauge' && role !== 'held' && name !== 'measured_loss')
        .map(([name]) => name)
      const said = () => gauges.map((name) => [name, bench.metrics().it[name]])
      const before = said()
      bench.stop()
      expect(said()).toEqual(before)
    })

    test('when nothing comes any more the run is complete as soon as all is out, unless a socket may bring more', () => {
      const { endless = false } = exampleOf(key)
      const bench = drive(pipelineOf(key), { record: false })
      traffic(bench, 5, () => expect(bench.over && bench.inputs.length > 0).toBe(false))
      bench.endFeeds()
      bench.advance(3600e9)
      expect(bench.over).toBe(!endless)
      bench.check()
      expect(bench.stop()).toEqual({ outcome: endless ? 'STOPPED' : 'COMPLETED' })
    })

    test('same seed, same output, same numbers', () => {
      expect(fingerprint(key, 1, { seed: 7 })).toBe(fingerprint(key, 1, { seed: 7 }))
    })

    test('without free slots packets are still conserved', () => {
      const bench = drive(pipelineOf(key), { record: false })
      const taken: number[] = []
      while (bench.packets.available > 24) taken.push(bench.packets.allocate())
      const random = new Random(3)
      for (let step = 0; step < 60; step++) {
        for (const input of bench.inputs) {
          const count = Math.min(bench.packets.available, 1 + random.below(12))
          bench.send(
            input,
            Array.from({ length: count }, () => randomPacket(random)),
          )
        }
        bench.advance(random.below(10 * MS))
        bench.check()
      }
      for (const packet of taken) bench.packets.release(packet)
      expect(bench.stop().error).toBe(undefined)
    })

    test('junk is survived: random, cut, flipped, replayed, oversized and empty datagrams', () => {
      const random = new Random(4)
      const wire = genuine(key, random)
      const alone = definition.decoupled ? pipelineOf(key) : { it: { [key]: exampleOf(key).config } }
      const bench = drive(alone, { record: false, mtu: LARGEST })
      for (const datagrams of junk(wire, random)) {
        for (const input of bench.inputs) bench.send(input, datagrams)
        bench.advance(random.below(5 * MS))
      }
      expect(bench.stop()).toEqual({ outcome: bench.over ? 'COMPLETED' : 'STOPPED' })
    })

    test('no live value within its bounds makes a number that is none', () => {
      const config = checked(key)
      // A source at its highest rate has enough to do in a moment.
      const pause = definition.family === 'sources' ? 0.02 * MS : 20 * MS
      for (const [first, second] of boundaryValues(schema, definition.live ?? [])) {
        const bench = drive(pipelineOf(key), { record: false })
        const send = () => {
          for (const input of bench.inputs)
            bench.send(input, [randomPacket(new Random(1)), new Uint8Array(1), new Uint8Array(1400)])
        }
        const change = (name: string, value: number) => {
          try {
            bench.reconfigure({ it: { [key]: { ...config, [name]: value } } })
          } catch (error) {
            if (!(error instanceof Refused)) throw error
          }
        }
        const [name, ...values] = [first.name, first.value, second, first.value, config[first.name] as number]
        for (const value of values) {
          send()
          change(name, value)
          send()
          bench.advance(pause)
          bench.check()
          const numbers = bench.metrics().it
          for (const [metric, number] of Object.entries(numbers)) {
            expect(Number.isFinite(number), `${metric} is ${number} with ${name} ${value}`).toBe(true)
          }
          const { timers, waiting } = bench.simulation.graph
          if (waiting > 0 && heldOf(definition).some((metric) => numbers[metric] > 0))
            expect(timers.next, `with ${name} ${value} what waits has no end`).toBeLessThan(1e18)
        }
        bench.stop()
      }
    })

    const live = definition.live ?? []
    test.each([...live])('live field %s exists, is no port, and a change of it has its effect', (name) => {
      const property = schema.properties?.[name] as Node
      expect(property, `field ${name}`).toBeDefined()
      expect(property.port).toBe(undefined)
      const full = checked(key)
      const others = otherValues(key, name, property, full[name])
      expect(others, `another value of ${name}: say one under "live" in test/contract-suite/examples.ts`).not.toEqual(
        [],
      )
      const as = traced(key, full)
      let told = 0
      for (const value of others) {
        const next = { ...full, ...exampleOf(key).along?.[name], [name]: value }
        const made = traced(key, next)
        const what = `${name} changed from ${JSON.stringify(full[name])} to ${JSON.stringify(value)}`
        // Before anything has come: as if it had been made so.
        expect(traced(key, full, { next, step: 0 }), what).toEqual(made)
        if (JSON.stringify(made) === JSON.stringify(as)) continue
        // In the middle: what was before is as it was, what comes then is not.
        const late = traced(key, full, { next, step: MIDDLE })
        expect(late.slice(0, MIDDLE), `${what} in the middle`).toEqual(as.slice(0, MIDDLE))
        if (JSON.stringify(late) !== JSON.stringify(as)) told++
      }
      if (exampleOf(key).unseen?.includes(name)) return
      expect(told, `values of ${name} whose effect the traffic of the example shows`).toBeGreaterThan(0)
    })

    if (definition.passes)
      test('what comes out is byte for byte what went in, in its order', () => {
        const bench = drive(pipelineOf(key))
        const sent = new Map<string, number>()
        let count = 0
        const random = new Random(6)
        for (let step = 0; step < 200; step++) {
          for (const input of bench.inputs) {
            const packets = Array.from({ length: 1 + random.below(8) }, () => {
              const packet = randomPacket(random)
              return packet.length < 8 ? payload(8, count) : packet
            })
            for (const packet of packets) {
              new DataView(packet.buffer).setUint32(0, count)
              sent.set(Buffer.from(packet).toString('latin1'), count++)
            }
            bench.send(input, packets)
          }
          bench.advance(random.below(5 * MS))
        }
        bench.advance(1e9)
        let came = 0
        for (const output of bench.outputs) {
          // Where several inputs join, each keeps its order; they are sent one after the other here.
          let last = -1
          for (const { bytes } of bench.received(output)) {
            const number = sent.get(Buffer.from(bytes).toString('latin1'))
            expect(number, `a packet of ${output} that never went in`).toBeDefined()
            expect(number).toBeGreaterThan(last)
            last = number as number
            came++
          }
        }
        expect(came).toBeGreaterThan(count / 4)
        bench.stop()
      })
  },
)
