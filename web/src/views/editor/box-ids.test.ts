import { expect, test } from 'vitest'
import { boxId, nameOfBox } from './box-ids.ts'

test.each(['loss', 'a"b', 'a\\', '100%25', 'two\nlines\r\f', '<img src="x">', '\ud800 alone', ''])(
  'the id for %j ends no string and leads back to it',
  (name) => {
    expect(boxId(name)).not.toMatch(/["\\\n\r\f]/)
    expect(nameOfBox(boxId(name))).toBe(name)
  },
)

test('different names have different ids', () => {
  expect(boxId('%22')).not.toBe(boxId('"'))
})
