import { expect, test } from 'vitest'
import { isObject, Members, memberNamed, setOwn } from './json-object.ts'

test('sets a property of its own, __proto__ as any other', () => {
  const object: Record<string, unknown> = {}
  for (const key of ['region', '__proto__', 'constructor', 'toString']) setOwn(object, key, [key])
  expect(Object.entries(object)).toEqual([
    ['region', ['region']],
    ['__proto__', ['__proto__']],
    ['constructor', ['constructor']],
    ['toString', ['toString']],
  ])
  expect(Object.getPrototypeOf(object)).toBe(Object.prototype)
})

test('the last value counts', () => {
  const object: Record<string, unknown> = {}
  for (const value of [1, 2]) setOwn(object, '__proto__', value)
  expect(Object.entries(object)).toEqual([['__proto__', 2]])
})

test('tells objects from lists, null and plain values', () => {
  expect([{}, { region: 'eu' }].map(isObject)).toEqual([true, true])
  for (const value of [null, undefined, [], ['eu'], 'eu', 4, true]) expect(isObject(value)).toBe(false)
})

test('a member is found in either casing, as it is written first, and of several the first', () => {
  const members = new Members()
  const object = { lossProb: 1, loss_prob: 2, a_b: 3, ['__proto__']: 4 }
  const list = ['x', 'y']
  for (const container of [object, list, Object.create(null)]) {
    for (const token of ['lossProb', 'loss_prob', 'loss__prob', 'aB', '__proto__', 'toString', 'no', '', '1', '2']) {
      expect([token, members.named(container, token)]).toEqual([token, memberNamed(container, token)])
    }
  }
})
