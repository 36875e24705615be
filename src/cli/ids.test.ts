/** What a word means that may be a name, an id, or the beginning of one. */
import { expect, test } from 'vitest'
import { Failure } from './failure.ts'
import { isWholeId, mayBeginId, meant } from './ids.ts'

const nodes = [
  { id: 'csumaaaa', name: 'hub' },
  { id: 'csumbbbb', name: 'edge' },
  { id: 'dddddddd', name: 'csuma' },
  { id: 'eeeeeeee', name: 'edge' },
  { id: 'ffffffff', name: 'csumbbbb' },
  { id: 'gggggggg', name: 'gggg' },
]

test.each([
  ['a whole id, whoever else is called so', 'csumbbbb', 'csumbbbb'],
  ['a name', 'hub', 'csumaaaa'],
  ['the beginning of an id', 'ddddd', 'dddddddd'],
  ['the name and the beginning of the same', 'gggg', 'gggggggg'],
  ['too little of an id', 'ddd', undefined],
  ['nothing', 'absent', undefined],
])('%s', (_what, given, id) => {
  expect(meant(nodes, given, 'nodes')?.id).toBe(id)
})

test.each([
  ['edge', '2 nodes can be meant: "edge" is the name of csumbbbb, eeeeeeee: use one of the ids'],
  ['csum', '2 nodes can be meant: "csum" is the beginning of csumaaaa, csumbbbb: use one of the ids'],
  [
    'csuma',
    '2 nodes can be meant: "csuma" is the name of dddddddd; "csuma" is the beginning of csumaaaa: use one of the ids',
  ],
])('%s: several', (given, message) => {
  expect(() => meant(nodes, given, 'nodes')).toThrow(new Failure(message))
})

test.each([
  ['0b6ebe5c-7b9d-4d3b-9d43-6a2d1d5f3c11', true, false],
  ['0b6ebe5c-7b9d-4d3b-9d43-6a2d1d5f3c1', false, true],
  ['0b6ebe5c-', false, true],
  ['cafe', false, true],
  ['cab', false, false],
  ['cafe-1', false, false],
  ['0b6ebe5c7', false, false],
  ['0b6ebe5c-7b9d-4d3b-9d43-6a2d1d5f3c111', false, false],
  ['camera', false, false],
  ['', false, false],
])('%j is the id of a pipeline or run: %j; may be the beginning of one: %j', (given, isWhole, mayBegin) => {
  expect([isWholeId(given), mayBeginId(given)]).toEqual([isWhole, mayBegin])
})
