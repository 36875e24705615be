/** ChaCha: the vectors of RFC 8439, OpenSSL, a reference of a few lines, and every kernel on every length and place. */
import { createCipheriv } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { chacha } from '../../../test/harness/chacha.ts'
import { bytesOf, packetMemory, packetOf, pattern } from './fixture.ts'
import { native } from './native.ts'

const CONSTANT = new TextEncoder().encode('expand 32-byte k')
const SALT = Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8)
const hex = (text: string) => new Uint8Array(Buffer.from(text.replace(/\s/g, ''), 'hex'))
const fastest = native.chachaKernel()

let owner = 0
beforeEach(() => {
  owner = native.ownerOpen()
})
afterEach(() => {
  native.chachaUse(fastest)
  native.ownerRelease(owner)
  expect(native.openDescriptors()).toBe(0)
})

/** The first `bytes` bytes of the stream of packet `counter`. */
function stream(
  bytes: number,
  key: Uint8Array,
  nonce: Uint8Array,
  constant: Uint8Array = CONSTANT,
  rounds = 20,
  counter = 0,
) {
  const memory = packetMemory(1, 4096)
  const id = native.memoryOpen(memory)
  const cipher = native.chachaOpen(owner, key, nonce, constant, rounds)
  const handles = Int32Array.of(packetOf(memory, new Uint8Array(bytes)))
  expect(native.chachaEncrypt(cipher, id, handles, 1, SALT, Float64Array.of(counter), new Int32Array(1))).toBe(0)
  const made = bytesOf(memory, handles[0]!).subarray(16)
  native.close(cipher)
  native.memoryClose(id)
  return made
}

test('the fastest kernel is in use and the last one is portable', () => {
  expect(native.chachaKernels()[0]).toBe(fastest)
  expect(native.chachaKernels().at(-1)).toBe('portable')
  if (process.arch === 'x64') expect(native.chachaKernels()).toContain('sse2')
  expect(() => native.chachaUse('abacus')).toThrow(/abacus/)
})

const KEY = pattern(32, 1)
/** 32 bytes that count from 0, the key of the RFC's examples. */
const COUNTING = Uint8Array.from({ length: 32 }, (_, i) => i)

