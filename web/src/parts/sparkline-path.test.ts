import { expect, test } from 'vitest'
import { curveOf, HEIGHT, WIDTH } from './sparkline-path.ts'

test('the newest value is at the right edge, the largest at the top, nought at the ground', () => {
  expect(curveOf([0, 2, 1], 3, 1)).toEqual({
    line: 'M0 26.5L44 1.5L88 14',
    area: 'M0 26.5L44 1.5L88 14V28H0Z',
  })
})

test('few values begin where they are in time', () => {
  expect(curveOf([1, 1], 45, 1).line).toBe(`M${WIDTH - 2} 1.5L${WIDTH} 1.5`)
})

test('small values stay low below what the height stands for', () => {
  expect(curveOf([1, 1], 2, 100).line).toBe('M0 26.25L88 26.25')
  expect(curveOf([0, 0], 2, 0.01).line).toBe('M0 26.5L88 26.5')
})

test('nothing is drawn of nothing', () => {
  expect(curveOf([], 30, 1)).toEqual({ line: '', area: '' })
  expect(curveOf([5], 30, 1).area).toBe(`M88 1.5V${HEIGHT}H88Z`)
})
