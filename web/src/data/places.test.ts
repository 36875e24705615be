import { expect, test } from 'vitest'
import { pointerOf, valueAt, withValues } from './places.ts'
import { typed, valueOfText, variablesOf } from './variables.ts'

const config = { engineConfig: { pipeline: { 'a/b~c': { x: { lossProb: 0.1, list: [1, 2] } } } } }
const place = '/engine_config/pipeline/a~1b~0c/x/loss_prob'

test('a pointer finds a value in either casing', () => {
  expect(valueAt(config, place)).toBe(0.1)
  expect(valueAt(config, '/engine_config/pipeline/a~1b~0c/x/list/1')).toBe(2)
  expect(valueAt(config, '/nope/at/all')).toBeUndefined()
  expect(pointerOf(['a/b~c', 'x'])).toBe('/a~1b~0c/x')
})

test('values are written where they are, or would be', () => {
  const more = '/engine_config/pipeline/a~1b~0c/x/seed'
  const after = JSON.parse(
    withValues(
      JSON.stringify(config),
      new Map([
        [place, 0.2],
        [more, 7],
      ]),
    ),
  )
  expect(after.engineConfig.pipeline['a/b~c'].x).toEqual({ lossProb: 0.2, list: [1, 2], seed: 7 })
  expect(() => withValues('{}', new Map([[place, 1]]))).toThrow(place)
})

test('undefined takes a value away', () => {
  const after = JSON.parse(withValues(JSON.stringify(config), new Map([[place, undefined]])))
  expect(after.engineConfig.pipeline['a/b~c'].x).toEqual({ list: [1, 2] })
})

test('variables have the value of their first place; one without a place is none', () => {
  const variables = [{ id: 'loss', paths: [place], description: 'Loss' }, { id: 'nothing' }]
  expect(variablesOf(JSON.stringify({ ...config, variables }))).toEqual([
    { id: 'loss', label: 'loss', description: 'Loss', paths: [place], value: 0.1 },
  ])
  expect(variablesOf('{}')).toEqual([])
})

test.each([
  ['0.5', 0.1, 0.5],
  ['true', false, true],
  ['[1, 2]', undefined, [1, 2]],
  ['5', 'a text', '5'],
  ['not JSON', 1, 'not JSON'],
])('%j typed over %j is %j', (text, before, value) => {
  expect(valueOfText(text, before)).toEqual(value)
})

test('a text is shown without quotes', () => {
  expect([typed('a'), typed(0.5), typed(undefined)]).toEqual(['a', '0.5', ''])
})

test('a list that is set stays as it was given when a value within it is set after it', () => {
  const list = [{ delay: 1 }, { delay: 2 }]
  const at = '/engine_config/pipeline/a~1b~0c/x/list'
  const values = new Map<string, unknown>([
    [at, list],
    [`${at}/1/delay`, 5],
  ])
  expect(valueAt(JSON.parse(withValues(JSON.stringify(config), values)), at)).toEqual([{ delay: 1 }, { delay: 5 }])
  expect(list).toEqual([{ delay: 1 }, { delay: 2 }])
})
