/** ChaCha and Poly1305 as RFC 8439 writes them, for tests to compare with: short, and slow. */

const left = (x: number, by: number) => ((x << by) | (x >>> (32 - by))) >>> 0

/** Section 2.1, on the words `a`, `b`, `c`, `d` of a block. */
function quarterRound(v: Uint32Array, a: number, b: number, c: number, d: number): void {
  const step = (x: number, y: number, z: number, by: number) => {
    v[x] += v[y]
    v[z] = left(v[z] ^ v[x], by)
  }
  step(a, b, d, 16)
  step(c, d, b, 12)
  step(a, b, d, 8)
  step(c, d, b, 7)
}

/** `bytes` bytes of key stream from the block `counter` on (section 2.3); the key has 32 bytes, the nonce 12, the constant 16. */
export function chacha(
  key: Uint8Array,
  nonce: Uint8Array,
  bytes: number,
  counter = 0,
  rounds = 20,
  constant: Uint8Array = new TextEncoder().encode('expand 32-byte k'),
): Uint8Array {
  const stream = new Uint8Array(Math.ceil(bytes / 64) * 64)
  const state = new Uint8Array([...constant, ...key, 0, 0, 0, 0, ...nonce])
  const first = Uint32Array.from({ length: 16 }, (_, i) => new DataView(state.buffer).getUint32(4 * i, true))
  for (let block = 0; block * 64 < bytes; block++) {
    first[12] = counter + block
    const v = first.slice()
    for (let round = 0; round < rounds; round += 2) {
      for (let i = 0; i < 4; i++) quarterRound(v, i, 4 + i, 8 + i, 12 + i)
      for (let i = 0; i < 4; i++) quarterRound(v, i, 4 + ((i + 1) % 4), 8 + ((i + 2) % 4), 12 + ((i + 3) % 4))
    }
    v.forEach((word, i) => {
      new DataView(stream.buffer).setUint32(block * 64 + 4 * i, word + first[i], true)
    })
  }
  return stream.slice(0, bytes)
}

const little = (bytes: Uint8Array) => bytes.reduceRight((sum, byte) => sum * 256n + BigInt(byte), 0n)
const bytesOf = (value: bigint, count: number) =>
  Uint8Array.from({ length: count }, (_, i) => Number((value >> BigInt(8 * i)) & 255n))

/** The tag of `message` under a key of 32 bytes (section 2.5). */
export function poly1305(key: Uint8Array, message: Uint8Array): Uint8Array {
  const r = little(key.subarray(0, 16)) & 0x0ffffffc0ffffffc0ffffffc0fffffffn
  let sum = 0n
  for (let at = 0; at < message.length; at += 16) {
    sum = ((sum + little(Uint8Array.from([...message.subarray(at, at + 16), 1]))) * r) % (2n ** 130n - 5n)
  }
  return bytesOf(sum + little(key.subarray(16)), 16)
}

/** The tag of AEAD_CHACHA20_POLY1305 (section 2.8). */
export function aeadTag(
  key: Uint8Array,
  nonce: Uint8Array,
  associated: Uint8Array,
  cipherText: Uint8Array,
): Uint8Array {
  const padded = (bytes: Uint8Array) => [...bytes, ...new Uint8Array(-bytes.length & 15)]
  const lengths = [associated, cipherText].flatMap(({ length }) => [...bytesOf(BigInt(length), 8)])
  const message = Uint8Array.from([...padded(associated), ...padded(cipherText), ...lengths])
  return poly1305(chacha(key, nonce, 32), message)
}
