/** rely.json, which rely.mjs wrote from the documentation: the encoder makes these packets, the decoder gives the payloads. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { drive } from '../harness/component.ts'

interface Vectors {
  session: number
  cases: {
    what: string
    encoder: { repair_target_rate: number; max_payloads: number }
    payloads: string[]
    packets: string[]
    /** Numbers of sources that the decoder does not get. */
    lost: number[]
  }[]
}

const { session, cases } = JSON.parse(readFileSync(new URL('rely.json', import.meta.url), 'utf8')) as Vectors
const bytesOf = (hex: string) => Uint8Array.from(Buffer.from(hex, 'hex'))
const hexOf = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')

describe.each(cases.map((one) => [one.what, one] as const))('%s', (_, { encoder, payloads, packets, lost }) => {
  test('rely_encoder makes the packets', () => {
    const bench = drive({ enc: { rely_encoder: { input: 'in', output: 'out', ...encoder } } })
    bench.send('in', payloads.map(bytesOf))
    const made = bench.take('out').map(({ bytes }) => {
      // Its session is drawn at random.
      bytes.set([session >> 16, (session >> 8) & 255, session & 255], 1)
      return hexOf(bytes)
    })
    expect(made).toEqual(packets)
    bench.stop()
  })

  test('rely_decoder gives the payloads though some are lost', () => {
    for (const inOrder of [false, true]) {
      const bench = drive({ dec: { rely_decoder: { input: 'in', output: 'out', release_in_order: inOrder } } })
      const sources = packets.filter((packet) => packet.startsWith('b8'))
      const arriving = packets.filter((packet) => !lost.map((n) => sources[n]).includes(packet))
      bench.send('in', arriving.map(bytesOf))
      const given = bench.take('out').map(({ bytes }) => hexOf(bytes))
      expect(inOrder ? given : given.sort()).toEqual(inOrder ? payloads : payloads.toSorted())
      bench.stop()
    }
  })
})
