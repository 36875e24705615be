/** What holds for every pair of components that seal packets and open them again, whichever cipher or signature they have. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { usableAeadBackends } from '../../../../test/harness/aead-backends.ts'
import { type Bench, drive, type Pipeline, payload } from '../../../../test/harness/component.ts'
import { native } from '../../native/native.ts'

const KEY16 = '000102030405060708090a0b0c0d0e0f'
const KEY32 = `${KEY16}f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff`

interface Pair {
  seal: string
  open: string
  fields: object
  /** Bytes in front of a payload, and behind it. */
  header: number
  trailer: number
  /** The counter of packets that were passed on. */
  passed: 'decrypted_packets' | 'verified_packets'
}

const ssl = (suite: string, key: string): Pair => ({
  ...{ seal: 'ssl_encrypt', open: 'ssl_decrypt', fields: { [suite]: { key } } },
  ...{ header: 16, trailer: 16, passed: 'decrypted_packets' },
})
/** Those that notice whatever happens to a packet. */
const AUTHENTICATED: [string, Pair][] = [
  ['aes_128_gcm_sha_256', ssl('aes_128_gcm_sha_256', KEY16)],
  ['aes_256_gcm_sha_384', ssl('aes_256_gcm_sha_384', KEY32)],
  ['chacha20_poly1305_sha_256', ssl('chacha20_poly1305_sha_256', KEY32)],
  [
    'ssl_poly1305',
    {
      ...{ seal: 'ssl_poly1305_signer', open: 'ssl_poly1305_checker', fields: { shared_secret: KEY32 } },
      ...{ header: 16, trailer: 16, passed: 'verified_packets' },
    },
  ],
]
/** And one that tells its own runs from others, but no altered packet. */
const CHACHA20: [string, Pair] = [
  'chacha20',
  {
    ...{ seal: 'chacha20_encrypt', open: 'chacha20_decrypt' },
    ...{ fields: { key: KEY32, nonce: '0102030405060708090a0b0c' } },
    ...{ header: 16, trailer: 0, passed: 'decrypted_packets' },
  },
]

const bytesOut = (bench: Bench, name = 'out') => bench.take(name).map(({ bytes }) => bytes)
/** Their tags count from 0, their lengths vary. */
const some = (count: number, bytes = 100) => Array.from({ length: count }, (_, i) => payload(bytes + (i % 50), i))

const sealer = ({ seal, fields }: Pair, input: string, output: string): Pipeline => ({
  seal: { [seal]: { input, output, ...fields } },
})
const opener = ({ open, fields }: Pair, input: string, output: string): Pipeline => ({
  open: { [open]: { input, output, ...fields } },
})

function sealed(pair: Pair, payloads: Uint8Array[]): Uint8Array[] {
  const bench = drive(sealer(pair, 'in', 'out'), { seed: 1 })
  bench.send('in', payloads)
  const out = bytesOut(bench)
  bench.stop()
  return out
}

describe.each([...AUTHENTICATED, CHACHA20])('%s', (_, pair) => {
  it('gives back what was sealed with its annotations, in the order in which it comes, and closes its keys', () => {
    const before = native.openDescriptors()
    const plain = [...some(300, 40), payload(1, 1), payload(1500, 2), payload(0)]
    const wire = sealed(pair, plain)
    expect(wire.map(({ length }) => length)).toEqual(plain.map(({ length }) => length + pair.header + pair.trailer))
    const bench = drive(opener(pair, 'in', 'out'))
    bench.send('in', wire.toReversed(), { remote: '192.0.2.1:5000', client: 4 })
    const out = bench.take('out')
    expect(out.map(({ bytes }) => bytes)).toEqual(plain.toReversed())
    expect(out[7]).toMatchObject({ remote: '192.0.2.1:5000', client: 4 })
    expect(bench.metrics().open).toMatchObject({ [pair.passed]: 303, known_runs: 1, untried_packets: 0 })
    bench.stop()
    expect(native.openDescriptors()).toBe(before)
  })

  it('drops what its own run has sealed and the network sends back', () => {
    const ends = { ...sealer(pair, 'in', 'wire'), ...opener(pair, 'net', 'out') }
    const [here, there] = [drive(ends, { seed: 1 }), drive(ends, { seed: 2 })]
    here.send('in', some(300))
    const sent = bytesOut(here, 'wire')
    there.send('net', sent)
    expect(bytesOut(there)).toEqual(some(300))
    there.send('in', some(10))
    const answers = bytesOut(there, 'wire')
    here.send('net', [...sent, ...answers.flatMap((answer, i) => [answer, sent[i]])])
    expect(bytesOut(here)).toEqual(some(10))
    const { open } = here.metrics()
    expect(open).toMatchObject({ reflected_packets: 310, [pair.passed]: 10, untried_packets: 0, known_runs: 1 })
    here.stop()
    there.stop()
  })
})

