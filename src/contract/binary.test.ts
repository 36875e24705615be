/** The binary codec: bytes that are no message, or one of a later version, and what encoding leaves behind. */
import { expect, test } from 'vitest'
import { decodeAnswer, decodeBinary, decodeFromPeer } from './binary-decode.ts'
import { encodeBinary, encodeMember } from './binary-encode.ts'
import { loadSchema } from './load-schema.ts'
import type { MessageSchema } from './schema.ts'

const messageOf = (name: string) => loadSchema().messages.get(name) as MessageSchema
const NODE = messageOf('servicegrpc.hub.Node')
const ITEM = messageOf('servicegrpc.hub.NodeMetadataItem')
const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex')

test('a field of another wire type is an unknown one', () => {
  // Node.id (1) as a varint, Node.online (4) as text, Node.name (2) as it is.
  const read = decodeBinary(NODE, hex('08 07 22 01 78 12 01 6e'))
  expect(read).toMatchObject({ id: '', name: 'n', online: false })
})

test.each([
  ['a text longer than the message that holds it', '1a 04 0a 06 0a 00 12 00 12 01 6e'],
  ['a number longer than the message that holds it', '1a 05 0a 03 12 01 28 01'],
  ['a field of number 0', '00 01'],
  ['a group that never ends', '0b'],
])('%s is refused', (_, bytes) => {
  expect(() => decodeBinary(NODE, hex(bytes))).toThrow(expect.objectContaining({ code: 'INVALID_ARGUMENT' }))
})

test('a list of enums is read packed and not', () => {
  expect(decodeBinary(NODE, hex('2a 02 00 01 28 01'))).toMatchObject({
    services: ['HUB_SERVER', 'PIPELINES', 'PIPELINES'],
  })
})

test('of a one-of the last member holds', () => {
  expect(decodeBinary(ITEM, hex('0a 01 78 28 01'))).toEqual({ boolValue: true })
  expect(decodeBinary(ITEM, hex('28 01 0a 01 78 28 00'))).toEqual({ boolValue: false })
})

test('an unknown number of an enum is refused to a service and kept from a peer', () => {
  expect(() => decodeBinary(NODE, hex('28 09'))).toThrow('/services/0: 9 is none of HUB_SERVER, PIPELINES')
  expect(decodeFromPeer(NODE, hex('28 09'))).toMatchObject({ services: [9] })
})

test('a time that RFC 3339 cannot write is refused, whoever sent it', () => {
  for (const kept of ['0001-01-01T00:00:00.000Z', '9999-12-31T23:59:59.999Z']) {
    const lastSeen = new Date(kept)
    expect(decodeFromPeer(NODE, encodeBinary(NODE, { lastSeen }))).toMatchObject({ lastSeen })
  }
  const beyond = [
    encodeBinary(NODE, { lastSeen: new Date('+010000-01-01T00:00:00Z') }),
    encodeBinary(NODE, { lastSeen: new Date('0000-12-31T23:59:59.999Z') }),
    // 2^63 - 1 seconds, which no Date can say.
    hex('32 0a 08 ff ff ff ff ff ff ff ff 7f'),
  ]
  for (const bytes of beyond) {
    for (const decode of [decodeBinary, decodeAnswer, decodeFromPeer]) {
      expect(() => decode(NODE, bytes)).toThrow('/lastSeen: must be a time of the years 1 to 9999')
    }
  }
})

test('bytes are copied for a service, and a view of what a peer has sent', () => {
  const bytes = hex('12 03 01 02 03')
  expect((decodeBinary(ITEM, bytes).bytesValue as Uint8Array).buffer.byteLength).toBe(3)
  const { bytesValue } = decodeFromPeer(ITEM, bytes) as { bytesValue: Uint8Array }
  expect([bytesValue.buffer, [...bytesValue]]).toEqual([bytes.buffer, [1, 2, 3]])
})

test('one member alone is encoded as the message that has it alone', () => {
  for (const value of [{ stringValue: '' }, { intValue: -1n }, { bytesValue: Uint8Array.of(1) }]) {
    const [key, member] = Object.entries(value)[0] as [string, unknown]
    expect(encodeMember(ITEM, key, member)).toEqual(encodeBinary(ITEM, value))
  }
})

test('half a surrogate pair is written as what stands for it in UTF-8, in keys and texts', () => {
  const items = { 'a\ud800': { stringValue: '\udfff' } }
  const bytes = encodeBinary(NODE, { metadata: { items } })
  expect(decodeBinary(NODE, bytes).metadata).toEqual({ items: { 'a\ufffd': { stringValue: '\ufffd' } } })
})

test('a message that could not be encoded leaves nothing behind in the next', () => {
  const broken = Object.defineProperty({}, 'items', {
    get: () => {
      throw new RangeError('no items today')
    },
  })
  for (let i = 0; i < 3; i++) expect(() => encodeBinary(NODE, { id: 'a', metadata: broken })).toThrow('no items today')
  expect(decodeBinary(NODE, encodeBinary(NODE, { name: 'b' }))).toMatchObject({ id: '', name: 'b' })
  const long = 'x'.repeat(200_000)
  const [first, second] = [encodeBinary(NODE, { name: long }), encodeBinary(NODE, { name: 'c' })]
  expect([decodeBinary(NODE, first).name, decodeBinary(NODE, second).name]).toEqual([long, 'c'])
})
