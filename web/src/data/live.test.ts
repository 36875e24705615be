import { PenstockError } from '@penstock/client'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { type Feed, LiveStore, LiveStores, retryRefused } from './live.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

/** A source that is told from outside what comes. */
class Source {
  readonly feeds: Feed<number>[] = []
  readonly #ends: PromiseWithResolvers[] = []

  readonly read = (feed: Feed<number>): Promise<void> => {
    this.feeds.push(feed)
    return new Promise((resolve, reject) => this.#ends.push({ resolve, reject }))
  }

  get feed(): Feed<number> {
    return this.feeds.at(-1) as Feed<number>
  }

  end(): void {
    this.#ends.at(-1)?.resolve()
  }

  fail(error: unknown): void {
    this.#ends.at(-1)?.reject(error)
  }
}

interface PromiseWithResolvers {
  resolve(): void
  reject(error: unknown): void
}

const frame = () => vi.advanceTimersByTimeAsync(1)

test('many changes between two frames are told once, with the last', async () => {
  const source = new Source()
  const store = new LiveStore(0, source.read)
  const told = vi.fn()
  store.subscribe(told)
  await frame()
  told.mockClear()
  source.feed.opened()
  for (const value of [1, 2, 3]) source.feed.set(value)
  expect(store.snapshot().value).toBe(0)
  await frame()
  expect(told).toHaveBeenCalledTimes(1)
  expect(store.snapshot()).toEqual({ status: 'live', value: 3 })
})

test('a stream is opened once for all who watch, and closed some seconds after the last has gone', async () => {
  const source = new Source()
  const idle = vi.fn()
  const store = new LiveStore(0, source.read, idle)
  const leave = [store.subscribe(() => {}), store.subscribe(() => {})]
  expect(source.feeds.length).toBe(1)
  for (const each of leave) each()
  await vi.advanceTimersByTimeAsync(2_000)
  // Another view comes in time.
  const last = store.subscribe(() => {})
  await vi.advanceTimersByTimeAsync(10_000)
  expect([source.feeds.length, source.feed.signal.aborted]).toEqual([1, false])
  last()
  await vi.advanceTimersByTimeAsync(3_000)
  expect([source.feed.signal.aborted, idle.mock.calls.length, store.snapshot().value]).toEqual([true, 1, 0])
})

test('what comes after the end of a stream that was closed changes nothing', async () => {
  const source = new Source()
  const store = new LiveStore(0, source.read)
  store.subscribe(() => {})()
  await vi.advanceTimersByTimeAsync(3_000)
  const old = source.feed
  store.subscribe(() => {})
  source.feed.set(1)
  old.set(99)
  await frame()
  expect(store.snapshot().value).toBe(1)
})

test('a break keeps what is known and says why', async () => {
  const source = new Source()
  const store = new LiveStore(0, source.read)
  store.subscribe(() => {})
  source.feed.set(7)
  const error = new PenstockError('UNAVAILABLE', 'it broke off')
  source.feed.lost(error)
  await frame()
  expect(store.snapshot()).toEqual({ status: 'lost', value: 7, error })
  source.feed.opened()
  await frame()
  expect(store.snapshot()).toEqual({ status: 'live', value: 7 })
})

test('streams that were refused for want of a token are opened again, and keep what is known; others are not', async () => {
  const [refused, forbidden, left] = [new Source(), new Source(), new Source()]
  const stores = [refused, forbidden, left].map(({ read }) => new LiveStore(0, read))
  const leave = stores.map((store) => store.subscribe(() => {}))
  refused.feed.set(7)
  refused.fail(new PenstockError('UNAUTHENTICATED', 'revoked'))
  forbidden.fail(new PenstockError('PERMISSION_DENIED', 'no'))
  left.fail(new PenstockError('UNAUTHENTICATED', 'revoked'))
  leave[2]?.()
  await frame()
  retryRefused()
  expect([refused, forbidden, left].map(({ feeds }) => feeds.length)).toEqual([2, 1, 1])
  await frame()
  expect(stores[0]?.snapshot()).toEqual({ status: 'opening', value: 7 })
  // Whoever comes back to one that nobody watched has it opened.
  stores[2]?.subscribe(() => {})
  expect(left.feeds.length).toBe(2)
  await frame()
})

test('a source that did not reach the node is read again; one that was refused is not, until asked', async () => {
  const source = new Source()
  const store = new LiveStore(0, source.read)
  store.subscribe(() => {})
  source.fail(new PenstockError('UNAVAILABLE', 'away'))
  await vi.advanceTimersByTimeAsync(2_100)
  expect([source.feeds.length, store.snapshot().status]).toEqual([2, 'lost'])
  source.fail(new PenstockError('PERMISSION_DENIED', 'no'))
  await vi.advanceTimersByTimeAsync(60_000)
  expect([source.feeds.length, store.snapshot().status]).toEqual([2, 'failed'])
  store.retry()
  await frame()
  expect([source.feeds.length, store.snapshot().status]).toEqual([3, 'opening'])
  source.end()
  await frame()
  expect(store.snapshot().status).toBe('ended')
})

test('stores of a kind are one for each key, and forgotten when nobody watches', async () => {
  const stores = new LiveStores<number>((_, onIdle) => new LiveStore<number>(0, new Source().read, onIdle))
  const first = stores.get('a')
  expect([stores.get('a') === first, stores.get('b') === first]).toEqual([true, false])
  first.subscribe(() => {})()
  await vi.advanceTimersByTimeAsync(3_000)
  expect(stores.get('a') === first).toBe(false)
})
