/** Whatever throws in a run, and wherever it was entered from, the error names the component that threw. */
import { Type } from '@sinclair/typebox'
import { expect, test } from 'vitest'
import { components } from '../components/registry.ts'
import { checkPipelineConfig } from './check.ts'
import { type AnyComponent, defineComponent } from './component.ts'
import { ComponentError } from './component-error.ts'
import type { Receiver } from './flow.ts'
import type { LogLine } from './run.ts'
import { Input, Output } from './schema.ts'
import { Simulation, simulateTogether } from './simulate.ts'

/** Throws, or writes a FATAL line, at the place named; else passes on what comes, or a packet a breath where nothing comes. */
const faulty = defineComponent({
  key: 'test_faulty',
  family: 'routing',
  summary: 'Throws where it is told, or writes a FATAL line.',
  config: Type.Object({
    input: Type.Optional(Input()),
    output: Type.Optional(Output()),
    at: Type.String({ default: '' }),
  }),
  metrics: {},
  live: ['at'],
  create(config, context) {
    const { outlets, packets, clock } = context
    let { at } = config
    const fail = (place: string) => {
      if (at === `fatal ${place}`) context.log('FATAL', `told to end the run at ${place}`, { place })
      if (at === place) throw new RangeError(`told to throw at ${place}`)
    }
    fail('create')
    context.timer(() => fail('timer')).at(clock.now + 1e6)
    let sent = 0
    if (!config.input) {
      context.source(() => {
        fail('source')
        if (clock.now < 2e6 || sent++ > 0) return false
        const batch = context.batch()
        batch.push(packets.allocate())
        outlets.output?.send(batch)
        outlets.output?.notify('FLUSH')
        return false
      })
      context.timer(() => {}).at(2e6)
    }
    const input: Receiver = (batch) => {
      fail('input')
      if (outlets.output) outlets.output.send(batch)
      else packets.releaseAll(batch)
    }
    return {
      input,
      flush: () => fail('flush'),
      observe: () => fail('observe'),
      notify(notification) {
        fail('notify')
        outlets.output?.notify(notification)
      },
      reconfigure(next) {
        at = next.at
        fail('reconfigure')
      },
      stop: () => fail('stop'),
    }
  },
})
const registry = new Map<string, AnyComponent>([...components, [faulty.key, faulty]])

function configOf(at: Record<string, string>) {
  const pipeline = {
    first: { test_faulty: { output: 'a', at: at.first ?? '' } },
    second: { test_faulty: { input: 'a', output: 'b', at: at.second ?? '' } },
    third: { test_faulty: { input: 'b', at: at.third ?? '' } },
  }
  const { config } = checkPipelineConfig(JSON.stringify({ engine_config: { pipeline } }), registry)
  return config ?? expect.fail('the configuration is good')
}

function thrown(run: () => unknown): ComponentError {
  try {
    run()
  } catch (error) {
    expect(error).toBeInstanceOf(ComponentError)
    return error as ComponentError
  }
  throw new Error('nothing was thrown')
}

const cases = (['create', 'timer', 'source', 'input', 'flush', 'notify', 'observe'] as const).flatMap((place) =>
  ['first', 'second', 'third']
    .filter((name) =>
      place === 'source' ? name === 'first' : name !== 'first' || !['input', 'notify'].includes(place),
    )
    .map((name) => [place, name] as const),
)

test.each(cases)('at %s of the %s component', (place, name) => {
  const log: LogLine[] = []
  const error = thrown(() => {
    const simulation = new Simulation(configOf({ [name]: place }), { registry, onLog: (line) => log.push(line) })
    simulation.advanceTo(5e6)
    simulation.metrics()
  })
  expect(error.component).toBe(name)
  expect(error.message).toBe(`component "${name}" (test_faulty): told to throw at ${place}`)
  expect(error.cause).toBeInstanceOf(RangeError)
})

test('in a simulation of several: it has the metrics of then, unless they cannot be had, and the others go on', () => {
  const runs = [{ second: 'input' }, { second: 'stop' }, { third: 'observe' }, {}]
  const onSample: number[][] = runs.map(() => [])
  const simulated = simulateTogether(
    runs.map((at, i) => ({ config: configOf(at), onSample: (_, now) => onSample[i].push(now) })),
    { registry, duration: 5e6 },
  )
  expect(simulated.map(({ end, elapsed }) => [end.outcome, elapsed])).toEqual([
    ['FAILED', 2e6],
    ['FAILED', 5e6],
    ['FAILED', 0],
    ['STOPPED', 5e6],
  ])
  expect(simulated[0].end.error).toBe('component "second" (test_faulty): told to throw at input')
  expect(simulated[2].end.error).toBe('component "third" (test_faulty): told to throw at observe')
  expect(simulated.map(({ metrics }) => metrics.first?.output_packets)).toEqual([1, 1, undefined, 1])
  expect(onSample.map((times) => times.at(-1))).toEqual([2e6, 5e6, undefined, 5e6])
})

test('at a live change, which the others take over all the same or not at all', () => {
  const simulation = new Simulation(configOf({}), { registry })
  const error = thrown(() => simulation.graph.reconfigure(configOf({ second: 'reconfigure' })))
  expect(error.message).toBe('component "second" (test_faulty): told to throw at reconfigure')
  simulation.stop()
})

test('at stop: the others are stopped too, each error is in the log under its component', () => {
  const log: LogLine[] = []
  const simulation = new Simulation(configOf({ first: 'stop', third: 'stop' }), {
    registry,
    onLog: (line) => log.push(line),
  })
  const error = 'stopping failed: component "first" (test_faulty): told to throw at stop'
  expect(simulation.stop()).toEqual({ outcome: 'FAILED', error })
  expect(log.map(({ level, component, message }) => [level, component, message.split('\n')[0]])).toEqual([
    ['ERROR', 'first', 'stopping failed: RangeError: told to throw at stop'],
    ['ERROR', 'third', 'stopping failed: RangeError: told to throw at stop'],
  ])
})

test.each(['create', 'timer', 'source', 'input', 'flush', 'notify', 'stop'])(
  'a FATAL line at %s ends the run, FAILED',
  (place) => {
    const log: LogLine[] = []
    const name = place === 'source' ? 'first' : 'second'
    const simulation = new Simulation(configOf({ [name]: `fatal ${place}` }), {
      registry,
      onLog: (line) => log.push(line),
    })
    simulation.advanceTo(5e6)
    const error = `component "${name}" (test_faulty): told to end the run at ${place}`
    expect(simulation.over).toBe(place !== 'stop')
    expect(simulation.stop()).toEqual({ outcome: 'FAILED', error })
    expect(log[0]).toMatchObject({ level: 'FATAL', component: name, fields: { place } })
    expect(simulation.clock.now).toBeLessThanOrEqual(place === 'stop' ? 5e6 : 2e6)
  },
)
