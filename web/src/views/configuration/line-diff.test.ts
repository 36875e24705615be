import fc from 'fast-check'
import { expect, test } from 'vitest'
import { excerpt, lineDiff } from './line-diff.ts'

const shown = (before: string, after: string): string =>
  lineDiff(before, after)
    .map(({ sign, text }) => sign + text)
    .join(' ')

test('what both have stays, in order', () => {
  expect(shown('a\nb\nc\nd', 'a\nx\nc\nd\ne')).toBe('=a -b +x =c =d +e')
  expect(shown('a', 'a')).toBe('=a')
  expect(shown('', 'a\n')).toBe('+a =')
})

test('either text can be told from the lines, and no line of a longest common subsequence is missed', () => {
  const text = fc.array(fc.constantFrom('a', 'b', 'c'), { minLength: 1, maxLength: 12, size: 'max' })
  fc.assert(
    fc.property(text, text, (old, now) => {
      const lines = lineDiff(old.join('\n'), now.join('\n'))
      expect(lines.filter(({ sign }) => sign !== '+').map((line) => line.text)).toEqual(old)
      expect(lines.filter(({ sign }) => sign !== '-').map((line) => line.text)).toEqual(now)
      expect(lines.filter(({ sign }) => sign === '=').length).toBe(longest(old, now))
    }),
  )
})

test('an excerpt has what differs and what stands near it', () => {
  const lines = lineDiff('1\n2\n3\n4\n5\n6\n7\n8\n9', '1\n2\n3\n4\nx\n6\n7\n8\n9')
  expect(excerpt(lines, 1).map((line) => line && line.sign + line.text)).toEqual([
    undefined,
    '=4',
    '-5',
    '+x',
    '=6',
    undefined,
  ])
})

test('long texts without a line in common are not compared line by line', () => {
  const lines = (prefix: string): string => Array.from({ length: 3000 }, (_, i) => prefix + i).join('\n')
  expect(
    lineDiff(lines('a'), lines('b'))
      .slice(2999, 3001)
      .map(({ sign }) => sign),
  ).toEqual(['-', '+'])
})

/** By definition. */
function longest([a, ...old]: readonly string[], now: readonly string[]): number {
  if (a === undefined || now.length === 0) return 0
  const i = now.indexOf(a)
  return Math.max(longest(old, now), i < 0 ? 0 : 1 + longest(old, now.slice(i + 1)))
}
