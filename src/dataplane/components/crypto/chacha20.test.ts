/** chacha20_encrypt and chacha20_decrypt: OpenSSL as the other end, every round count, restarts, live changes, floods of salts; what all pairs share is in pairs.test.ts. */
import { createCipheriv, hkdfSync } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { chacha } from '../../../../test/harness/chacha.ts'
import { type Bench, drive, payload, type Refused, tagOf } from '../../../../test/harness/component.ts'
import { VirtualClock } from '../../engine/clock.ts'
import { native } from '../../native/native.ts'
import { ChachaRuns, MAX_KEPT_RUNS, MIN_PACKETS_TO_STAY } from './chacha-runs.ts'
import { MAX_TRIALS_AT_ONCE } from './trials.ts'

const KEY = '000102030405060708090a0b0c0d0e0ff0f1f2f3f4f5f6f7f8f9fafbfcfdfeff'
const NONCE = '0102030405060708090a0b0c'
const CHACHA = { key: KEY, nonce: NONCE }

const encrypter = (fields: object = {}, seed = 1) =>
  drive({ enc: { chacha20_encrypt: { input: 'in', output: 'out', ...CHACHA, ...fields } } }, { seed })
const decrypter = (fields: object = {}) =>
  drive({ dec: { chacha20_decrypt: { input: 'in', output: 'out', ...CHACHA, ...fields } } })
const bytesOut = (bench: Bench, name = 'out') => bench.take(name).map(({ bytes }) => bytes)
const some = (count: number, bytes = 100) => Array.from({ length: count }, (_, i) => payload(bytes + (i % 50), i))

/** What `seed`'s encrypter makes of `payloads`. */
function sealed(payloads: Uint8Array[], seed = 1, fields: object = {}): Uint8Array[] {
  const bench = encrypter(fields, seed)
  bench.send('in', payloads)
  const out = bytesOut(bench)
  bench.stop()
  return out
}

/** Key and nonce of a packet. */
function secretsOf(packet: Uint8Array): { key: Uint8Array; nonce: Uint8Array } {
  const key = new Uint8Array(
    hkdfSync('sha256', Buffer.from(KEY, 'hex'), packet.subarray(0, 8), 'penstock chacha20', 32),
  )
  const nonce = new Uint8Array(Buffer.from(NONCE, 'hex')).map((byte, i) => (i < 4 ? byte : byte ^ packet[4 + i]))
  return { key, nonce }
}

function problems(fields: object): string[] {
  try {
    encrypter(fields).stop()
    return []
  } catch (error) {
    return (error as Refused).problems.map(({ pointer, message }) => `${pointer.split('encrypt')[1]} ${message}`)
  }
}

describe('chacha20_encrypt', () => {
  it('is decrypted by OpenSSL', () => {
    const plain = [...some(300, 1200), payload(0), payload(1), payload(2048)]
    sealed(plain).forEach((packet, i) => {
      expect(packet.length).toBe(plain[i].length + 16)
      expect(new DataView(packet.buffer).getBigUint64(8)).toBe(BigInt(i))
      const { key, nonce } = secretsOf(packet)
      const openssl = createCipheriv('chacha20', key, Buffer.concat([Buffer.alloc(4), nonce]))
      expect(new Uint8Array(openssl.update(packet.subarray(16)))).toEqual(plain[i])
    })
  })

  it.each([8, 10, 12, 14, 16, 18, 20, 0])('has %i rounds and the configured constant', (rounds) => {
    const fields = { rounds, magic_constant: 'any 16 characters'.slice(0, 16) }
    const plain = [payload(1000), payload(63)]
    sealed(plain, 1, fields).forEach((packet, i) => {
      const { key, nonce } = secretsOf(packet)
      const constant = new TextEncoder().encode(fields.magic_constant)
      const stream = chacha(key, nonce, plain[i].length, 0, rounds || 20, constant)
      expect(packet.subarray(16)).toEqual(plain[i].map((byte, at) => byte ^ stream[at]))
    })
  })

  it('repeats no key stream over runs and batches', () => {
    const zeros = Array.from({ length: 300 }, () => new Uint8Array(32))
    const streams = [1, 2, 3].flatMap((seed) => sealed(zeros, seed).map((bytes) => Buffer.from(bytes.subarray(16))))
    expect(new Set(streams.map((bytes) => bytes.toString('hex'))).size).toBe(900)
  })

  it('takes a key of 32 bytes, a nonce of 12, 16 characters and an even number of rounds, and says what is wrong', () => {
    expect(problems({ nonce: `base64:${Buffer.alloc(12).toString('base64')}`, magic_constant: '', rounds: 0 })).toEqual(
      [],
    )
    expect(problems({ key: KEY.slice(2) })).toEqual(['/key must be a key of 32 bytes: 64 hex digits, or base64:…'])
    expect(problems({ nonce: '00' })).toEqual([
      '/nonce must be a nonce of 12 bytes: 24 hex digits, or base64:…, not "00"',
    ])
    for (const magic_constant of ['expand 32-byte', 'expand 32-byte kk', 'expand 32-byte é', 'expand 32-byte \n']) {
      expect(problems({ magic_constant })).toEqual([
        `/magic_constant must be 16 printable ASCII characters, not ${JSON.stringify(magic_constant)}`,
      ])
    }
    for (const rounds of [1, 2, 6, 7, 9, 19]) {
      expect(problems({ rounds })).toEqual([`/rounds ${rounds} is no even number from 8 to 20`])
    }
    expect(problems({ rounds: 22 })[0]).toContain('22 is above the maximum of 20')
    expect(problems({ key: undefined, nonce: undefined })).toEqual([
      '/key required field "key" is missing',
      '/nonce required field "nonce" is missing',
    ])
  })
})