describe.each(native.chachaKernels())('%s', (kernel) => {
  beforeEach(() => native.chachaUse(kernel))

  test('is the kernel in use', () => expect(native.chachaKernel()).toBe(kernel))

  test('makes the block of RFC 8439, section 2.3.2', () => {
    // The RFC counts its block 1: it is the second of a packet.
    expect(stream(128, COUNTING, hex('000000090000004a00000000')).subarray(64)).toEqual(
      hex(`10f1e7e4 d13b5915 500fdd1f a32071c4 c7d1f4c7 33c06803 0422aa9a c3d46c4e
           d2826446 079faa09 14c2d705 d98b02a2 b5129cd1 de164eb9 cbd083e8 a2503c4e`),
    )
  })

  test('encrypts as RFC 8439, section 2.4.2', () => {
    const text =
      "Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, sunscreen would be it."
    const plain = new Uint8Array(64 + text.length)
    plain.set(new TextEncoder().encode(text), 64)
    const key = stream(plain.length, COUNTING, hex('000000000000004a00000000'))
    expect(plain.map((byte, i) => byte ^ key[i]!).subarray(64)).toEqual(
      hex(`6e2e359a 2568f980 41ba0728 dd0d6981 e97e7aec 1d4360c2 0a27afcc fd9fae0b
           f91b65c5 524733ab 8f593dab cd62b357 1639d624 e65152ab 8f530c35 9f0861d8
           07ca0dbf 500d6a61 56a38e08 8a22b65e 52bc514d 16ccf806 818ce91a b7793736
           5af90bbf 74a35be6 b40b8eed f2785e42 874d`),
    )
  })

  test('has the key streams of 8, 12 and 20 rounds of draft-strombergson-chacha-test-vectors (TC1, keys of 256 bits)', () => {
    const zero = (rounds: number) => stream(64, new Uint8Array(32), new Uint8Array(12), CONSTANT, rounds)
    expect(zero(8)).toEqual(
      hex(`3e00ef2f 895f40d6 7f5bb8e8 1f09a5a1 2c840ec3 ce9a7f3b 181be188 ef711a1e
           984ce172 b9216f41 9f445367 456d5619 314a42a3 da86b001 387bfdb8 0e0cfe42`),
    )
    expect(zero(12)).toEqual(
      hex(`9bf49a6a 0755f953 811fce12 5f2683d5 0429c3bb 49e07414 7e0089a5 2eae155f
           0564f879 d27ae3c0 2ce82834 acfa8c79 3a629f2c a0de6919 610be82f 411326be`),
    )
    expect(zero(20)).toEqual(
      hex(`76b8e0ad a0f13d90 405d6ae5 5386bd28 bdd219b8 a08ded1a a836efcc 8b770dc7
           da41597c 5157488d 7724e03f b8d84a37 6a43b8f4 1518a11c c387b669 b2ee6586`),
    )
  })

  test.each([8, 10, 12, 14, 16, 18, 20])('agrees with the reference at %i rounds and any constant', (rounds) => {
    for (let seed = 0; seed < 3; seed++) {
      const [key, nonce, constant] = [pattern(32, seed), pattern(12, seed + 50), pattern(16, seed + 90)]
      expect(stream(1000, key, nonce, constant, rounds)).toEqual(chacha(key, nonce, 1000, 0, rounds, constant))
    }
  })

  test('agrees with OpenSSL, the packet counter XORed into the nonce', () => {
    for (const counter of [0, 1, 255, 2 ** 32 - 1, 2 ** 32, 2 ** 53 - 2]) {
      const nonce = Buffer.from(pattern(12, counter % 97))
      const own = Buffer.from(nonce)
      own.writeBigUInt64BE(own.readBigUInt64BE(4) ^ BigInt(counter), 4)
      const openssl = createCipheriv('chacha20', KEY, Buffer.concat([Buffer.alloc(4), own]))
      const expected = new Uint8Array(openssl.update(new Uint8Array(2000)))
      expect(stream(2000, KEY, nonce, CONSTANT, 20, counter)).toEqual(expected)
    }
  })

  test('every length from 0 to 1,100 at every place, together in batches, as the portable kernel does, and nothing else is touched', () => {
    const nonce = pattern(12, 3)
    const sizes = Array.from({ length: 1101 }, (_, size) => size)
    // Neighbours in a batch are of very different lengths, so that blocks of several packets share a call of the kernel.
    const order = sizes.map((_, i) => (i * 389) % sizes.length)
    const results = [kernel, 'portable'].map((one) => {
      native.chachaUse(one)
      const memory = packetMemory(sizes.length, 1408)
      memory.data.set(pattern(memory.data.length, 4))
      const id = native.memoryOpen(memory)
      const cipher = native.chachaOpen(owner, KEY, nonce, CONSTANT, 12)
      const handles = Int32Array.from(order, (size) => packetOf(memory, pattern(size, size)))
      handles.forEach((handle, i) => {
        const from = memory.offset[handle]!
        memory.offset[handle]! += i % 71
        memory.data.copyWithin(memory.offset[handle]!, from, from + memory.length[handle]!)
      })
      const before = memory.data.slice()
      const counter = Float64Array.of(2 ** 32 - 500)
      for (let at = 0, batch = 1; at < handles.length; at += batch, batch = (batch * 7) % 263) {
        const part = handles.subarray(at, at + batch)
        expect(native.chachaEncrypt(cipher, id, part, part.length, SALT, counter, new Int32Array(part.length))).toBe(0)
      }
      expect(counter[0]).toBe(2 ** 32 - 500 + sizes.length)
      const cipherText = memory.data.slice()
      for (let at = 0; at < handles.length; at += 100) {
        const part = handles.subarray(at, at + 100)
        expect(native.chachaDecrypt(cipher, id, part, part.length, new Int32Array(part.length))).toBe(0)
      }
      for (const [i, handle] of handles.entries()) {
        expect(memory.length[handle]).toBe(order[i])
        before.set(cipherText.subarray(memory.offset[handle]! - 16, memory.offset[handle]), memory.offset[handle]! - 16)
      }
      expect(Buffer.compare(memory.data, before), 'what was there, and the headers').toBe(0)
      native.close(cipher)
      native.memoryClose(id)
      return cipherText
    })
    expect(Buffer.compare(results[0]!, results[1]!)).toBe(0)
  })
})

