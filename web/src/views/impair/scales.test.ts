import { describe, expect, test } from 'vitest'
import { STEPS, scaleOf } from './scales.ts'

const share = { type: 'number', minimum: 0, maximum: 1, 'x-unit': 'probability' }
const time = { type: 'integer', minimum: 0, maximum: 4_294_967_295, 'x-unit': 'ms' }
const rate = { type: 'number', minimum: 0.001, maximum: 1_000_000, 'x-unit': 'Mbit/s' }

describe.each([
  ['shares', share, 0, 1],
  ['times', time, 0, 1_000],
  ['rates', rate, 0.1, 1_000],
])('%s', (_, schema, least, most) => {
  const { value, step } = scaleOf(schema, undefined)

  test('reach from end to end', () => {
    expect([value(0), value(STEPS), step(least), step(most)]).toEqual([least, most, 0, STEPS])
  })

  test('never fall to the right', () => {
    for (let at = 1; at <= STEPS; at++) expect(value(at)).toBeGreaterThanOrEqual(value(at - 1))
  })

  test('have a place for what is beyond, at the end', () => {
    expect([step(-1), step(most * 10)]).toEqual([0, STEPS])
  })

  test('lead back to about where they were', () => {
    for (const at of [250, 500, 750]) expect(Math.abs(step(value(at)) - at)).toBeLessThan(20)
  })
})

test('what it is set to is on the slider', () => {
  expect(scaleOf(time, 5_000).value(STEPS)).toBe(5_000)
  expect(scaleOf(time, 5_000).step(5_000)).toBe(STEPS)
})

test('whole numbers stay whole', () => {
  const { value } = scaleOf({ anyOf: [{ type: 'integer' }], 'x-unit': 'packets' }, undefined)
  for (const at of [1, 333, 777]) expect(Number.isInteger(value(at))).toBe(true)
})
