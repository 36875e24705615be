/** JSON texts: faults at their places, keys given twice, places of pointers; and nothing said of a text that is well. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { JsonPlaces, loneSurrogates, readJson } from './json-text.ts'

describe('a text that is no JSON', () => {
  test.each([
    ['', 0, 'the text holds nothing'],
    [' \n\t', 3, 'the text holds nothing'],
    ['\ufeff{"a":1}', 0, 'the text begins with a byte order mark'],
    ['\ufeff', 0, 'the text begins with a byte order mark'],
    ['{"a": tru}', 6, 'here a value is wanted'],
    ['{"a":1,}', 7, 'here a key in quotes is wanted'],
    ['[1,2,,3]', 5, 'here a value is wanted'],
    ['{"a":1', 6, 'the text ends too early'],
    ['{"a":"x\ny"}', 7, 'a string has no such character or escape'],
    ['["\\x"]', 2, 'a string has no such character or escape'],
    ['["\\u12g4"]', 2, 'a string has no such character or escape'],
    ['{"a":1} x', 8, 'the text goes on after its value'],
    ['{a:1}', 1, 'here a key in quotes or } is wanted'],
    ['{"a" 1}', 5, 'here a colon is wanted'],
    ['[1 2]', 3, 'here a comma or the end of what is open is wanted'],
    ['01', 1, 'the text goes on after its value'],
  ])('%j: position %i', (text, position, what) => {
    const { value, problems } = readJson(text)
    expect(value).toBe(undefined)
    expect(problems).toHaveLength(1)
    expect(problems[0]?.message).toContain(`malformed JSON at position ${position} (`)
    expect(problems[0]?.message).toContain(`: ${what}`)
  })

  test('a fault on line 2 of seven is on line 2', () => {
    const text = '{\n  "engine_config": bogus,\n  "a": [\n    1,\n    2\n  ]\n}\n'
    expect(readJson(text).problems[0]?.message).toContain('(line 2, column 20)')
  })

  test('whatever JSON.parse refuses has a fault, whatever it takes has none', () => {
    const damaged = fc.tuple(fc.json(), fc.nat(), fc.constantFrom('', ',', '}', '"', '\\', '0', ' ', '\n', ':'))
    fc.assert(
      fc.property(damaged, ([json, at, put]) => {
        const text = json.slice(0, at % (json.length + 1)) + put + json.slice(at % (json.length + 1))
        const { problems } = readJson(text)
        let isJson = true
        try {
          JSON.parse(text)
        } catch {
          isJson = false
        }
        if (isJson) expect(problems.filter(({ message }) => message.startsWith('malformed'))).toEqual([])
        else expect(problems.map(({ message }) => message).join()).toMatch(/^malformed JSON at position \d+ /)
      }),
      { seed: 7, numRuns: 2000 },
    )
  })

  test('nesting is read down to 1,000 levels; a text that is nothing but brackets is no trouble', () => {
    const nested = (levels: number) => '['.repeat(levels) + ']'.repeat(levels)
    expect(readJson(nested(1_000)).problems).toEqual([])
    for (const text of [nested(1_001), nested(2_000_000), '['.repeat(4_000_000), '{"a":'.repeat(800_000)]) {
      expect(readJson(text)).toEqual({
        value: undefined,
        problems: [{ pointer: '', message: 'the text is nested deeper than 1,000 levels, the most that are read' }],
      })
    }
    // Brackets side by side, or in strings, are no levels.
    expect(readJson(`[${'[],'.repeat(2_000)}"${'['.repeat(2_000)}"]`).problems).toEqual([])
    expect(readJson(`{"a":1,"a":${nested(900)}}`).problems.map(({ pointer }) => pointer)).toEqual(['/a'])
    const places = new JsonPlaces(nested(2_000_000))
    expect([places.has('/0/0/0'), places.fault]).toEqual([true, undefined])
  })
})

describe('a key that one object has twice', () => {
  test.each([
    ['{"a":1,"a":2}', ['/a']],
    ['{"a":1,"b":{"c":1,"d":2,"c":3}}', ['/b/c']],
    ['[0,{"x":[{"a/b":1,"a/b":1}]}]', ['/1/x/0/a~1b']],
    ['{"\\u0061":1,"a":2}', ['/a']],
    ['{"__proto__":1,"__proto__":2}', ['/__proto__']],
    ['{"":1,"":2,"":3}', ['/', '/']],
    ['{"a":"\\":","b":":\\\\","a":1}', ['/a']],
  ])('%s', (text, pointers) => {
    expect(readJson(text).problems.map(({ pointer }) => pointer)).toEqual(pointers)
  })

  test('both places are told', () => {
    expect(readJson('{\n "a": 1,\n "b": 2,\n  "a": 3\n}').problems).toEqual([
      {
        pointer: '/a',
        message: 'the key is given twice, at line 2, column 2 and at line 4, column 3; leave one out',
      },
    ])
  })

  test('other texts have none: same key in other objects, colons in strings, escapes', () => {
    fc.assert(
      fc.property(fc.json({ stringUnit: 'binary' }), (text) => {
        expect(readJson(text)).toEqual({ value: JSON.parse(text), problems: [] })
      }),
      { seed: 7 },
    )
  })
})

describe('places of pointers', () => {
  const text = '{\n  "a": [1,\n    {"b/c": true}],\n  "": 5\n}'
  const places = new JsonPlaces(text)
  test.each([
    ['', 1, 1],
    ['/a', 2, 3],
    ['/a/0', 2, 9],
    ['/a/1', 3, 5],
    ['/a/1/b~1c', 3, 6],
    ['/', 4, 3],
    ['/a/1/missing/more', 3, 5],
    ['/a/7', 2, 3],
  ])('%j is at %i:%i', (pointer, line, column) => expect(places.of(pointer)).toMatchObject({ line, column }))

  test('what a text has, and where it is no JSON', () => {
    expect([places.has('/a/1/b~1c'), places.has(''), places.has('/a/7'), places.has('/x')]).toEqual([
      true,
      true,
      false,
      false,
    ])
    expect(places.fault).toBe(undefined)
    expect(new JsonPlaces('{\n "a": 1,\n  b').fault).toMatchObject({ line: 3, column: 3 })
    expect(new JsonPlaces('').has('')).toBe(false)
  })

  test('a text that holds nothing has none', () => expect(new JsonPlaces(' ').of('/a')).toBe(undefined))

  test('a text that is broken later still has those before', () => {
    expect(new JsonPlaces('{"a": 1,\n"b": 2,').of('/b')).toMatchObject({ line: 2, column: 1 })
  })
})

test('halves of surrogate pairs are found in strings and keys', () => {
  const of = (text: string) => loneSurrogates(text, JSON.parse(text)).sort()
  expect(of('{"a":["x","\\ud800"],"\\udc00":{"b":1},"\\ud83d\\ude00":"\\ud83d\\ude00"}')).toEqual(['/a/1', '/\udc00'])
  expect(of('{"a":"plain"}')).toEqual([])
})

test('of keys with halves of pairs no more than a hundred are told', () => {
  const value = Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`${i}\ud800`, 1]))
  expect(loneSurrogates(JSON.stringify(value), value)).toHaveLength(100)
})
