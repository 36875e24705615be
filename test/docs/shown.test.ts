/** What counts as the output that a page shows. */
import { expect, it } from 'vitest'
import { differenceOf } from './shown.ts'

it('is the same lines, no more and no fewer', () => {
  expect(differenceOf('a\nb\n', 'a\nb\n', false)).toBeUndefined()
  expect(differenceOf('a\nb\n', 'a\n', false)).toEqual({ shown: 'b', told: '' })
  expect(differenceOf('a\n', 'a\nb\n', false)).toEqual({ shown: '', told: 'b' })
})

it('may leave lines out where it says so', () => {
  expect(differenceOf('a\n…\nd\n', 'a\nb\nc\nd\n', false)).toBeUndefined()
  expect(differenceOf('…\nc\n…\n', 'a\nb\nc\nd\n', false)).toBeUndefined()
  expect(differenceOf('…\nb\nd\n', 'a\nb\nc\nd\n', false)).toEqual({ shown: 'd', told: 'c' })
  expect(differenceOf('…\ne\n', 'a\n', false)).toEqual({ shown: 'e', told: 'a' })
})

it('has ids and times of its own', () => {
  const run = '07:53:39.917Z started run 1fb20c76-8e11-4551-9154-d354d209dc88'
  expect(differenceOf(`${run}\n`, `${run.replace('07:', '08:').replace('1fb2', '0000')}\n`, false)).toBeUndefined()
  expect(differenceOf('loss 0.1\n', 'loss 0.2\n', false)).toBeDefined()
})

it('has numbers near those that were measured', () => {
  expect(differenceOf('200 of 200, 81 ms\n', '198 of 200, 90 ms\n', true)).toBeUndefined()
  expect(differenceOf('200 of 200\n', '120 of 200\n', true)).toBeDefined()
  expect(differenceOf('1,000 packets\n', '1,100 packets\n', true)).toBeUndefined()
  expect(differenceOf('200 packets\n', '200 bytes\n', true)).toBeDefined()
})
