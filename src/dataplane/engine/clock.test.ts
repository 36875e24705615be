/** The clock of a real run: from when on what has arrived has been in no breath yet. */
import { expect, it } from 'vitest'
import { MonotonicClock } from './clock.ts'

it('what no breath has had waits from the last arrival that one has had, however often the time is taken', () => {
  const clock = new MonotonicClock()
  clock.tick()
  expect(clock.tick()).toBeGreaterThan(0)
  expect(clock.waitedFrom).toBe(0)
  const arrival = clock.now / 2
  clock.arrived(arrival)
  clock.arrived(arrival - 1)
  expect(clock.waitedFrom).toBe(0)
  clock.tick()
  clock.tick()
  expect(clock.waitedFrom).toBe(arrival)
})

it('what has arrived after the time was taken moves it', () => {
  const clock = new MonotonicClock()
  const arrival = clock.tick() + 1e9
  clock.arrived(arrival)
  expect(clock.now).toBe(arrival)
  clock.arrived(arrival - 1)
  expect(clock.now).toBe(arrival)
})

it('what a breath has made it has had', () => {
  const clock = new MonotonicClock()
  const made = clock.tick()
  expect(clock.stamp()).toBe(made)
  clock.tick()
  expect(clock.waitedFrom).toBe(made)
})
