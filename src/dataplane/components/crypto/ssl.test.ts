/** ssl_encrypt and ssl_decrypt: every suite, node:crypto as the other end, replay, restarts, floods of salts; what all pairs share is in pairs.test.ts. */
import { createDecipheriv, hkdfSync } from 'node:crypto'
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Bench, drive, payload, type Refused, tagOf } from '../../../../test/harness/component.ts'
import { REPLAY_WINDOW } from '../../native/cipher-calls.ts'
import { native } from '../../native/native.ts'
import { MAX_SALTS, MIN_OPENED_TO_STAY } from './aead-receiver.ts'
import { sslDecrypt } from './ssl-decrypt.ts'
import { MAX_TRIALS_AT_ONCE, MAX_TRIALS_PER_SECOND } from './trials.ts'

const KEY16 = '000102030405060708090a0b0c0d0e0f'
const KEY32 = `${KEY16}f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff`
const SUITES = [
  ['aes_128_gcm_sha_256', KEY16, 'aes-128-gcm'],
  ['aes_256_gcm_sha_384', KEY32, 'aes-256-gcm'],
  ['chacha20_poly1305_sha_256', KEY32, 'chacha20-poly1305'],
] as const
const AES = { aes_128_gcm_sha_256: { key: KEY16 } }

const encrypter = (suite: object = AES, seed = 1) =>
  drive({ enc: { ssl_encrypt: { input: 'in', output: 'out', ...suite } } }, { seed })
const decrypter = (suite: object = AES) => drive({ dec: { ssl_decrypt: { input: 'in', output: 'out', ...suite } } })
const bytesOut = (bench: Bench) => bench.take('out').map(({ bytes }) => bytes)
const bytesOut2 = (bench: Bench) => bench.take('out2').map(({ bytes }) => bytes)
/** Their tags count from 0, their lengths vary. */
const some = (count: number, bytes = 100) => Array.from({ length: count }, (_, i) => payload(bytes + (i % 50), i))

/** What `seed`'s encrypter makes of `payloads`. */
function sealed(payloads: Uint8Array[], seed = 1, suite: object = AES): Uint8Array[] {
  const bench = encrypter(suite, seed)
  bench.send('in', payloads)
  const out = bytesOut(bench)
  bench.stop()
  return out
}

/** What `count` encrypters of another node make of `payloads` each. */
function sealedByEach(count: number, payloads: Uint8Array[]): Uint8Array[][] {
  const names = Array.from({ length: count }, (_, i) => `${i}`)
  const chain = names.map((i) => [`enc${i}`, { ssl_encrypt: { input: `in${i}`, output: `out${i}`, ...AES } }])
  const bench = drive(Object.fromEntries(chain), { seed: 1 })
  const out = names.map((i) => {
    bench.send(`in${i}`, payloads)
    return bench.take(`out${i}`).map(({ bytes }) => bytes)
  })
  bench.stop()
  return out
}

describe.each(SUITES)('%s', (name, key, cipher) => {
  const suite = { [name]: { key } }

  it('is opened by node:crypto', () => {
    const plain = [...some(5, 1200), payload(0)]
    const out = sealed(plain, 1, suite)
    const salt = out[0].subarray(0, 8)
    const derived = new Uint8Array(
      hkdfSync('sha256', Buffer.from(key, 'hex'), salt, `penstock ${name}`, key.length / 2),
    )
    out.forEach((packet, i) => {
      expect(packet.length).toBe(plain[i].length + 32)
      expect(packet.subarray(0, 8)).toEqual(salt)
      expect(new DataView(packet.buffer).getBigUint64(8)).toBe(BigInt(i))
      const nonce = Uint8Array.from([0, 0, 0, 0, ...packet.subarray(8, 16)])
      const open = createDecipheriv(cipher as 'aes-128-gcm', derived, nonce, { authTagLength: 16 })
      open.setAAD(packet.subarray(0, 16))
      open.setAuthTag(packet.subarray(-16))
      const text = Buffer.concat([open.update(packet.subarray(16, -16)), open.final()])
      expect(new Uint8Array(text)).toEqual(plain[i])
    })
  })
})

