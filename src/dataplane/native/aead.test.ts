/** Authenticated encryption by each backend: published vectors, every bit of a message, and what is left of one that is refused. */
import { createCipheriv } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { usableAeadBackends } from '../../../test/harness/aead-backends.ts'
import { bytesOf, openPackets, packetMemory, packetOf, pattern } from './fixture.ts'
import { native } from './native.ts'

const hex = (text: string) => new Uint8Array(Buffer.from(text, 'hex'))
const NONE = new Uint8Array(0)
const SALT = pattern(8, 5)
const zeros = (bytes: number) => '00'.repeat(bytes)

const SUITES = [
  ['AES-128-GCM', 0, 16, 'aes-128-gcm'],
  ['AES-256-GCM', 1, 32, 'aes-256-gcm'],
  ['ChaCha20-Poly1305', 2, 32, 'chacha20-poly1305'],
] as const

const GCM_KEY = 'feffe9928665731c6d6a8f9467308308'
const GCM_NONCE = 'cafebabefacedbaddecaf888'
const GCM_ASSOCIATED = 'feedfacedeadbeeffeedfacedeadbeefabaddad2'
const GCM_TEXT =
  'd9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b391aafd255'
const SUNSCREEN = Buffer.from(
  "Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, sunscreen would be it.",
).toString('hex')

/** Suite, key, nonce, associated data, text, cipher text, tag. */
const VECTORS: Record<string, readonly [0 | 1 | 2, string, string, string, string, string, string]> = {
  // McGrew and Viega, "The Galois/Counter Mode of Operation", appendix B, which NIST SP 800-38D names.
  'GCM case 1': [0, zeros(16), zeros(12), '', '', '', '58e2fccefa7e3061367f1d57a4e7455a'],
  'GCM case 2': [
    0,
    zeros(16),
    zeros(12),
    '',
    zeros(16),
    '0388dace60b6a392f328c2b971b2fe78',
    'ab6e47d42cec13bdf53a67b21257bddf',
  ],
  'GCM case 3': [
    0,
    GCM_KEY,
    GCM_NONCE,
    '',
    GCM_TEXT,
    '42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091473f5985',
    '4d5c2af327cd64a62cf35abd2ba6fab4',
  ],
  'GCM case 4': [
    0,
    GCM_KEY,
    GCM_NONCE,
    GCM_ASSOCIATED,
    GCM_TEXT.slice(0, 120),
    '42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091',
    '5bc94fbc3221a5db94fae95ae7121a47',
  ],
  'GCM case 13': [1, zeros(32), zeros(12), '', '', '', '530f8afbc74536b9a963b4f1c4cb738b'],
  'GCM case 14': [
    1,
    zeros(32),
    zeros(12),
    '',
    zeros(16),
    'cea7403d4d606b6e074ec5d3baf39d18',
    'd0d1c8a799996bf0265b98b5d48ab919',
  ],
  'GCM case 16': [
    1,
    GCM_KEY + GCM_KEY,
    GCM_NONCE,
    GCM_ASSOCIATED,
    GCM_TEXT.slice(0, 120),
    '522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662',
    '76fc6ece0f4e1768cddf8853bb2d551b',
  ],
  'RFC 8439, section 2.8.2': [
    2,
    '808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f',
    '070000004041424344454647',
    '50515253c0c1c2c3c4c5c6c7',
    SUNSCREEN,
    'd31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d63dbea45e8ca9671282fafb69da92728b1a71de0a9e060b2905d6a5b67ecd3b3692ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b4831d7bc3ff4def08e4b7a9de576d26586cec64b6116',
    '1ae10b594f09e26a7e902ecbd0600691',
  ],
}

