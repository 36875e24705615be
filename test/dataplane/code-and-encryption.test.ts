/** A code inside and around the encryption, and an attacker who alters copies of what passes: what docs/choosing-a-code.md says of both. */
import { describe, expect, it } from 'vitest'
import { drive, type Pipeline, payload, tagOf } from '../harness/component.ts'

const PACKETS = 2000
const CIPHER = { aes_128_gcm_sha_256: { key: '000102030405060708090a0b0c0d0e0f' } }
const CODES = [
  ['reed_solomon', { symbols: 10, repair: 4 }],
  ['rlnc', { symbols: 10, repair: 4 }],
  ['rely', { repair_target_rate: 0.4, max_payloads: 20 }],
] as const
const SENT = Array.from({ length: PACKETS }, (_, i) => payload(200 + (i % 100), i))

type Place = 'inside' | 'around'

/** Components that are given `in`, one after the other, to `out`. */
function chain(...links: [key: string, fields: object][]): Pipeline {
  const point = (i: number) => (i === 0 ? 'in' : i === links.length ? 'out' : `point${i}`)
  return Object.fromEntries(
    links.map(([key, fields], i) => [key, { [key]: { input: point(i), output: point(i + 1), ...fields } }]),
  )
}

/** What comes out, in order, of packets of which one in 25 is lost and, of one in ten, an altered copy comes before it. */
function carried(code: string, fields: object, place: Place): { out: Uint8Array[]; refused: number } {
  const encode: [string, object] = [`${code}_encoder`, fields]
  const decode: [string, object] = [`${code}_decoder`, {}]
  const encrypt: [string, object] = ['ssl_encrypt', CIPHER]
  const decrypt: [string, object] = ['ssl_decrypt', CIPHER]
  const sender = drive(place === 'inside' ? chain(encode, encrypt) : chain(encrypt, encode), { seed: 1 })
  const receiver = drive(place === 'inside' ? chain(decrypt, decode) : chain(decode, decrypt), { seed: 1 })
  for (let i = 0; i < PACKETS; i += 50) sender.send('in', SENT.slice(i, i + 50))
  const wire = sender.take('out').map(({ bytes }) => bytes)
  for (const [i, bytes] of wire.entries()) {
    if (i % 10 === 3) {
      const forged = Uint8Array.from(bytes)
      forged[bytes.length - 40] ^= 1
      receiver.send('in', [forged])
    }
    if (i % 25 !== 7) receiver.send('in', [bytes])
  }
  const out = receiver.take('out').map(({ bytes }) => bytes)
  const refused = receiver.metrics().ssl_decrypt.authentication_failures
  sender.stop()
  receiver.stop()
  return { out, refused }
}

describe.each(CODES)('%s', (code, fields) => {
  it('inside: what an attacker sends costs nothing', () => {
    const { out, refused } = carried(code, fields, 'inside')
    expect(out.map(tagOf).sort((a, b) => a - b)).toEqual(SENT.map(tagOf))
    expect(refused).toBeGreaterThan(PACKETS / 10)
  })

  it('around: it costs packets, and nothing comes out that was not sent', () => {
    const { out, refused } = carried(code, fields, 'around')
    expect(refused).toBeGreaterThan(0)
    expect(out.length).toBeLessThan(PACKETS)
    expect(new Set(out.map(tagOf)).size).toBe(out.length)
    expect(out.filter((bytes) => Buffer.compare(bytes, SENT[tagOf(bytes)]) !== 0)).toEqual([])
  })
})