describe('ssl_encrypt', () => {
  it('takes exactly one suite, with a key of its length', () => {
    const problems = (suite: object) => {
      try {
        encrypter(suite).stop()
        return null
      } catch (error) {
        return (error as Refused).problems.map(
          ({ pointer, message }) => `${pointer.split('ssl_encrypt')[1]} ${message}`,
        )
      }
    }
    expect(problems(AES)).toBeNull()
    expect(problems({ aes_128_gcm_sha_256: { key: `base64:${Buffer.alloc(16, 7).toString('base64')}` } })).toBeNull()
    expect(problems({})?.[0]).toContain('exactly one of')
    expect(problems({ ...AES, chacha20_poly1305_sha_256: { key: KEY32 } })?.[0]).toContain('found aes_128')
    expect(problems({ aes_128_gcm_sha_256: { key: KEY32 } })?.[0]).toContain('/aes_128_gcm_sha_256/key')
    expect(problems({ aes_256_gcm_sha_384: { key: KEY16 } })?.join()).not.toContain(KEY16)
    expect(problems({ aes_256_gcm_sha_384: {} })?.[0]).toContain('missing')
  })

  it('never uses a nonce under the same key twice, over runs and batches', () => {
    const seen = new Set<string>()
    for (let seed = 1; seed <= 5; seed++) {
      const bench = encrypter(AES, seed)
      for (let n = 0; n < 3; n++) bench.send('in', some(200, 4))
      for (const bytes of bytesOut(bench)) seen.add(Buffer.from(bytes.subarray(0, 16)).toString('hex'))
      bench.stop()
    }
    expect(seen.size).toBe(5 * 600)
  })

  it.each([12, 128])('has room for header and tag %i times over', (count) => {
    const chain = Object.fromEntries(
      Array.from({ length: count }, (_, n) => [
        `enc${n}`,
        { ssl_encrypt: { input: `c${n}`, output: `c${n + 1}`, ...AES } },
      ]),
    )
    const bench = drive(chain)
    bench.send('c0', [payload(2048), payload(0)])
    const [first, second] = bench.take(`c${count}`).map(({ bytes }) => bytes.length)
    expect([first, second]).toEqual([2048 + 32 * count, 32 * count])
    expect(bench.metrics()[`enc${count - 1}`].no_room_packets).toBe(0)
    bench.stop()
  })
})