describe('chacha20_decrypt', () => {
  it('gives back what was encrypted, again when it comes again, and closes its keys', () => {
    const before = native.openDescriptors()
    const plain = [...some(600, 40), payload(0), payload(2048)]
    const wire = sealed(plain)
    const bench = decrypter()
    bench.send('in', wire, { remote: '192.0.2.1:5000', client: 4 })
    const out = bench.take('out')
    expect(out.map(({ bytes }) => bytes)).toEqual(plain)
    expect(out[7]).toMatchObject({ remote: '192.0.2.1:5000', client: 4 })
    bench.send('in', wire.slice(0, 10).toReversed())
    expect(bytesOut(bench)).toEqual(plain.slice(0, 10).toReversed())
    expect(bench.metrics().dec).toMatchObject({ decrypted_packets: 612, known_runs: 1, untried_packets: 0 })
    bench.stop()
    expect(native.openDescriptors()).toBe(before)
  })

  it('shows nothing of an altered packet, as its page says, and drops only what is no packet', () => {
    const [wire] = sealed([payload(64)])
    const bench = decrypter()
    const altered = wire.slice()
    altered[16 + 9] ^= 4
    const far = wire.slice()
    far[9] |= 0x20
    bench.send('in', [wire.subarray(0, 15), altered, far, wire])
    const [first, second, ...none] = bytesOut(bench)
    expect(first).toEqual(payload(64).map((byte, i) => (i === 9 ? byte ^ 4 : byte)))
    expect(second).toEqual(payload(64))
    expect(none).toEqual([])
    expect(bench.metrics().dec).toMatchObject({ malformed_packets: 2, decrypted_packets: 2 })
    bench.stop()
  })

  it('changes constant and rounds with the encrypter while both run', () => {
    const [enc, dec] = [encrypter(), decrypter()]
    const through = (bytes: Uint8Array[]) => {
      enc.send('in', bytes)
      const wire = bytesOut(enc)
      dec.send('in', wire)
      return { wire, out: bytesOut(dec) }
    }
    const zeros = [new Uint8Array(64)]
    const streams = new Set<string>()
    for (const fields of [{}, { rounds: 8 }, { rounds: 8, magic_constant: 'expand 16-byte k' }, { rounds: 20 }]) {
      enc.reconfigure({ enc: { chacha20_encrypt: { input: 'in', output: 'out', ...CHACHA, ...fields } } })
      if (streams.size > 0) expect(through(some(1)).out).not.toEqual(some(1))
      dec.reconfigure({ dec: { chacha20_decrypt: { input: 'in', output: 'out', ...CHACHA, ...fields } } })
      expect(through(some(20)).out).toEqual(some(20))
      streams.add(Buffer.from(through(zeros).wire[0].subarray(16)).toString('hex'))
    }
    expect(streams.size).toBe(4)
    expect(dec.metrics().dec).toMatchObject({ known_runs: 1 })
    enc.stop()
    dec.stop()
  })

  it('keeps the runs that are heard, lets restarted senders in, and derives few keys for made-up salts', () => {
    const bench = decrypter()
    const before = native.openDescriptors()
    const steady = sealed(some(400, 4), 1)
    let salt = 0
    const flood = (count: number) =>
      Array.from({ length: count }, () => {
        const forged = Uint8Array.from(steady[0])
        new DataView(forged.buffer).setUint32(0, ++salt)
        return forged
      })
    bench.send('in', steady[0])
    for (let n = 1; n < 300; n++) bench.send('in', [...flood(100), steady[n]])
    const tags = bytesOut(bench).slice(-MAX_TRIALS_AT_ONCE - 300)
    expect(tags.length).toBe(MAX_TRIALS_AT_ONCE - 1 + 300)
    expect(bench.metrics().dec.untried_packets).toBe(299 * 100 - (MAX_TRIALS_AT_ONCE - 1))
    expect(native.openDescriptors()).toBe(before + MAX_TRIALS_AT_ONCE)
    // A restarted sender has its key derived at once, and keeps it from its eighth packet on, whatever else comes.
    bench.advance(1e9)
    const restarted = sealed(some(400, 4), 2)
    bench.send('in', restarted.slice(0, MIN_PACKETS_TO_STAY))
    expect(bytesOut(bench).map(tagOf)).toEqual(Array.from({ length: MIN_PACKETS_TO_STAY }, (_, i) => i))
    for (let second = 0; second < 5; second++) {
      bench.advance(1e9)
      bench.send('in', flood(500))
    }
    bytesOut(bench)
    for (const [i, one] of [...restarted.slice(8), ...steady.slice(300)].entries()) {
      bench.send('in', one)
      expect(bytesOut(bench).map(tagOf)).toEqual([i < 392 ? i + 8 : i - 392 + 300])
    }
    expect(bench.metrics().dec.known_runs).toBe(2 * MAX_KEPT_RUNS)
    expect(native.openDescriptors()).toBe(before + 2 * MAX_KEPT_RUNS)
    bench.stop()
  })

  it('gives a newcomer the place of a run that has gone silent, not that of one that is heard', () => {
    const bench = decrypter()
    const senders = Array.from({ length: MAX_KEPT_RUNS + 1 }, (_, seed) => sealed(some(60, 4), seed))
    const round = (who: number[], i: number) => {
      bench.advance(1e9)
      bench.send(
        'in',
        who.map((sender) => senders[sender][i]),
      )
    }
    const all = Array.from({ length: MAX_KEPT_RUNS + 1 }, (_, sender) => sender)
    for (let i = 0; i < 30; i++) round(all, i)
    // All came at once: for the last one there was no key to derive the first time.
    const heard = { decrypted_packets: 30 * (MAX_KEPT_RUNS + 1) - 1, untried_packets: 1, known_runs: MAX_KEPT_RUNS + 1 }
    expect(bench.metrics().dec).toMatchObject(heard)
    // The first is silent from now on: after two times as many packets as it takes the last one has its place.
    for (let i = 30; i < 30 + 2 * MIN_PACKETS_TO_STAY; i++) round(all.slice(1), i)
    expect(bench.metrics().dec.known_runs).toBe(MAX_KEPT_RUNS)
    expect(new Set(bytesOut(bench).map(tagOf)).size).toBe(30 + 2 * MIN_PACKETS_TO_STAY)
    bench.stop()
  })
})

