/** Long messages take turns where a link holds much, and none waits for one that does not go on. */
import { expect, test } from 'vitest'
import { SimulatedClock } from 'xstate'
import { settle } from '../../test/harness/waiting.ts'
import { MessageTurns, MUCH_HELD_BYTES } from './message-turns.ts'

function setup() {
  const clock = new SimulatedClock()
  const log: string[] = []
  const link = { held: MUCH_HELD_BYTES + 1 }
  const turns = new MessageTurns(clock, () => link.held)
  const named = (name: string) => ({ proceed: () => void log.push(name) })
  return { clock, log, link, turns, a: named('a'), b: named('b'), c: named('c') }
}

test('where little is held none waits; else one goes on, and the others after it in their order', async () => {
  const { link, log, turns, a, b, c } = setup()
  link.held = MUCH_HELD_BYTES
  expect([a, b, c].map((each) => turns.take(each))).toEqual([true, true, true])
  link.held++
  expect([a, b, c, a].map((each) => turns.take(each))).toEqual([true, false, false, true])
  turns.release(a)
  expect(log).toEqual([])
  await settle(1)
  expect(log).toEqual(['b'])
  turns.release(c)
  turns.release(b)
  await settle(1)
  expect(log).toEqual(['b'])
})

test('who waits goes on as soon as little is held', async () => {
  const { link, log, turns, a, b, c } = setup()
  for (const each of [a, b, c]) turns.take(each)
  turns.eased()
  await settle(1)
  expect(log).toEqual([])
  link.held = 0
  turns.eased()
  await settle(1)
  turns.eased()
  await settle(1)
  expect(log).toEqual(['b', 'c'])
})

test('a message of which nothing comes gives up its turn, one that goes on does not', () => {
  const { clock, log, turns, a, b, c } = setup()
  for (const each of [a, b, c]) turns.take(each)
  for (let second = 0; second < 3; second++) {
    turns.take(a)
    clock.increment(1_000)
  }
  expect(log).toEqual([])
  clock.increment(1_000)
  expect(log).toEqual(['b'])
  expect(turns.take(a)).toBe(false)
  clock.increment(2_000)
  expect(log).toEqual(['b', 'c'])
})
