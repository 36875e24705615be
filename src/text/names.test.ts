/** Casing of names, and which known name a misspelt one is told. */
import { expect, test } from 'vitest'
import { camelCase, nearest, suggestion } from './names.ts'

test.each([
  ['node_id', 'nodeId'],
  ['parity_2d_encoder', 'parity2dEncoder'],
  ['value1_min_expression', 'value1MinExpression'],
  ['layer3_source_ip', 'layer3SourceIp'],
  ['name', 'name'],
])('%s is %s', (name, camel) => expect(camelCase(name)).toBe(camel))

const KNOWN = ['jsonConfig', 'nodeReferenceId', 'name']

test.each([
  ['jsonConfg', 'jsonConfig'],
  ['JSONCONFIG', 'jsonConfig'],
  ['nmae', 'name'],
  ['noderefrenceID', 'nodeReferenceId'],
  ['unlike', undefined],
  ['', undefined],
  [`name${'x'.repeat(61)}`, undefined],
])('%s: %s', (name, guess) => expect(nearest(name, KNOWN)).toBe(guess))

test('nothing is near when nothing is known', () => {
  expect(nearest('name', [])).toBeUndefined()
  expect(suggestion('name', [])).toBe('')
  expect(suggestion('nmae', KNOWN)).toBe(' Did you mean "name"?')
})

test('no more guesses are made once they have taken their time', () => {
  const known = new Set(Array.from({ length: 1000 }, (_, i) => `name ${i}`))
  expect(suggestion('nam 7', known, 99)).toBe(' Did you mean "name 7"?')
  expect(suggestion('nam 7', known, 100)).toBe('')
  expect(suggestion('nmae', KNOWN, 100)).toBe(' Did you mean "name"?')
})