describe('ChachaRuns', () => {
  let owner = 0
  beforeEach(() => {
    owner = native.ownerOpen()
  })
  afterEach(() => {
    native.ownerRelease(owner)
    expect(native.openDescriptors()).toBe(0)
  })

  /** Runs whose salts are numbers; `derived` has those whose keys were derived, in order. */
  function counted() {
    const clock = new VirtualClock()
    const derived: number[] = []
    const runs = new ChachaRuns(clock, (salt) => {
      derived.push(new DataView(salt.buffer).getInt32(4))
      return native.chachaOpen(owner, new Uint8Array(32), new Uint8Array(12), new Uint8Array(16), 20)
    })
    const hear = (salt: number, packets = 1) => {
      clock.advanceTo(clock.now + 1e9)
      return runs.find(0, salt, packets)
    }
    return { runs, derived, hear }
  }

  it('derives the key of a run once, however many there are in turn, while they have places', () => {
    const { runs, derived, hear } = counted()
    for (let round = 0; round < 40; round++) for (let salt = 0; salt < 2 * MAX_KEPT_RUNS; salt++) hear(salt)
    expect(derived).toEqual(Array.from({ length: 2 * MAX_KEPT_RUNS }, (_, salt) => salt))
    expect(runs.known).toBe(2 * MAX_KEPT_RUNS)
    runs.close()
  })

  it('keeps what has settled through any number of newcomers, and settles one that takes the place of a silent run', () => {
    const { runs, derived, hear } = counted()
    for (let salt = 0; salt < MAX_KEPT_RUNS; salt++) hear(salt)
    hear(1000, MIN_PACKETS_TO_STAY)
    for (let salt = 2000; salt < 2200; salt++) hear(salt)
    for (let salt = 1; salt < MAX_KEPT_RUNS; salt++) hear(salt)
    hear(1000)
    expect(derived.filter((salt) => salt < 2000)).toEqual([
      ...Array.from({ length: MAX_KEPT_RUNS }, (_, salt) => salt),
      1000,
    ])
    runs.close()
  })

  it('settles again who had given way', () => {
    const { runs, derived, hear } = counted()
    for (let salt = 0; salt < MAX_KEPT_RUNS; salt++) hear(salt)
    hear(1000, MIN_PACKETS_TO_STAY)
    hear(0)
    for (let n = 0; n < MIN_PACKETS_TO_STAY; n++) hear(0)
    for (let salt = 3000; salt < 3200; salt++) hear(salt)
    hear(0)
    expect(derived.filter((salt) => salt === 0)).toHaveLength(2)
    runs.close()
  })
})
