/** ssl_poly1305_signer and ssl_poly1305_checker: the tag of RFC 8439, restarts, another secret; what all pairs share is in pairs.test.ts. */
import { hkdfSync } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { aeadTag } from '../../../../test/harness/chacha.ts'
import { type Bench, drive, payload, type Refused, tagOf } from '../../../../test/harness/component.ts'

const SECRET = '000102030405060708090a0b0c0d0e0ff0f1f2f3f4f5f6f7f8f9fafbfcfdfeff'

const signer = (shared_secret = SECRET, seed = 1) =>
  drive({ sign: { ssl_poly1305_signer: { input: 'in', output: 'out', shared_secret } } }, { seed })
const checker = (shared_secret = SECRET) =>
  drive({ check: { ssl_poly1305_checker: { input: 'in', output: 'out', shared_secret } } })
const bytesOut = (bench: Bench, name = 'out') => bench.take(name).map(({ bytes }) => bytes)
const some = (count: number, bytes = 100) => Array.from({ length: count }, (_, i) => payload(bytes + (i % 50), i))

/** What `seed`'s signer makes of `payloads`. */
function signed(payloads: Uint8Array[], seed = 1): Uint8Array[] {
  const bench = signer(SECRET, seed)
  bench.send('in', payloads)
  const out = bytesOut(bench)
  bench.stop()
  return out
}

describe('ssl_poly1305_signer', () => {
  it('leaves the payload in clear behind salt and counter, before the tag of RFC 8439 under a key of its run', () => {
    const plain = [...some(5, 1200), payload(0), payload(1)]
    const out = signed(plain)
    const salt = out[0].subarray(0, 8)
    const key = new Uint8Array(hkdfSync('sha256', Buffer.from(SECRET, 'hex'), salt, 'penstock ssl_poly1305', 32))
    out.forEach((packet, i) => {
      expect(packet.subarray(0, 8)).toEqual(salt)
      expect(new DataView(packet.buffer).getBigUint64(8)).toBe(BigInt(i))
      expect(packet.subarray(16, -16)).toEqual(plain[i])
      const nonce = Uint8Array.from([0, 0, 0, 0, ...packet.subarray(8, 16)])
      expect(packet.subarray(-16)).toEqual(aeadTag(key, nonce, packet.subarray(0, -16), new Uint8Array(0)))
    })
    expect(signed(plain, 2)[0].subarray(0, 8)).not.toEqual(salt)
  })

  it('takes a secret of 32 bytes, and does not tell a wrong one', () => {
    const problems = (secret?: string) => {
      try {
        drive({ sign: { ssl_poly1305_signer: { input: 'in', output: 'out', shared_secret: secret } } }).stop()
        return []
      } catch (error) {
        return (error as Refused).problems.map(({ pointer, message }) => `${pointer.split('signer')[1]} ${message}`)
      }
    }
    expect(problems(SECRET)).toEqual([])
    expect(problems(`base64:${Buffer.alloc(32, 7).toString('base64')}`)).toEqual([])
    const wanted = '/shared_secret must be a key of 32 bytes: 64 hex digits, or base64:…'
    for (const wrong of ['', SECRET.slice(2), 'base64:AAAA', 'secret']) expect(problems(wrong)).toEqual([wanted])
    expect(problems()).toEqual(['/shared_secret required field "shared_secret" is missing'])
  })
})

describe('ssl_poly1305_checker', () => {
  it('follows a restarted signer beside its former self, and none with another secret, of which the log tells', () => {
    const [one, two] = [signed(some(40, 4), 1), signed(some(40, 4), 2)]
    const bench = checker()
    bench.send(
      'in',
      one.flatMap((bytes, i) => [bytes, two[i]]),
    )
    expect(bytesOut(bench).map(tagOf)).toEqual(Array.from({ length: 80 }, (_, i) => i >> 1))
    expect(bench.metrics().check.known_runs).toBe(2)
    bench.stop()
    const other = checker('ff'.repeat(32))
    other.send('in', one, { remote: '192.0.2.7:5000' })
    expect(bytesOut(other)).toEqual([])
    expect(other.metrics().check).toMatchObject({ authentication_failures: 40, known_runs: 0 })
    expect(other.log.filter(({ level }) => level === 'WARN').map(({ message }) => message)).toEqual([
      'nothing that the sender at 192.0.2.7:5000 signs can be opened: it has another key or suite, or something on the way alters packets',
    ])
    other.stop()
  })

  it("tells of a peer with another secret whatever strangers' junk came before, and in one line a minute of all of it", () => {
    const bench = checker()
    const junk = (salt: number) => Uint8Array.from({ length: 60 }, (_, i) => (i < 8 ? salt : i))
    for (let salt = 1; salt <= 80; salt++) {
      bench.advance(10e6)
      bench.send('in', [junk(salt), junk(salt), junk(salt)], { remote: `198.51.100.${salt}:9` })
    }
    const peer = signed(some(20, 4)).map((bytes) => Uint8Array.from(bytes, (byte, i) => (i < 16 ? byte : byte ^ 1)))
    bench.send('in', peer, { remote: '192.0.2.7:5000' })
    // Somebody whose packets arrive after all is not told of.
    const right = signed(some(4), 2)
    const damaged = right.slice(0, 3).map((bytes) => Uint8Array.from(bytes, (byte, i) => (i === 20 ? byte ^ 1 : byte)))
    bench.send('in', [...damaged, right[3]], { remote: '192.0.2.8:5000' })
    const warnings = () => bench.log.filter(({ level }) => level === 'WARN').map(({ message }) => message)
    expect(warnings()).toHaveLength(1)
    bench.advance(60e9)
    bench.metrics()
    const cause = 'it has another key or suite, or something on the way alters packets'
    expect(warnings()).toEqual([
      `nothing that the sender at 198.51.100.1:9 signs can be opened: ${cause}`,
      `nothing that the sender at 192.0.2.7:5000 signs can be opened: ${cause}; so it is with 79 other senders`,
    ])
    // Of those that have gone since there is nothing more to say.
    for (let minute = 0; minute < 5; minute++) {
      bench.advance(60e9)
      bench.metrics()
    }
    expect(warnings()).toHaveLength(2)
    bench.stop()
  })

  it('takes nothing that an encrypter made with the same key', () => {
    const suite = { chacha20_poly1305_sha_256: { key: SECRET } }
    const encrypter = drive({ enc: { ssl_encrypt: { input: 'in', output: 'out', ...suite } } })
    encrypter.send('in', some(10))
    const bench = checker()
    bench.send('in', bytesOut(encrypter))
    expect(bytesOut(bench)).toEqual([])
    expect(bench.metrics().check.authentication_failures).toBe(10)
    encrypter.stop()
    bench.stop()
  })
})
