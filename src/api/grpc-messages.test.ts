/** Messages out of the bytes of a call, however these are cut. */
import { expect, it } from 'vitest'
import { MessageDecoder } from './grpc-messages.ts'

/** A message with its prefix; `isCompressed`: as it says of itself. */
function prefixed(message: Uint8Array, isCompressed = false): Buffer {
  const prefix = Buffer.alloc(5)
  prefix.writeUInt8(isCompressed ? 1 : 0)
  prefix.writeUInt32BE(message.length, 1)
  return Buffer.concat([prefix, message])
}

it('gives every message once it is whole, wherever the bytes are cut', () => {
  const messages = [Buffer.from('one'), Buffer.alloc(0), Buffer.alloc(300, 'two'), Buffer.from('3')].map(
    (message, at) => prefixed(message, at % 2 === 1),
  )
  const bytes = Buffer.concat(messages)
  for (let length = 1; length <= bytes.length; length++) {
    const decoder = new MessageDecoder(300)
    const given: Buffer[] = []
    for (let at = 0; at < bytes.length; at += length) given.push(...decoder.write(bytes.subarray(at, at + length)))
    expect(given).toEqual(messages)
  }
})

it('refuses a message that is too long, and all that comes of it', () => {
  const decoder = new MessageDecoder(4)
  expect(decoder.write(prefixed(Buffer.alloc(4)))).toHaveLength(1)
  const long = prefixed(Buffer.alloc(5))
  expect(() => decoder.write(long.subarray(0, 5))).toThrow('larger than max (5 vs 4)')
  expect(() => decoder.write(long.subarray(5))).toThrow('larger than max (5 vs 4)')
  expect(() => decoder.write(prefixed(Buffer.alloc(0)))).toThrow('larger than max (5 vs 4)')
})
