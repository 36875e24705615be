/** Authenticated encryption by each backend against node:crypto where kernels change their way: whole vectors, whole sums, carries. */
import { createCipheriv } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { usableAeadBackends } from '../../../test/harness/aead-backends.ts'
import { Random } from '../engine/random.ts'
import { pattern } from './fixture.ts'
import { native } from './native.ts'

const SUITES = [
  ['AES-128-GCM', 0, 16, 'aes-128-gcm'],
  ['AES-256-GCM', 1, 32, 'aes-256-gcm'],
  ['ChaCha20-Poly1305', 2, 32, 'chacha20-poly1305'],
] as const
type Cipher = (typeof SUITES)[number][3]

const random = new Random(7)
const NOISE = new Uint8Array(1 << 16)
random.fill(NOISE, 0, NOISE.length)
const noise = (bytes: number) => NOISE.slice(random.below(1000)).subarray(0, bytes)

/** Text and tag as node:crypto makes them. */
function sealed(cipher: Cipher, key: Uint8Array, nonce: Uint8Array, associated: Uint8Array, text: Uint8Array): Buffer {
  const seal = createCipheriv(cipher as 'aes-128-gcm', key, nonce, { authTagLength: 16 })
  seal.setAAD(associated)
  return Buffer.concat([seal.update(text), seal.final(), seal.getAuthTag()])
}

/** All around the places where vectors of 4 blocks, groups of them and sums of groups begin and end, and where the last byte of a counter carries. */
const LENGTHS = [
  ...Array.from({ length: 600 }, (_, length) => length),
  ...[
    1024, 1280, 1472, 1504, 1520, 1536, 1552, 2560, 2816, 3840, 4016, 4032, 4048, 4064, 4096, 6400, 8192, 8960,
  ].flatMap((length) => [length - 17, length - 16, length - 1, length, length + 1, length + 15, length + 16]),
]
const HEADERS = [0, 1, 15, 16, 17, 20, 63, 64, 65, 127, 128, 129, 1279, 1280, 1281, 1552, 2560, 2561, 8000]

describe.each(usableAeadBackends)('%s', (backend) => {
  beforeEach(() => native.aeadUse(backend))
  afterEach(() => native.aeadUse('auto'))

  test.each(SUITES)('%s: texts of all lengths, with nothing around them touched', (_name, suite, keyBytes, cipher) => {
    const key = noise(keyBytes)
    for (const length of LENGTHS) {
      const [nonce, associated, text] = [noise(12), noise(length % 5 ? 16 : length % 77), noise(length)]
      const expected = sealed(cipher, key, nonce, associated, text)
      const around = pattern(length + 16 + 128, 3)
      const place = around.subarray(length % 64, (length % 64) + length + 16)
      place.set(text)
      const before = [around.slice(0, place.byteOffset), around.slice(place.byteOffset + place.length)]
      native.aeadSealBytes(suite, key, nonce, associated, place)
      expect(expected.equals(place)).toBe(true)
      const wrong = Uint8Array.from(place)
      wrong[random.below(wrong.length)]! ^= 1 << random.below(8)
      expect(native.aeadOpenBytes(suite, key, nonce, associated, wrong)).toBe(false)
      expect(wrong.subarray(0, length).every((byte) => byte === 0)).toBe(true)
      expect(native.aeadOpenBytes(suite, key, nonce, associated, place)).toBe(true)
      expect(Buffer.compare(place.subarray(0, length), text)).toBe(0)
      expect([around.slice(0, place.byteOffset), around.slice(place.byteOffset + place.length)]).toEqual(before)
    }
  })

  test.each(SUITES)('%s: headers of all lengths', (_name, suite, keyBytes, cipher) => {
    const key = noise(keyBytes)
    for (const header of HEADERS) {
      for (const length of [0, 1, 16, 100, 1200, 3000]) {
        const [nonce, associated, text] = [noise(12), noise(header), noise(length)]
        const place = new Uint8Array(length + 16)
        place.set(text)
        native.aeadSealBytes(suite, key, nonce, associated, place)
        expect(sealed(cipher, key, nonce, associated, text).equals(place)).toBe(true)
      }
    }
  })

  test('Poly1305: sums at both ends of its numbers', () => {
    let [met, wanted] = [0, 0]
    for (const target of TARGETS) {
      wanted++
      const [key, nonce, associated, text] = messageWithSum(target)
      const place = Buffer.concat([text, Buffer.alloc(16)])
      const expected = sealed('chacha20-poly1305', key, nonce, associated, text)
      native.aeadSealBytes(2, key, nonce, associated, place)
      expect(place.toString('hex')).toBe(expected.toString('hex'))
      expect(native.aeadOpenBytes(2, key, nonce, associated, place)).toBe(true)
      met++
    }
    expect(met).toBe(wanted)
  })
})

const PRIME = 2n ** 130n - 5n
/** Numbers that may stand for themselves or for themselves and the prime, and those beside the ends of limbs. */
const TARGETS = [0n, 1n, 2n, 3n, 4n, 5n, PRIME - 1n, PRIME - 2n, PRIME - 5n].concat(
  [44n, 64n, 88n, 128n, 129n].flatMap((bit) => [2n ** bit - 1n, 2n ** bit]),
)

const modulo = (x: bigint) => ((x % PRIME) + PRIME) % PRIME
const littleEndian = (bytes: Uint8Array) => BigInt(`0x${Buffer.from(bytes).reverse().toString('hex') || '0'}`)
function inverse(x: bigint): bigint {
  let [result, base, exponent] = [1n, x, PRIME - 2n]
  for (; exponent > 0n; exponent >>= 1n) {
    if (exponent & 1n) result = modulo(result * base)
    base = modulo(base * base)
  }
  return result
}

/** Key, nonce, header and a text of a block with which the polynomial of Poly1305 is `target` (RFC 8439, sections 2.5 and 2.8). */
function messageWithSum(target: bigint): [Uint8Array, Uint8Array, Uint8Array, Uint8Array] {
  const BIT = 2n ** 128n
  for (;;) {
    const [key, nonce, associated] = [noise(32), noise(12), noise(16)]
    const stream = createCipheriv('chacha20', key, Buffer.concat([Buffer.alloc(4), nonce])).update(Buffer.alloc(80))
    const r = littleEndian(stream.subarray(0, 16)) & 0x0ffffffc0ffffffc0ffffffc0fffffffn
    const lengths = littleEndian(Buffer.from('10000000000000001000000000000000', 'hex')) + BIT
    const back = inverse(r)
    const block = modulo(modulo(target * back - lengths) * back - (littleEndian(associated) + BIT) * r) - BIT
    if (block < 0n || block >= BIT) continue
    const cipherText = Buffer.from(block.toString(16).padStart(32, '0'), 'hex').reverse()
    return [key, nonce, associated, cipherText.map((byte, i) => byte ^ (stream[64 + i] as number))]
  }
}

test.runIf(process.arch === 'x64')('penstock has code of its own for each CPU with the instructions', () => {
  const flags = /^flags\s*:(.*)$/m.exec(readFileSync('/proc/cpuinfo', 'utf8'))?.[1]?.split(' ') ?? []
  const needed = ['avx512f', 'avx512bw', 'avx512dq', 'avx512vl', 'avx512ifma', 'vaes', 'vpclmulqdq', 'bmi2']
  const [own] = native.aeadBackends()
  expect(own?.name).toBe('avx512')
  expect(own?.obstacle?.code).toBe(needed.every((flag) => flags.includes(flag)) ? undefined : 'cpu')
})
