/** What is encoded once from a value that never changes is what is encoded anew from one that may. */
import { expect, test } from 'vitest'
import { binaryOf, encodeBinary } from './binary-encode.ts'
import { jsonEncoder } from './json-encode.ts'
import { loadSchema } from './load-schema.ts'
import type { MessageSchema } from './schema.ts'
import { unchanging, utf8Of } from './unchanging.ts'

const RESPONSE = loadSchema().messages.get('servicegrpc.pipeline.GetPipelineByIdResponse') as MessageSchema

const pipeline = () => ({
  id: 'a',
  name: 'näme',
  jsonConfig: '{}',
  started: true,
  currentRun: { id: 'r', state: 'RUNNING', startedAt: new Date(1_700_000_000_123) },
  instructionsTimeout: 5,
})

test('an unchanging message is encoded as any other, in both codecs, however often', () => {
  const kept = unchanging(pipeline())
  const expected = {
    bytes: encodeBinary(RESPONSE, { pipeline: pipeline() }),
    text: jsonEncoder(RESPONSE)({ pipeline: pipeline() }),
  }
  expect(expected.bytes.length).toBeGreaterThan(30)
  for (let turn = 0; turn < 3; turn++) {
    expect(encodeBinary(RESPONSE, { pipeline: kept })).toEqual(expected.bytes)
    expect(jsonEncoder(RESPONSE)({ pipeline: kept })).toBe(expected.text)
  }
})

test('a whole answer that is unchanging is encoded once, in both codecs', () => {
  const encode = jsonEncoder(RESPONSE)
  const kept = unchanging({ pipeline: pipeline() })
  const text = utf8Of(kept, encode)
  expect(Buffer.from(text as Uint8Array).toString()).toBe(encode({ pipeline: pipeline() }))
  expect(utf8Of(kept, encode)).toBe(text)
  const bytes = binaryOf(RESPONSE, kept)
  expect(bytes).toEqual(encodeBinary(RESPONSE, { pipeline: pipeline() }))
  expect(binaryOf(RESPONSE, kept)).toBe(bytes)
  expect(encodeBinary(RESPONSE, kept), 'the bytes of that are the caller’s').not.toBe(bytes)
})

test('a whole answer that may change is encoded as it is each time', () => {
  const changing = { pipeline: pipeline() }
  const encode = jsonEncoder(RESPONSE)
  const before = { text: utf8Of(changing, encode), bytes: binaryOf(RESPONSE, changing) }
  changing.pipeline.name = 'another'
  expect(utf8Of(changing, encode)).not.toBe(before.text)
  expect(binaryOf(RESPONSE, changing)).not.toEqual(before.bytes)
})

test('a message that may change is encoded as it is each time', () => {
  const changing = pipeline()
  const before = encodeBinary(RESPONSE, { pipeline: changing })
  changing.name = 'another'
  expect(encodeBinary(RESPONSE, { pipeline: changing })).not.toEqual(before)
  expect(jsonEncoder(RESPONSE)({ pipeline: changing })).toContain('another')
})
