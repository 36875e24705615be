/** What is RLNC's own: how large a block may be. */
import { expect, it } from 'vitest'
import { bytesOut, decoderOf, encoderOf, RLNC, sizes, sorted } from '../../../../test/harness/block-codes.ts'
import { refusal } from '../../../../test/harness/component.ts'

it('takes up to 255 sources and as many repairs, and refuses more by name', () => {
  const config = (symbols: number, repair: number) => ({
    enc: { rlnc_encoder: { input: 'in', output: 'out', symbols, repair } },
  })
  for (const [symbols, repair, field] of [
    [0, 1, 'symbols'],
    [256, 1, 'symbols'],
    [1, 0, 'repair'],
    [1, 256, 'repair'],
  ] as const) {
    expect(refusal(config(symbols, repair)).pointer.split('/').at(-1)).toBe(field)
  }
  const bench = encoderOf(RLNC, 255, 255)
  const sources = sizes(255)
  bench.send('in', sources)
  const wire = bytesOut(bench)
  bench.stop()
  const decoder = decoderOf(RLNC)
  decoder.send('in', wire.slice(255))
  const got = bytesOut(decoder)
  // 255 random equations for 255 unknowns: short in one of 255 cases, and this seed is none of them.
  expect(sorted(got)).toEqual(sorted(sources))
  decoder.stop()
})
