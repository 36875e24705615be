/** reed_solomon_encoder and _decoder against reed_solomon.json, which was made from docs/wire-formats.md without their code. */
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { drive } from '../harness/component.ts'

interface Case {
  name: string
  seed: number
  symbols: number
  repair: number
  payloads: string[]
  packets: string[]
}

const { cases } = JSON.parse(readFileSync(new URL('reed_solomon.json', import.meta.url), 'utf8')) as { cases: Case[] }
const bytesOf = (hex: string[]) => hex.map((text) => Uint8Array.from(Buffer.from(text, 'hex')))
const hexOf = (list: { bytes: Uint8Array }[]) => list.map(({ bytes }) => Buffer.from(bytes).toString('hex'))

describe.each(cases)('$name, ($symbols,$repair)', ({ seed, symbols, repair, payloads, packets }) => {
  it('is what the encoder makes', () => {
    const bench = drive({ enc: { reed_solomon_encoder: { input: 'in', output: 'out', symbols, repair } } }, { seed })
    bench.send('in', bytesOf(payloads))
    bench.notify('in', 'FLUSH')
    expect(hexOf(bench.take('out'))).toEqual(packets)
    bench.stop()
  })

  it('gives the payloads with any run of `repair` packets of each block lost', () => {
    const full = symbols + repair
    const wire = bytesOf(packets)
    for (let first = 0; first < Math.min(full, wire.length); first++) {
      const bench = drive({ dec: { reed_solomon_decoder: { input: 'in', output: 'out' } } })
      bench.send(
        'in',
        wire.filter((_, n) => {
          const size = Math.min(full, wire.length - n + (n % full))
          return ((n % full) - first + size) % size >= repair
        }),
      )
      expect(hexOf(bench.take('out')).sort()).toEqual([...payloads].sort())
      expect(bench.metrics().dec.malformed_packets).toBe(0)
      bench.stop()
    }
  })
})
