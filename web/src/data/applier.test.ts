import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { Applier, type Values } from './applier.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** An applier whose calls are answered by hand. */
function applier() {
  const calls: { readonly values: object; answer: (error?: unknown) => void }[] = []
  const waiting: object[] = []
  const failures: unknown[] = []
  const made = new Applier(
    (values) =>
      new Promise((resolve, reject) => {
        const answer = (error?: unknown): void => (error === undefined ? resolve() : reject(error))
        calls.push({ values: Object.fromEntries(values), answer })
      }),
    (values) => waiting.push(Object.fromEntries(values)),
    (error) => failures.push(error),
  )
  const set = (values: object): void => made.set(new Map(Object.entries(values)) as Values)
  return { made, set, calls, waiting, failures }
}

const later = () => vi.advanceTimersByTimeAsync(1_000)

test('what is set in a row goes in one call, the last value of each', async () => {
  const { set, calls, waiting } = applier()
  set({ loss: 1 })
  set({ loss: 2, delay: 5 })
  set({ loss: 3 })
  expect(calls).toEqual([])
  await later()
  expect(calls.map(({ values }) => values)).toEqual([{ loss: 3, delay: 5 }])
  expect(waiting.at(-1)).toEqual({ loss: 3, delay: 5 })
  calls[0]?.answer()
  await later()
  expect(waiting.at(-1)).toEqual({})
})

test('one call is under way at a time; what comes meanwhile follows, the last wins', async () => {
  const { set, calls, waiting } = applier()
  set({ loss: 1 })
  await later()
  for (const loss of [2, 3, 4]) {
    set({ loss })
    await later()
  }
  expect(calls).toHaveLength(1)
  expect(waiting.at(-1)).toEqual({ loss: 4 })
  calls[0]?.answer()
  await later()
  expect(calls.map(({ values }) => values)).toEqual([{ loss: 1 }, { loss: 4 }])
})

test('a call that fails is told, and what was set is forgotten', async () => {
  const { set, calls, waiting, failures } = applier()
  set({ loss: 1 })
  await later()
  set({ loss: 2 })
  await later()
  calls[0]?.answer('refused')
  await later()
  expect([failures, waiting.at(-1), calls.length]).toEqual([['refused'], {}, 1])
  set({ loss: 3 })
  await later()
  expect(calls[1]?.values).toEqual({ loss: 3 })
})

test('what is set once more comes after what was set meanwhile: one place may be within another', async () => {
  const { set, calls } = applier()
  set({ '/list/0': 1 })
  set({ '/list': [2] })
  set({ '/list/0': 3 })
  await later()
  expect(Object.entries(calls[0]?.values ?? {})).toEqual([
    ['/list', [2]],
    ['/list/0', 3],
  ])
})

test('closing applies at once what waits; after it only a failure is told', async () => {
  const { made, set, calls, waiting, failures } = applier()
  set({ loss: 1 })
  made.close()
  await vi.advanceTimersByTimeAsync(0)
  expect(calls.map(({ values }) => values)).toEqual([{ loss: 1 }])
  const told = waiting.length
  calls[0]?.answer('gone')
  await later()
  expect([waiting.length, failures]).toEqual([told, ['gone']])
})
