import { jsonLanguage } from '@codemirror/lang-json'
import { expect, test } from 'vitest'
import { faultIn, pathTo, placeOf } from './json-places.ts'

const { parser } = jsonLanguage
const text = `{
  "engineConfig": { "pipeline": { "a/b": { "udp": { "mtu": -1, "list": [1, {"x": "y"}] } } } }
}`
const slice = (from: number, to: number): string => text.slice(from, to)
const tree = parser.parse(text)

test.each([
  ['', '{'],
  ['/engineConfig', '"engineConfig"'],
  ['/engine_config/pipeline/a~1b/udp/mtu', '-1'],
  ['/engine_config/pipeline/a~1b/udp/list/0', '1'],
  ['/engine_config/pipeline/a~1b/udp/list/1', '{'],
  ['/engine_config/pipeline/a~1b/udp/list/1/x', '"y"'],
  ['/engine_config/pipeline/a~1b/udp/missing', '"udp"'],
  ['/engine_config/pipeline/a~1b/udp/list/7', '"list"'],
  ['/name', '{'],
])('%j is at %s', (pointer, found) => {
  const { from, to } = placeOf(tree, slice, pointer)!
  expect(slice(from, to)).toBe(found)
})

test('a text without a value has no places', () => {
  expect(placeOf(parser.parse(' '), () => '', '/x')).toBeUndefined()
})

test.each([
  ['-1', 'engineConfig pipeline a/b udp mtu'],
  ['1, {', 'engineConfig pipeline a/b udp list 0'],
  ['y"', 'engineConfig pipeline a/b udp list 1 x'],
  ['x"', 'engineConfig pipeline a/b udp list 1 x'],
])('the way to %s is %s', (piece, path) => {
  expect(pathTo(tree.resolveInner(text.indexOf(piece), 1), slice).join(' ')).toBe(path)
})

test.each([
  ['{"a": 1, }', 9],
  ['{"a": tr}', 6],
  ['{"a": 1}', undefined],
  ['[1,,2]', 3],
])('%s is wrong at %s', (wrong, at) => {
  expect(faultIn(parser.parse(wrong))?.from).toBe(at)
})
