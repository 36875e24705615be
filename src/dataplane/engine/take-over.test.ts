import { expect, test } from 'vitest'
import { takeOver } from './take-over.ts'

const components = (values: Record<string, number>) =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, { key: 'any', config: { value } }]))

/** What the components have after a change to `next`, of which those named in `refusing` do not take these values; those in `verifying` say so before. */
function change(
  next: Record<string, number>,
  refusing: Record<string, readonly number[]> = {},
  verifying: Record<string, readonly number[]> = {},
) {
  const had = { a: 1, b: 1, c: 1 }
  const have: Record<string, unknown> = { ...had }
  const handed: string[] = []
  const stuck: string[] = []
  let refused: unknown
  try {
    takeOver(
      components(had),
      components(next),
      (name, { value }) => {
        if (verifying[name]?.includes(value as number)) throw new Error(`${name} will not have ${value}`)
      },
      (name, { value }) => {
        handed.push(name)
        have[name] = value
        if (refusing[name]?.includes(value as number)) throw new Error(`${name} refuses ${value}`)
      },
      (error) => stuck.push((error as Error).message),
    )
  } catch (error) {
    refused = (error as Error).message
  }
  return { have, handed, refused, stuck }
}

test('components whose configuration is the same are left alone', () => {
  const { have, handed } = change({ a: 2, b: 1, c: 3 })
  expect([have, handed]).toEqual([{ a: 2, b: 1, c: 3 }, ['a', 'c']])
})

test('so are those whose fields are only written in another order', () => {
  const handed: string[] = []
  const written = (config: Record<string, unknown>) => ({ a: { key: 'any', config } })
  takeOver(
    written({ flows: [{ input: 'in', output: 'out' }], closed: true }),
    written({ closed: true, flows: [{ output: 'out', input: 'in' }] }),
    () => {},
    (name) => handed.push(name),
    () => {},
  )
  expect(handed).toEqual([])
})

test('when one refuses, it and those before it get back what they had', () => {
  const { have, handed, refused, stuck } = change({ a: 2, b: 2, c: 2 }, { b: [2] })
  expect([have, handed]).toEqual([{ a: 1, b: 1, c: 1 }, ['a', 'b', 'b', 'a']])
  expect([refused, stuck]).toEqual(['b refuses 2', []])
})

test('when one says that it would refuse, none is handed anything', () => {
  const { have, handed, refused } = change({ a: 2, b: 1, c: 2 }, {}, { b: [1], c: [2] })
  expect([have, handed, refused]).toEqual([{ a: 1, b: 1, c: 1 }, [], 'c will not have 2'])
})

test('what is thrown in going back is told, and keeps nobody else from going back', () => {
  const { have, refused, stuck } = change({ a: 2, b: 2, c: 2 }, { c: [2, 1] })
  expect(have).toEqual({ a: 1, b: 1, c: 1 })
  expect([refused, stuck]).toEqual(['c refuses 2', ['c refuses 1']])
})
