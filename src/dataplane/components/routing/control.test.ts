/** gate, bomb and notification_injector: what they let through, when they go off, when they speak. */
import { describe, expect, test } from 'vitest'
import { drive, type Pipeline, payload } from '../../../../test/harness/component.ts'

const MS = 1e6
const flows = [
  { input: 'in', output: 'out' },
  { input: 'in2', output: 'out2' },
]

describe('gate', () => {
  const gate = (closed: boolean): Pipeline => ({ gate: { gate: { flows, closed } } })

  test('closed it drops every packet of every flow, open none; notifications pass it', () => {
    const bench = drive(gate(true))
    bench.send('in', [payload(64), payload(64)])
    bench.send('in2', payload(64))
    bench.notify('in', 'RESET')
    expect([bench.received('out'), bench.received('out2')]).toEqual([[], []])
    expect(bench.notifications('out')).toEqual(['RESET'])
    expect(bench.notifications('out2')).toEqual([])
    bench.reconfigure(gate(false))
    bench.send('in', payload(64))
    bench.send('in2', payload(64))
    bench.reconfigure(gate(true))
    bench.send('in', payload(64))
    expect([bench.received('out').length, bench.received('out2').length]).toEqual([1, 1])
    expect(bench.metrics().gate.gated_packets).toBe(4)
    bench.stop()
  })
})

describe('bomb', () => {
  const bomb = (poison: string, delay = 50): Pipeline => ({ bomb: { bomb: { delay, poison } } })

  test.each([
    ['VERIFY_FAIL', 'verification failed, as poison VERIFY_FAIL asks for'],
    ['ASSERT_FAIL', 'assertion failed, as poison ASSERT_FAIL asks for'],
    ['THROW_EXCEPTION', 'thrown, as poison THROW_EXCEPTION asks for'],
  ])('%s throws when its time has come, not before', (poison, message) => {
    const bench = drive(bomb(poison))
    bench.advance(50 * MS - 1)
    expect(() => bench.advance(1)).toThrow(`component "bomb" (bomb): ${message}`)
    expect(bench.metrics().bomb.exploded).toBe(1)
    bench.stop()
  })

  test('LOG_FATAL ends the run with its line', () => {
    const bench = drive(bomb('LOG_FATAL'))
    bench.advance(50 * MS - 1)
    expect(bench.over).toBe(false)
    bench.advance(1)
    const message = 'ends the run, as poison LOG_FATAL asks for'
    expect(bench.log).toMatchObject([{ level: 'FATAL', component: 'bomb', message, timestamp: 50 }])
    expect(bench.stop()).toEqual({ outcome: 'FAILED', error: `component "bomb" (bomb): ${message}` })
  })

  test('NONE says so and goes on; until then the run is not complete', () => {
    const bench = drive(bomb('NONE'))
    bench.advance(50 * MS - 1)
    expect([bench.over, bench.log.length]).toEqual([false, 0])
    bench.advance(1)
    expect(bench.log).toMatchObject([{ level: 'INFO', component: 'bomb' }])
    bench.advance(0)
    expect(bench.stop()).toEqual({ outcome: 'COMPLETED' })
  })

  test('a delay of 0 goes off in the first breath', () => {
    const bench = drive(bomb('LOG_FATAL', 0))
    bench.advance(0)
    expect(bench.over).toBe(true)
    bench.stop()
  })

  test('delay and poison can be changed until it has gone off, and a new delay that is not over arms it again', () => {
    const bench = drive({ ...bomb('NONE'), pass: { gate: { flows, closed: false } } })
    bench.advance(10 * MS)
    bench.reconfigure(bomb('NONE', 30))
    bench.advance(20 * MS)
    expect(bench.log).toHaveLength(1)
    bench.reconfigure(bomb('LOG_FATAL', 20))
    bench.advance(100 * MS)
    expect([bench.over, bench.metrics().bomb.exploded]).toEqual([false, 1])
    bench.reconfigure(bomb('LOG_FATAL', 200))
    expect(bench.metrics().bomb.exploded).toBe(0)
    bench.advance(70 * MS - 1)
    expect(bench.over).toBe(false)
    bench.advance(1)
    expect(bench.over).toBe(true)
    bench.stop()
  })

  test('a new delay that is over already makes it go off at once', () => {
    const bench = drive(bomb('LOG_FATAL', 1000))
    bench.advance(100 * MS)
    bench.reconfigure(bomb('LOG_FATAL', 10))
    expect(bench.over).toBe(true)
    bench.stop()
  })
})

