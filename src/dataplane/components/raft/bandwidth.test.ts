import { expect, test } from 'vitest'
import { Bandwidth } from './bandwidth.ts'

const MS = 1e6
const RTT = 40 * MS
const SPAN = 250 * MS
/** 10 Mbit/s, bytes per ns. */
const RATE = 10 / 8000

/** A round of the start in which `rate` was delivered. */
function round(bandwidth: Bandwidth, rate: number, n: number, idle = false): void {
  bandwidth.sample(rate, idle, n * 1000, (n + 1) * 1000)
}

/** One that has found RATE, has drained what it queued, and goes on from there at 0. */
function steady(): Bandwidth {
  const bandwidth = new Bandwidth()
  for (let n = 0; n < 5; n++) round(bandwidth, RATE, n)
  bandwidth.turn(0, RTT, RTT, SPAN, 0)
  return bandwidth
}

test('the start is over when the rate has not grown by a quarter in three rounds', () => {
  const bandwidth = new Bandwidth()
  for (let n = 0; n < 6; n++) round(bandwidth, RATE * 1.5 ** n, n)
  expect(bandwidth.isStarting).toBe(true)
  for (let n = 6; n < 9; n++) round(bandwidth, RATE * 1.5 ** 5, n)
  expect(bandwidth.isStarting).toBe(true)
  round(bandwidth, RATE, 9)
  expect(bandwidth.isStarting).toBe(false)
  expect(bandwidth.rate).toBe(RATE * 1.5 ** 5)
})

test('rounds in which there was too little to send do not end the start, and lower nothing', () => {
  const bandwidth = new Bandwidth()
  round(bandwidth, RATE, 0)
  for (let n = 1; n < 20; n++) round(bandwidth, RATE / 10, n, true)
  expect([bandwidth.isStarting, bandwidth.rate]).toEqual([true, RATE])
})

test('what queued at the start is drained before the rate is sent at', () => {
  const bandwidth = new Bandwidth()
  for (let n = 0; n < 5; n++) round(bandwidth, RATE, n)
  bandwidth.turn(RATE * RTT * 2, RTT, RTT, SPAN, MS)
  expect(bandwidth.pace).toBeLessThan(RATE / 2)
  bandwidth.turn(RATE * RTT, RTT, RTT, SPAN, 2 * MS)
  expect(bandwidth.pace / RATE).toBeCloseTo(0.99, 9)
})

test('it looks for more now and then, goes on while it finds some, and drains what it queued', () => {
  const bandwidth = steady()
  bandwidth.turn(0, RTT, RTT, SPAN, 3 * SPAN)
  expect(bandwidth.pace / RATE).toBeCloseTo(0.99, 9)
  bandwidth.turn(0, RTT, RTT, SPAN, 3 * SPAN + MS)
  expect(bandwidth.pace / RATE).toBeCloseTo(1.1, 9)
  round(bandwidth, RATE * 1.1, 10)
  const further = 4 * SPAN + RTT + 2 * MS
  bandwidth.turn(0, RTT, RTT, SPAN, further)
  expect(bandwidth.pace / RATE).toBeCloseTo(1.21, 9)
  // Now a queue grows.
  bandwidth.turn(0, RTT + 26 * MS, RTT, SPAN, further + MS)
  expect(bandwidth.pace / RATE).toBeCloseTo(1.1 * 0.85, 9)
  bandwidth.turn(0, RTT, RTT, SPAN, further + 50 * MS)
  expect(bandwidth.pace / RATE).toBeCloseTo(1.1 * 0.99, 9)
})

test('a queue that grows says what the path carries, more or less than was believed', () => {
  const bandwidth = steady()
  for (let n = 0; n < 30; n++) bandwidth.full(RATE / 2)
  expect(bandwidth.rate / RATE).toBeCloseTo(0.5, 3)
  round(bandwidth, RATE * 0.8, 20, true)
  expect(bandwidth.rate / RATE).toBeCloseTo(0.8, 9)
})