test('a train is decrypted where it lies, and moves to its own slot to be encrypted', () => {
  const memory = packetMemory(4, 2048, 128, 64, 1)
  const id = native.memoryOpen(memory)
  const cipher = native.chachaOpen(owner, KEY, pattern(12, 3), CONSTANT, 20)
  const handles = Int32Array.from([0, 1, 2], (i) => packetOf(memory, pattern(700 + i, i)))
  const plain = [...handles].map((handle) => bytesOf(memory, handle))
  expect(native.chachaEncrypt(cipher, id, handles, 3, SALT, Float64Array.of(5), new Int32Array(3))).toBe(0)
  const wire = [...handles].map((handle) => bytesOf(memory, handle))
  let at = 4 * 2048
  memory.trainFree[0] = 0
  memory.trainReferences[0] = 3
  handles.forEach((handle, i) => {
    memory.data.set(wire[i]!, at)
    memory.offset[handle] = at
    memory.train[handle] = 1
    at += wire[i]!.length
  })
  expect(native.chachaDecrypt(cipher, id, handles, 3, new Int32Array(3))).toBe(0)
  expect([...handles].map((handle) => bytesOf(memory, handle))).toEqual(plain)
  expect([...memory.train.subarray(0, 3)]).toEqual([1, 1, 1])
  expect(native.chachaEncrypt(cipher, id, handles, 3, SALT, Float64Array.of(5), new Int32Array(3))).toBe(0)
  expect([...handles].map((handle) => bytesOf(memory, handle))).toEqual(wire)
  expect([...memory.train.subarray(0, 3), memory.trainFree[0]]).toEqual([0, 0, 0, 1])
  native.memoryClose(id)
})

test('packets without headroom, without a header or with a counter that no encrypter has are left alone and named', () => {
  const memory = packetMemory(8, 256, 16, 16)
  const id = native.memoryOpen(memory)
  const cipher = native.chachaOpen(owner, KEY, pattern(12, 3), CONSTANT, 20)
  const handles = Int32Array.from([0, 1, 2], (i) => packetOf(memory, pattern(100, i)))
  memory.offset[handles[1]!]! -= 1
  const left = bytesOf(memory, handles[1]!)
  const failed = new Int32Array(3)
  const counter = Float64Array.of(7)
  expect(native.chachaEncrypt(cipher, id, handles, 3, SALT, counter, failed)).toBe(1)
  expect([...failed]).toEqual([1, 0, 0])
  expect(counter[0]).toBe(9)
  expect(bytesOf(memory, handles[1]!)).toEqual(left)

  const wire = bytesOf(memory, handles[0]!)
  const far = wire.slice()
  far.set([0, 0x20, 0, 0, 0, 0, 0, 0], 8)
  const list = Int32Array.from([wire.subarray(0, 15), far, wire, wire.subarray(0, 16)], (bytes) =>
    packetOf(memory, bytes),
  )
  const named = new Int32Array(4)
  expect(native.chachaDecrypt(cipher, id, list, 4, named)).toBe(2)
  expect([...named.subarray(0, 2)]).toEqual([0, 1])
  expect(bytesOf(memory, list[1]!)).toEqual(far)
  expect(bytesOf(memory, list[2]!)).toEqual(pattern(100, 0))
  expect(bytesOf(memory, list[3]!)).toEqual(new Uint8Array(0))
  native.memoryClose(id)
})

test('wrong keys, nonces, constants, rounds and counters throw', () => {
  const memory = packetMemory(4)
  const id = native.memoryOpen(memory)
  const [nonce, short] = [new Uint8Array(12), new Uint8Array(11)]
  expect(() => native.chachaOpen(owner, new Uint8Array(31), nonce, CONSTANT, 20)).toThrow(/key has 31/)
  expect(() => native.chachaOpen(owner, KEY, short, CONSTANT, 20)).toThrow(/nonce has 11/)
  expect(() => native.chachaOpen(owner, KEY, nonce, short, 20)).toThrow(/constant has 11/)
  for (const rounds of [0, 6, 7, 9, 19, 21, 22, 8.5]) {
    expect(() => native.chachaOpen(owner, KEY, nonce, CONSTANT, rounds)).toThrow(/rounds/)
  }
  const cipher = native.chachaOpen(owner, KEY, nonce, CONSTANT, 8)
  const list = Int32Array.of(packetOf(memory, pattern(5, 1)))
  for (const wrong of [-1, 0.5, 2 ** 53, Number.NaN, Number.POSITIVE_INFINITY]) {
    expect(() => native.chachaEncrypt(cipher, id, list, 1, SALT, Float64Array.of(wrong), new Int32Array(1))).toThrow(
      RangeError,
    )
  }
  expect(bytesOf(memory, list[0]!)).toEqual(pattern(5, 1))
  native.memoryClose(id)
})
