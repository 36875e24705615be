import { expect, test } from 'vitest'
import { CarrierLoss } from './carrier-loss.ts'

/** Of `count` packets every `every`-th is lost. */
function send(loss: CarrierLoss, count: number, every: number, isQueued = false): void {
  for (let n = 1; n <= count; n++) {
    if (n % every === 0) loss.lost(isQueued)
    else loss.reported(isQueued)
  }
}

test('the share is that of the last packets, and as much more is sent', () => {
  const loss = new CarrierLoss()
  send(loss, 10_000, 20)
  expect(loss.share).toBeCloseTo(0.05, 2)
  expect(loss.surplus).toBeCloseTo(1 / 0.95, 2)
  send(loss, 10_000, Number.POSITIVE_INFINITY)
  expect(loss.share).toBeLessThan(1e-6)
  expect(loss.surplus).toBeCloseTo(1, 3)
})

test('what is lost where a queue stands is too much for the path, and nothing more is sent for it', () => {
  const loss = new CarrierLoss()
  send(loss, 10_000, 20, true)
  expect(loss.share).toBeCloseTo(0.05, 2)
  expect(loss.surplus).toBe(1)
})

test('nothing more is sent for more than a tenth', () => {
  const loss = new CarrierLoss()
  send(loss, 10_000, 3)
  expect(loss.surplus).toBeCloseTo(1 / 0.9, 9)
})

test('what a dead path lost since it was heard is forgotten', () => {
  const loss = new CarrierLoss()
  send(loss, 10_000, 20)
  loss.heard()
  const { share, surplus } = loss
  send(loss, 100, 1)
  expect(loss.share).toBeGreaterThan(0.3)
  loss.forgetUnheard()
  expect([loss.share, loss.surplus]).toEqual([share, surplus])
  loss.reset()
  expect([loss.share, loss.surplus]).toEqual([0, 1])
})
