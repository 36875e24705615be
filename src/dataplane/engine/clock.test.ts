/** The clock of a real run: from when on what arrives has been seen by no breath. */
import { expect, it } from 'vitest'
import { MonotonicClock } from './clock.ts'

it('what arrives while breaths only look at the time waits for the first that takes it', () => {
  const clock = new MonotonicClock()
  const taken = clock.tick()
  expect(clock.look()).toBeGreaterThan(taken)
  expect(clock.waitedFrom).toBe(taken)
  const looked = clock.look()
  clock.look()
  expect(clock.waitedFrom).toBe(looked)
  expect(clock.tick()).toBeGreaterThan(looked)
  expect(clock.waitedFrom).toBe(taken)
  const again = clock.now
  clock.tick()
  expect(clock.waitedFrom).toBe(again)
})

it('what was received has been taken', () => {
  const clock = new MonotonicClock()
  const arrival = clock.tick() + 1e9
  clock.arrived(arrival)
  expect(clock.now).toBe(arrival)
  clock.arrived(arrival - 1)
  expect(clock.now).toBe(arrival)
  clock.tick()
  expect(clock.waitedFrom).toBe(arrival)
})
