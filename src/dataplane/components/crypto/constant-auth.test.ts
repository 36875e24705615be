/** constant_auth_sign and constant_auth_verify: the bytes on the wire, what is dropped, constants of 64 bits, junk. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { drive, payload, type Refused } from '../../../../test/harness/component.ts'

const signer = (constant: string | number) =>
  drive({ it: { constant_auth_sign: { input: 'in', output: 'out', constant } } })
const verifier = (constant: string | number) =>
  drive({ it: { constant_auth_verify: { input: 'in', output: 'out', constant } } })

/** What is sent when `payloads` come in, or is passed on. */
function through(bench: ReturnType<typeof drive>, payloads: Uint8Array[]): Uint8Array[] {
  bench.send('in', payloads)
  return bench.take('out').map(({ bytes }) => bytes)
}

describe('constant_auth_sign', () => {
  it.each([
    ['18446744073709551615', [255, 255, 255, 255, 255, 255, 255, 255]],
    ['9223372036854775808', [128, 0, 0, 0, 0, 0, 0, 0]],
    ['81985529216486895', [1, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef]],
    [9007199254740991, [0, 31, 255, 255, 255, 255, 255, 255]],
    [4294967296, [0, 0, 0, 1, 0, 0, 0, 0]],
    ['0', [0, 0, 0, 0, 0, 0, 0, 0]],
    [0, [0, 0, 0, 0, 0, 0, 0, 0]],
  ])('appends %s, big-endian', (constant, wire) => {
    const bench = signer(constant)
    expect(through(bench, [payload(100), payload(0), payload(2048)])).toEqual(
      [payload(100), payload(0), payload(2048)].map((bytes) => Uint8Array.from([...bytes, ...wire])),
    )
    expect(bench.metrics().it).toMatchObject({ signed_packets: 3, no_room_packets: 0 })
    bench.stop()
  })

  it('is refused a constant that is none, without the constant being told', () => {
    const messages = (constant: unknown) => {
      try {
        signer(constant as string).stop()
        return []
      } catch (error) {
        return (error as Refused).problems.map(({ pointer, message }) => {
          expect(pointer).toBe('/engine_config/pipeline/it/constant_auth_sign/constant')
          return message
        })
      }
    }
    const text = 'must be a whole number from 0 to 18446744073709551615'
    for (const wrong of ['18446744073709551616', '-1', '0x10', '1.5', '1e3', '', ' 1']) {
      expect(messages(wrong), wrong).toEqual([text])
    }
    expect(messages('0'.repeat(21))).toContain('must have at most 20 characters')
    expect(messages(2 ** 53)).toEqual([
      'this value is above the maximum of 9007199254740991 (a larger one is written as a string of digits)',
    ])
    expect(messages(-1)).toEqual(['this value is below the minimum of 0'])
    expect(messages(1.5)).toEqual(['this value is not a whole number'])
    expect(messages(true)).toEqual(['must be a whole number, or one in a string, not true or false'])
    expect(messages(undefined)).toEqual(['required field "constant" is missing'])
  })
})

describe('constant_auth_verify', () => {
  it('strips the constant, and drops what ends with another in any one bit, or is too short', () => {
    const constant = '81985529216486895'
    const plain = [payload(100, 1), payload(0), payload(2048, 2)]
    const wire = through(signer(constant), plain)
    const bench = verifier(constant)
    expect(through(bench, wire)).toEqual(plain)
    for (let bit = 0; bit < 64; bit++) {
      const altered = wire[0].slice()
      altered[altered.length - 8 + (bit >> 3)] ^= 1 << (bit & 7)
      expect(through(bench, [altered])).toEqual([])
    }
    for (let length = 0; length < 8; length++) expect(through(bench, [wire[1].subarray(0, length)])).toEqual([])
    expect(bench.metrics().it).toEqual(
      expect.objectContaining({ verified_packets: 3, verify_failures: 64, malformed_packets: 8 }),
    )
    bench.stop()
  })

  it('keeps order and annotations of what passes among what does not', () => {
    const wire = through(
      signer(7),
      Array.from({ length: 600 }, (_, i) => payload(50, i)),
    )
    wire.forEach((bytes, i) => {
      if (i % 3 === 0) bytes[bytes.length - 1] ^= 1
    })
    const bench = verifier('7')
    bench.send('in', wire, { remote: '192.0.2.1:5000', client: 4 })
    const out = bench.take('out')
    expect(out.map(({ bytes }) => bytes)).toEqual(
      Array.from({ length: 600 }, (_, i) => payload(50, i)).filter((_, i) => i % 3 !== 0),
    )
    expect(out[5]).toMatchObject({ remote: '192.0.2.1:5000', client: 4 })
    bench.stop()
  })

  it('survives any bytes, and lets nothing through but what ends with the constant', () => {
    const bench = verifier('81985529216486895')
    const end = [1, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef]
    const signed = fc.uint8Array({ maxLength: 50, size: 'max' }).map((bytes) => Uint8Array.from([...bytes, ...end]))
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.uint8Array({ maxLength: 40, size: 'max' }), signed), { maxLength: 300, size: 'max' }),
        (list) => {
          const right = list.filter((bytes) => Buffer.from(bytes).subarray(-8).equals(Buffer.from(end)))
          expect(through(bench, list)).toEqual(right.map((bytes) => bytes.slice(0, -8)))
          bench.check()
        },
      ),
      { seed: 3, numRuns: 100 },
    )
    bench.stop()
  })
})
