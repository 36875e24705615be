/** RTP headers as they come, with contributing sources and extensions, and what is none. */
import { describe, expect, test } from 'vitest'
import { RtpHeader } from './rtp-header.ts'

const header = new RtpHeader()
const read = (bytes: readonly number[], length = bytes.length) =>
  header.read(new DataView(Uint8Array.from([9, ...bytes]).buffer), 1, length)

const FIXED = [0x12, 0x34, 0xfe, 0xdc, 0xba, 0x98, 0x80, 0, 0, 1]

test('the fixed header', () => {
  expect(read([0x80, 0x80 | 96, ...FIXED, 1, 2, 3])).toBe(true)
  expect(header).toMatchObject({ headerBytes: 12, payloadType: 96, sequence: 0x1234 })
  expect([header.timestamp >>> 0, header.ssrc >>> 0]).toEqual([0xfedcba98, 0x80000001])
})

test('contributing sources and an extension belong to it', () => {
  const sources = [1, 1, 1, 1, 2, 2, 2, 2]
  const extension = [0xbe, 0xde, 0, 1, 9, 9, 9, 9]
  expect(read([0xb2, 0, ...FIXED, ...sources, ...extension])).toBe(true)
  expect(header.headerBytes).toBe(28)
  expect(read([0x82, 0, ...FIXED, ...sources])).toBe(true)
  expect(header.headerBytes).toBe(20)
})

describe('is none', () => {
  test.each<[string, number[], number?]>([
    ['nothing', []],
    ['11 bytes', [0x80, 0, ...FIXED].slice(0, 11)],
    ['what goes on beyond the packet', [0x80, 0, ...FIXED], 11],
    ['version 0', [0x00, 0, ...FIXED]],
    ['version 1', [0x40, 0, ...FIXED]],
    ['version 3', [0xc0, 0, ...FIXED]],
    ['sources that do not fit', [0x81, 0, ...FIXED, 1, 2, 3]],
    ['an extension that is cut', [0x90, 0, ...FIXED, 0, 0, 0]],
    ['an extension that does not fit', [0x90, 0, ...FIXED, 0, 0, 0, 1, 1, 2, 3]],
    ...[200, 201, 202, 203, 204].map((type): [string, number[]] => [`RTCP type ${type}`, [0x80, type, ...FIXED]]),
  ])('%s', (_, bytes, length) => expect(read(bytes, length)).toBe(false))

  test.each([71, 77])('but payload type %d is RTP', (type) => expect(read([0x80, type, ...FIXED])).toBe(true))
})
