import { expect, test } from 'vitest'
import { type Toast, withToast } from './toasts.tsx'

const shown = (toasts: readonly Toast[]): readonly Toast[] =>
  toasts.reduce<readonly Toast[]>((before, toast) => withToast(before, toast), [])
const good = (id: number): Toast => ({ id, text: 'done' })
const bad = (id: number): Toast => ({ id, text: 'not done', error: new Error('refused') })
const idsOf = (toasts: readonly Toast[]): readonly number[] => toasts.map(({ id }) => id)

test('a failure stays whatever good news comes after it', () => {
  expect(idsOf(shown([bad(1), good(2), good(3), good(4), good(5), good(6)]))).toEqual([1, 4, 5, 6])
  expect(idsOf(shown([bad(1), bad(2), bad(3), bad(4), good(5)]))).toEqual([1, 2, 3, 4])
})

test('of more failures than there is room for the newest are shown', () => {
  expect(idsOf(shown([bad(1), good(2), bad(3), bad(4), bad(5), bad(6)]))).toEqual([3, 4, 5, 6])
})