describe.each(AUTHENTICATED)('%s', (_, pair) => {
  it('passes a packet on once', () => {
    const wire = sealed(pair, some(300, 40))
    const bench = drive(opener(pair, 'in', 'out'))
    bench.send('in', [...wire, ...wire])
    expect(bytesOut(bench)).toEqual(some(300, 40))
    expect(bench.metrics().open).toMatchObject({ replayed_packets: 300, authentication_failures: 0 })
    bench.stop()
  })

  it('refuses a packet with any byte changed, cut or extended', () => {
    const [first, second] = sealed(pair, some(2, 50))
    const bench = drive(opener(pair, 'in', 'out'))
    bench.send('in', first)
    expect(bytesOut(bench)).toHaveLength(1)
    for (let at = 0; at < second.length; at++) {
      // Altered salts are unknown runs, of which only so many are tried at once.
      bench.advance(1e8)
      const altered = Uint8Array.from(second)
      altered[at] ^= 1 << (at & 7)
      bench.send('in', altered)
    }
    bench.send('in', [second.slice(0, -1), second.slice(1), Uint8Array.from([...second, 0])])
    bench.send('in', second.slice(0, 31))
    expect(bytesOut(bench)).toEqual([])
    const refused = { authentication_failures: second.length + 3, malformed_packets: 1, known_runs: 1 }
    expect(bench.metrics().open).toMatchObject(refused)
    bench.send('in', second)
    expect(bytesOut(bench)).toEqual([payload(51, 1)])
    bench.stop()
  })
})

describe('any bytes', () => {
  type Rule = (bytes: Uint8Array, given: readonly Uint8Array[]) => boolean
  const genuine = payload(64)
  const isGenuine: Rule = (bytes) => Buffer.compare(bytes, genuine) === 0
  const isAsLong: Rule = (bytes, given) => given.some(({ length }) => length === bytes.length + CHACHA20[1].header)
  it.each<[string, Pair, Rule]>([
    ...AUTHENTICATED.map(([name, pair]): [string, Pair, Rule] => [name, pair, isGenuine]),
    [...CHACHA20, isAsLong],
  ])('%s survives, and passes on nothing that it may not', (_, pair, isAllowed) => {
    const bench = drive(opener(pair, 'in', 'out'))
    const [wire] = sealed(pair, [genuine])
    const mutated = fc.tuple(fc.nat(wire.length - 1), fc.nat(255)).map(([at, value]) => {
      const bytes = Uint8Array.from(wire)
      bytes[at] = value
      return bytes
    })
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.uint8Array({ maxLength: 1500, size: 'max' }), mutated), { maxLength: 300, size: 'max' }),
        (list) => {
          bench.send('in', list)
          bench.check()
          expect(bytesOut(bench).filter((bytes) => !isAllowed(bytes, list))).toEqual([])
          bench.advance(1e6)
        },
      ),
      { seed: 8, numRuns: 30 },
    )
    expect(bench.packets.held).toBe(0)
    bench.stop()
  })
})

describe.each(AUTHENTICATED)('%s', (_, pair) => {
  it.each(usableAeadBackends)(
    'names %s in the log of the run, and opens what another backend has sealed',
    (backend) => {
      const other = usableAeadBackends.find((name) => name !== backend) ?? backend
      native.aeadUse(other)
      const plain = some(100, 40)
      const wire = sealed(pair, plain)
      native.aeadUse(backend)
      const bench = drive({ ...sealer(pair, 'in', 'a'), ...opener(pair, 'b', 'out') }, { seed: 2 })
      native.aeadUse('auto')
      bench.send('b', wire)
      expect(bytesOut(bench)).toEqual(plain)
      const told = bench.log.filter(({ fields }) => fields?.backend !== undefined)
      expect(told.map(({ level, component, fields }) => [level, component, fields?.backend])).toEqual([
        ['INFO', 'seal', backend],
        ['INFO', 'open', backend],
      ])
      // What is part of penstock has no version of its own.
      const version = backend === 'avx512' ? '' : ' \\d+\\.\\d+\\.\\d+'
      for (const { message } of told) expect(message).toMatch(new RegExp(` by ${backend}${version}$`))
      bench.stop()
    },
  )
})