describe.each(usableAeadBackends)('%s', (backend) => {
  beforeEach(() => native.aeadUse(backend))
  afterEach(() => native.aeadUse('auto'))

  test.each(Object.entries(VECTORS))('%s', (_name, [suite, ...fields]) => {
    const [key, nonce, associated, text, sealed, tag] = fields.map(hex) as [
      Uint8Array,
      Uint8Array,
      Uint8Array,
      Uint8Array,
      Uint8Array,
      Uint8Array,
    ]
    const expected = Buffer.concat([sealed, tag])
    const bytes = new Uint8Array([...text, ...new Uint8Array(16)])
    native.aeadSealBytes(suite, key, nonce, associated, bytes)
    expect(Buffer.from(bytes).toString('hex')).toBe(expected.toString('hex'))
    expect(native.aeadOpenBytes(suite, key, nonce, associated, bytes)).toBe(true)
    expect(bytes.subarray(0, -16)).toEqual(text)

    /** The vector with something wrong. */
    const opens = (wrong: { nonce?: Uint8Array; associated?: Uint8Array; bytes?: Uint8Array; key?: Uint8Array }) => {
      const given = Uint8Array.from(wrong.bytes ?? expected)
      const opened = native.aeadOpenBytes(
        suite,
        wrong.key ?? key,
        wrong.nonce ?? nonce,
        wrong.associated ?? associated,
        given,
      )
      if (!opened)
        expect(
          given.subarray(0, -16).every((byte) => byte === 0),
          'nothing of the text is left',
        ).toBe(true)
      return opened
    }
    const flipped = (from: Uint8Array, at: number) => from.map((byte, i) => (i === at ? byte ^ 0x80 : byte))
    expect(opens({})).toBe(true)
    for (let at = 0; at < 16; at++)
      expect(opens({ bytes: flipped(expected, sealed.length + at) }), `tag ${at}`).toBe(false)
    expect(opens({ bytes: Uint8Array.from([...sealed, ...new Uint8Array(16)]) }), 'no tag').toBe(false)
    if (sealed.length > 0) expect(opens({ bytes: expected.subarray(0, -1) }), 'a byte less').toBe(false)
    expect(opens({ associated: Uint8Array.from([...associated, 0]) }), 'more associated data').toBe(false)
    if (associated.length > 0) expect(opens({ associated: NONE }), 'no associated data').toBe(false)
    expect(opens({ nonce: flipped(nonce, 11) }), 'another nonce').toBe(false)
    expect(opens({ key: flipped(key, 0) }), 'another key').toBe(false)
  })

  test.each(SUITES)(
    '%s of nothing but associated data is the tag that node:crypto makes',
    (_name, suite, keyBytes, cipher) => {
      const [key, nonce] = [pattern(keyBytes, 1), pattern(12, 2)]
      for (const length of [1, 15, 16, 17, 64, 1000]) {
        const associated = pattern(length, 3)
        const other = createCipheriv(cipher as 'aes-128-gcm', key, nonce, { authTagLength: 16 })
        other.setAAD(associated)
        other.final()
        const tag = new Uint8Array(16)
        native.aeadSealBytes(suite, key, nonce, associated, tag)
        expect(tag).toEqual(new Uint8Array(other.getAuthTag()))
        expect(native.aeadOpenBytes(suite, key, nonce, associated, tag)).toBe(true)
      }
    },
  )

  test('keys, nonces and texts of wrong sizes throw', () => {
    const [key, nonce, bytes] = [new Uint8Array(16), new Uint8Array(12), new Uint8Array(16)]
    expect(() => native.aeadSealBytes(0, new Uint8Array(15), nonce, NONE, bytes)).toThrow(/15 bytes/)
    expect(() => native.aeadSealBytes(1, key, nonce, NONE, bytes)).toThrow(/16 bytes/)
    expect(() => native.aeadSealBytes(3 as 0, key, nonce, NONE, bytes)).toThrow(RangeError)
    expect(() => native.aeadOpenBytes(0, key, new Uint8Array(11), NONE, bytes)).toThrow(/nonce has 11/)
    expect(() => native.aeadOpenBytes(0, key, nonce, NONE, new Uint8Array(15))).toThrow(/bytes has 15/)
  })
})

/** Those of packets: the last one only signs. */
const PACKET_SUITES: readonly [string, 0 | 1 | 2 | 3, number][] = [
  ...SUITES.map(([name, suite, keyBytes]): [string, 0 | 1 | 2, number] => [name, suite, keyBytes]),
  ['Poly1305', 3, 32],
]

const PAIRS = usableAeadBackends.flatMap((one) => usableAeadBackends.map((other) => [one, other] as const))

describe.each(PAIRS)('sealed by %s, opened by %s', (one, other) => {
  afterEach(() => native.aeadUse('auto'))

  test.each(PACKET_SUITES)('%s: each bit of header, body and tag counts', (_name, suite, keyBytes) => {
    const owner = native.ownerOpen()
    const memory = packetMemory(700, 256, 64, 64)
    const id = native.memoryOpen(memory)
    const [sealing, opening] = [one, other].map((backend) => {
      native.aeadUse(backend)
      return native.aeadOpen(owner, suite, pattern(keyBytes, 9), SALT)
    }) as [number, number]
    for (const length of [0, 1, 16, 33]) {
      const first = Int32Array.of(packetOf(memory, pattern(length, 1)))
      native.aeadSeal(sealing, id, first, 1, Float64Array.of(2 ** 40 + length), new Int32Array(1), false)
      const sealed = bytesOf(memory, first[0]!)
      const wrong = Array.from({ length: sealed.length * 8 }, (_, bit) =>
        sealed.map((byte, i) => (i === bit >> 3 ? byte ^ (1 << (bit & 7)) : byte)),
      )
      wrong.push(sealed.slice(0, -1), sealed.slice(0, 31), sealed.slice(0, 16), NONE)
      const handles = Int32Array.from([...wrong, sealed], (bytes) => packetOf(memory, bytes))
      const isForeign = (i: number) => i < 8 * SALT.length
      expect(openPackets(opening, id, handles)).toEqual([
        ...wrong.map((bytes, i) => (bytes.length < 32 ? 'malformed' : isForeign(i) ? 'foreign' : 'forged')),
        'opened',
      ])
      for (const [i, bytes] of wrong.entries()) {
        if (!isForeign(i)) continue
        const other = native.aeadOpen(owner, suite, pattern(keyBytes, 9), bytes.slice(0, 8))
        expect(openPackets(other, id, handles.subarray(i, i + 1))).toEqual(['forged'])
        native.close(other)
      }
      expect(bytesOf(memory, handles.at(-1)!)).toEqual(pattern(length, 1))
      for (const [i, bytes] of wrong.entries()) {
        if (suite === 3 || bytes.length !== sealed.length) continue
        const left = bytesOf(memory, handles[i]!).subarray(16, -16)
        // A counter that no encrypter has is refused before anything is decrypted.
        const untried = bytes[8] !== 0 || bytes[9]! >= 0x20
        expect(left).toEqual(untried ? bytes.subarray(16, -16) : new Uint8Array(length))
      }
      memory.free.fill(0)
      memory.free[0] = 700
    }
    native.ownerRelease(owner)
    native.memoryClose(id)
  })
})