describe('ssl_decrypt', () => {
  it('lets every packet through once, in any order within the window', () => {
    const wire = sealed(some(3000, 4))
    fc.assert(
      fc.property(fc.infiniteStream(fc.nat(900)), fc.integer({ min: 1, max: 256 }), (random, chunk) => {
        const order = wire
          .flatMap((bytes, i) => {
            const once = { bytes, at: i + (random.next().value as number) }
            return i % 7 === 0 ? [once, { bytes, at: i + (random.next().value as number) }] : [once]
          })
          .sort((a, b) => a.at - b.at)
        const bench = decrypter()
        for (let at = 0; at < order.length; at += chunk) {
          bench.send(
            'in',
            order.slice(at, at + chunk).map(({ bytes }) => bytes),
          )
        }
        const tags = bytesOut(bench).map(tagOf)
        expect(tags).toHaveLength(3000)
        expect(new Set(tags).size).toBe(3000)
        expect(bench.metrics().dec.replayed_packets).toBe(Math.ceil(3000 / 7))
        bench.stop()
      }),
      { seed: 7, numRuns: 8 },
    )
  })

  it('has one window in code, page and wire format', () => {
    const said = REPLAY_WINDOW.toLocaleString('en')
    expect(REPLAY_WINDOW).toBe(1024)
    const page = `${sslDecrypt.details} ${sslDecrypt.metrics.replayed_packets.help}`
    const format = readFileSync(new URL('../../../../docs/wire-formats.md', import.meta.url), 'utf8')
    const wire = format.slice(format.indexOf('## AEAD packet'))
    for (const text of [page, wire]) expect(text.match(/\b1,02\d\b/g)).toEqual(text === page ? [said, said] : [said])
  })

  it('opens the newest 1,024 counters and none before', () => {
    const wire = sealed(some(1100, 4))
    const bench = decrypter()
    bench.send('in', [wire[1050], wire[26], wire[27], wire[27]])
    expect(bytesOut(bench).map(tagOf)).toEqual([1050, 27])
    expect(bench.metrics().dec.replayed_packets).toBe(2)
    bench.stop()
  })

  it('drops what is too short, and opens several runs and restarted senders side by side', () => {
    const bench = decrypter()
    const [one, two, three] = [1, 2, 3].map((seed) => sealed(some(40, 4), seed))
    const mixed = one.flatMap((bytes, i) => [bytes, two[i], bytes.slice(0, i % 32), three[i]])
    bench.send('in', mixed)
    expect(bytesOut(bench).map(tagOf)).toEqual(Array.from({ length: 120 }, (_, n) => Math.floor(n / 3)))
    expect(bench.metrics().dec).toMatchObject({ malformed_packets: 40, known_runs: 3, decrypted_packets: 120 })
    bench.send('in', [...one, ...two, ...three])
    expect(bench.metrics().dec.replayed_packets).toBe(120)
    bench.stop()
  })

  it('opens what comes from an encrypter of its own run inside the graph', () => {
    const bench = drive({
      enc: { ssl_encrypt: { input: 'in', output: 'a', ...AES } },
      slow: { delay_constant: { flows: [{ input: 'a', output: 'b' }], delay: 1 } },
      dec: { ssl_decrypt: { input: 'b', output: 'out', ...AES } },
      other: { ssl_encrypt: { input: 'in2', output: 'out2', ...AES } },
      far: { ssl_decrypt: { input: 'net', output: 'out3', ...AES } },
    })
    bench.send('in', some(20))
    bench.advance(1e6)
    expect(bench.take('out')).toHaveLength(20)
    bench.send('in2', some(20))
    bench.send('net', bytesOut2(bench))
    expect(bench.take('out3')).toEqual([])
    expect(bench.metrics()).toMatchObject({ dec: { reflected_packets: 0 }, far: { reflected_packets: 20 } })
    bench.stop()
  })

  it('shows a wrong key as what it is, at 10,000 packets a second too, and says so once, of one sender a minute', () => {
    const bench = decrypter({ aes_128_gcm_sha_256: { key: 'ff'.repeat(16) } })
    const wire = sealed(some(2000, 4))
    const other = sealed(some(100, 4), 2)
    for (let at = 0; at < 2000; at += 20) {
      bench.advance(2e6)
      bench.send('in', wire.slice(at, at + 20), { remote: '192.0.2.7:5000' })
    }
    for (const bytes of other) {
      bench.advance(2e6)
      bench.send('in', bytes, { remote: '192.0.2.8:5000' })
    }
    const { dec } = bench.metrics()
    expect(dec.authentication_failures).toBeGreaterThanOrEqual(2000)
    expect(dec.authentication_failures + dec.untried_packets).toBe(2100)
    const warnings = bench.log.filter(({ level }) => level === 'WARN')
    expect(warnings).toMatchObject([{ component: 'dec', fields: { address: '192.0.2.7:5000' } }])
    expect(warnings[0].message).toContain(
      'nothing that the sender at 192.0.2.7:5000 seals can be opened: it has another key',
    )
    bench.advance(60e9)
    bench.send('in', wire.slice(0, 20), { remote: '192.0.2.7:5000' })
    bench.metrics()
    bench.advance(300e9)
    bench.send('in', wire.slice(0, 20), { remote: '192.0.2.7:5000' })
    bench.metrics()
    const told = bench.log.filter(({ level }) => level === 'WARN').map(({ fields }) => fields)
    expect(told).toEqual([
      { address: '192.0.2.7:5000', others: 0 },
      { address: '192.0.2.8:5000', others: 0 },
    ])
    bench.stop()
  })

  it('says nothing of packets altered now and then, and still lets in whose first packets were forged', () => {
    const bench = decrypter()
    const wire = sealed(some(200, 4))
    const altered = wire.map((bytes) => Uint8Array.from(bytes, (byte, i) => (i === 20 ? byte ^ 1 : byte)))
    bench.send('in', [altered[0], altered[1]])
    bench.send(
      'in',
      wire.flatMap((bytes, i) => (i % 10 === 0 ? [bytes, altered[i]] : [bytes])),
    )
    expect(bytesOut(bench)).toHaveLength(200)
    expect(bench.metrics().dec).toMatchObject({ authentication_failures: 22, known_runs: 1 })
    expect(bench.log.filter(({ level }) => level === 'WARN')).toEqual([])
    bench.stop()
  })

  it('is not worn down by unknown salts: few are tried, none is admitted, and what is known goes on', () => {
    const wire = sealed(some(200, 4))
    const restarted = sealed(some(50, 4), 2)
    const bench = decrypter()
    const before = native.openDescriptors()
    bench.send('in', wire[0])
    let salt = 0
    const flood = () =>
      Array.from({ length: 100 }, () => {
        const forged = Uint8Array.from(wire[1])
        new DataView(forged.buffer).setUint32(0, ++salt)
        return forged
      })
    for (let n = 1; n < 200; n++) bench.send('in', [...flood(), wire[n]])
    expect(bytesOut(bench)).toHaveLength(200)
    // The first trial admitted the sender.
    const failed = MAX_TRIALS_AT_ONCE - 1
    const { dec } = bench.metrics()
    expect(dec).toMatchObject({ authentication_failures: failed, known_runs: 1, decrypted_packets: 200 })
    expect(dec.untried_packets).toBe(199 * 100 - failed)
    expect(native.openDescriptors()).toBe(before + 1)
    // A second later a restarted sender gets in, in the middle of the flood.
    for (const bytes of restarted) {
      bench.advance(1e9 / MAX_TRIALS_PER_SECOND)
      bench.send('in', [...flood().slice(0, 20), bytes, ...flood()])
      bench.advance(1e9 / MAX_TRIALS_PER_SECOND)
      bench.send('in', bytes)
    }
    expect(bytesOut(bench)).toHaveLength(50)
    // Of the trials that were earned meanwhile one let it in, and the last is left.
    expect(bench.metrics().dec.authentication_failures).toBe(failed + 2 * restarted.length - 2)
    bench.stop()
  })

  it('remembers a limited number of runs, the ones heard last', () => {
    const bench = decrypter()
    const active = sealed(some(MAX_SALTS + 20, 4), 1000)
    for (let seed = 0; seed < MAX_SALTS + 10; seed++) {
      bench.advance(1e7)
      bench.send('in', [...sealed(some(1, 4), seed), active[seed]])
    }
    bytesOut(bench)
    // One of them, and ten and the active one, which came later, beyond those that have a place.
    expect(bench.metrics().dec).toMatchObject({ known_runs: MAX_SALTS + 11, authentication_failures: 0 })
    bench.send('in', active.slice(0, MAX_SALTS + 10))
    expect(bench.metrics().dec.replayed_packets).toBe(MAX_SALTS + 10)
    bench.stop()
  })

  it('keeps the window of a sender that is silent, however many packets recorded of earlier runs are sent', () => {
    const bench = decrypter()
    const [live, ...old] = sealedByEach(1 + 2 * MAX_SALTS, some(50, 4))
    bench.send('in', live)
    for (const recorded of old) {
      bench.advance(1e7)
      bench.send('in', recorded.slice(0, MIN_OPENED_TO_STAY - 1))
    }
    expect(bytesOut(bench)).toHaveLength(50 + 2 * MAX_SALTS * (MIN_OPENED_TO_STAY - 1))
    bench.send('in', live)
    expect(bytesOut(bench)).toEqual([])
    expect(bench.metrics().dec).toMatchObject({ replayed_packets: 50, known_runs: 2 * MAX_SALTS })
    bench.stop()
  })

  it('lets a restarted sender take the place of one that is silent with its eighth packet, not that of one that is heard', () => {
    const bench = decrypter()
    const count = 2 * MIN_OPENED_TO_STAY
    const all = sealedByEach(2 * MAX_SALTS + 2, some(count, 4))
    const senders = all.slice(0, MAX_SALTS)
    const [restarted, other] = all.slice(MAX_SALTS)
    const first = (packets: Uint8Array[]) => {
      bench.advance(1e7)
      bench.send('in', packets.slice(0, 1))
    }
    senders.forEach(first)
    bench.advance(1e9)
    bench.send('in', restarted.slice(0, MIN_OPENED_TO_STAY))
    // All others are heard while this one comes.
    bench.advance(1e9)
    const heard = [...senders.slice(1).map(([, second]) => second), ...restarted.slice(MIN_OPENED_TO_STAY)]
    bench.send('in', [other[0], ...heard, ...other.slice(1)])
    all.slice(MAX_SALTS + 2).forEach(first)
    bytesOut(bench)
    const replayed = (packets: Uint8Array[]) => {
      const before = bench.metrics().dec.replayed_packets
      bench.advance(1e9)
      bench.send('in', packets)
      return bench.metrics().dec.replayed_packets - before
    }
    expect(replayed(restarted)).toBe(count)
    expect(replayed(senders.slice(1).flatMap((packets) => packets.slice(0, 2)))).toBe(2 * (MAX_SALTS - 1))
    // No place was left for this one and the one that was silent.
    expect(replayed([other[0], senders[0][0]])).toBe(0)
    bench.stop()
  })
})
