import { expect, test } from 'vitest'
import { after, historyOf, MAX_STEPS, redone, undone } from './model-history.ts'

test('steps are undone and redone in order; a new one forgets those undone', () => {
  const three = after(after(historyOf(1), 2), 3)
  expect([undone(three).now, undone(undone(three)).now, undone(undone(undone(three))).now]).toEqual([2, 1, 1])
  expect(redone(undone(three)).now).toBe(3)
  expect(redone(three)).toBe(three)
  expect(redone(after(undone(three), 4)).now).toBe(4)
})

test('typing in one field is one step, until another field or an undo comes between', () => {
  const typed = after(after(after(historyOf('a'), 'b', 'name'), 'c', 'name'), 'd', 'other')
  expect(undone(typed).now).toBe('c')
  expect(undone(undone(typed)).now).toBe('a')
  expect(undone(after(undone(typed), 'e', 'name')).now).toBe('c')
})

test('what changes nothing is no step', () => {
  const history = historyOf(1)
  expect(after(history, 1)).toBe(history)
})

test('the oldest steps are forgotten', () => {
  let history = historyOf(0)
  for (let i = 1; i <= MAX_STEPS + 5; i++) history = after(history, i)
  for (let i = 0; i < MAX_STEPS + 5; i++) history = undone(history)
  expect(history.now).toBe(5)
})