describe('notification_injector', () => {
  const inject = (notification?: object): Pipeline => ({
    inject: { notification_injector: { flows, ...(notification && { notification }) } },
  })

  test('without an interval: once into every flow, in the first breath', () => {
    const bench = drive(inject({ type: 'RESET' }))
    expect(bench.notifications('out')).toEqual([])
    bench.advance(0)
    bench.advance(1e12)
    expect([bench.notifications('out'), bench.notifications('out2')]).toEqual([['RESET'], ['RESET']])
    expect(bench.metrics().inject.injected_notifications).toBe(2)
    bench.send('in', payload(64, 1))
    expect(bench.received('out')).toHaveLength(1)
    bench.notify('in2', 'FLUSH')
    expect(bench.notifications('out2')).toEqual(['RESET', 'FLUSH'])
    bench.stop()
  })

  test.each([0, 1])('an interval of %i', (interval_ms) => {
    const bench = drive(inject({ type: 'FLUSH', interval_ms }))
    bench.advance(0)
    expect(bench.notifications('out')).toHaveLength(interval_ms === 0 ? 1 : 0)
    bench.advance(1000 * MS)
    expect(bench.notifications('out')).toHaveLength(interval_ms === 0 ? 1 : 1000)
    bench.stop()
  })

  test('with an interval: at each of its ends', () => {
    const bench = drive(inject({ type: 'FLUSH', interval_ms: 100 }))
    bench.advance(100 * MS - 1)
    expect(bench.notifications('out')).toEqual([])
    bench.advance(1)
    expect(bench.notifications('out')).toEqual(['FLUSH'])
    bench.advance(900 * MS)
    expect(bench.notifications('out2')).toHaveLength(10)
    bench.stop()
  })

  test('intervals missed while the run stood still are not made up for', () => {
    const bench = drive(inject({ type: 'FLUSH', interval_ms: 10 }))
    bench.advance(10 * MS)
    // Time goes on without a breath, as for a thread that gets no CPU.
    bench.simulation.clock.advanceTo(bench.now + 95 * MS)
    bench.advance(0)
    bench.advance(0)
    expect(bench.notifications('out')).toHaveLength(2)
    bench.advance(10 * MS)
    expect(bench.notifications('out')).toHaveLength(3)
    bench.stop()
  })

  test('a breath that is late makes no interval longer', () => {
    const bench = drive(inject({ type: 'FLUSH', interval_ms: 10 }))
    bench.advance(10 * MS)
    bench.simulation.clock.advanceTo(bench.now + 13 * MS)
    bench.advance(0)
    expect(bench.notifications('out')).toHaveLength(2)
    bench.advance(7 * MS)
    expect(bench.notifications('out')).toHaveLength(3)
    bench.stop()
  })

  test('unset: packets only; a live change injects at once, and unsetting it ends it', () => {
    const bench = drive(inject())
    bench.advance(500 * MS)
    expect(bench.notifications('out')).toEqual([])
    bench.reconfigure(inject({ type: 'RESET' }))
    expect(bench.notifications('out')).toEqual(['RESET'])
    bench.reconfigure(inject({ type: 'FLUSH', interval_ms: 10 }))
    expect(bench.notifications('out')).toEqual(['RESET', 'FLUSH'])
    bench.advance(30 * MS)
    expect(bench.notifications('out')).toHaveLength(5)
    bench.reconfigure(inject())
    bench.advance(1e12)
    expect(bench.notifications('out')).toHaveLength(5)
    bench.stop()
  })

  test('the same, written in another order beside a change of something else, injects nothing', () => {
    const notification = { type: 'RESET', interval_ms: 1000 }
    const bench = drive({
      inject: { notification_injector: { flows, notification } },
      gate: { gate: { flows: [{ input: 'out', output: 'end' }], closed: false } },
    })
    bench.advance(500 * MS)
    bench.reconfigure({
      inject: { notification_injector: { notification: { interval_ms: 1000, type: 'RESET' }, flows } },
      gate: { gate: { flows: [{ input: 'out', output: 'end' }], closed: true } },
    })
    expect(bench.notifications('out2')).toEqual([])
    bench.advance(500 * MS)
    expect(bench.notifications('out2')).toEqual(['RESET'])
    bench.stop()
  })

  test('what is pending in an encoder leaves', () => {
    const bench = drive({
      ...inject({ type: 'FLUSH', interval_ms: 20 }),
      encode: { reed_solomon_encoder: { input: 'out', output: 'wire', symbols: 4, repair: 2 } },
    })
    bench.send('in', payload(64))
    expect(bench.received('wire')).toHaveLength(1)
    bench.advance(20 * MS)
    expect(bench.received('wire')).toHaveLength(3)
    bench.stop()
  })
})
