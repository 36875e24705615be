import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { onFrame, onQuarterSecond } from './frame.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

test('what is asked for within a quarter of a second is done once, together', async () => {
  const done: [string, number][] = []
  const start = Date.now()
  const works = ['a', 'b'].map((name) => () => done.push([name, Date.now() - start]))
  for (let i = 0; i < 10; i++) {
    for (const work of works) onQuarterSecond(work)
    await vi.advanceTimersByTimeAsync(20)
  }
  expect(done).toEqual([])
  await vi.advanceTimersByTimeAsync(1000)
  expect(done.map(([name]) => name)).toEqual(['a', 'b'])
  expect(done[0]?.[1]).toBe(done[1]?.[1])
  expect(vi.getTimerCount()).toBe(0)
})

test('what is asked for while work is done is done the next time', async () => {
  let times = 0
  const work = (): void => {
    times++
    if (times < 3) onFrame(work)
  }
  onFrame(work)
  onFrame(work)
  await vi.runAllTimersAsync()
  expect(times).toBe(3)
})
