import { describe, expect, it } from 'vitest'
import { type Bench, drive, payload, tagOf } from '../../../../test/harness/component.ts'
import { repairPacket, sized, sourcePacket, viewOf } from '../../../../test/harness/rely.ts'
import { Random } from '../../engine/random.ts'

const encoderOf = (fields: Record<string, unknown>) =>
  drive({ enc: { rely_encoder: { input: 'in', output: 'out', ...fields } } })
const decoderOf = (fields: Record<string, unknown> = {}) =>
  drive({ dec: { rely_decoder: { input: 'in', output: 'out', ...fields } } })
const bytesOut = (bench: Bench) => bench.take('out').map(({ bytes }) => bytes)
const tagsOut = (bench: Bench) => bench.take('out').map(({ bytes }) => tagOf(bytes))

describe('rely_decoder', () => {
  it('passes a source on although a repair made another of it, in its turn and not both', () => {
    const good = sized(4)
    const forged = [good[0], payload(50, 66), good[2], good[3]]
    for (const inOrder of [false, true]) {
      const bench = decoderOf({ release_in_order: inOrder })
      bench.send('in', [sourcePacket(good[0], 0), sourcePacket(good[3], 3)])
      bench.send('in', repairPacket(forged.slice(0, 3), 0, 1))
      bench.send('in', repairPacket(forged.slice(1, 2), 1, 2))
      bench.send('in', [sourcePacket(good[1], 1), sourcePacket(good[2], 2)])
      const tags = tagsOut(bench)
      expect(tags).toContain(1)
      expect(tags).toContain(2)
      expect(bench.metrics().dec.wrong_recoveries).toBeGreaterThan(0)
      bench.stop()
    }
  })

  it('drops junk and repairs that contradict what came', () => {
    const sources = sized(3)
    const bench = decoderOf()
    const source = sourcePacket(sources[0], 0)
    bench.send('in', [source, new Uint8Array(0), source.subarray(0, 9), source.subarray(0, 20), new Uint8Array(100)])
    expect(bytesOut(bench)).toEqual([sources[0]])
    expect(bench.metrics().dec.malformed_packets).toBe(4)
    const repair = repairPacket(sources, 0, 1)
    const wrong = [repair.subarray(0, 13), repair.subarray(0, 20)]
    for (const count of [0, 4097]) {
      const other = repair.slice()
      viewOf(other).setUint16(8, count)
      wrong.push(other)
    }
    bench.send('in', wrong)
    expect(bench.metrics().dec).toMatchObject({ malformed_packets: 8, used_repair_packets: 0 })
    const far = repair.slice()
    viewOf(far).setUint32(4, 100_000)
    bench.send('in', far)
    expect(bench.metrics().dec).toMatchObject({ unusable_repair_packets: 1 })
    bench.stop()
  })

  it('makes nothing that was not sent of packets that were cut, lengthened, repeated, replayed or made up', () => {
    const random = new Random(Number(process.env.PENSTOCK_TEST_SEED ?? 4))
    const total = Number(process.env.PENSTOCK_TEST_PACKETS ?? 20_000)
    let recovered = 0
    for (let done = 0; done < total; ) {
      const enc = encoderOf({ repair_target_rate: 0.4, max_payloads: 1 + random.below(60) })
      const dec = decoderOf({ release_in_order: random.chance(0.5), timeout: 30 })
      const sent = new Set<string>()
      const wire: Uint8Array[] = []
      const past: Uint8Array[] = []
      for (let step = 0; step < 60; step++) {
        const sources = Array.from({ length: 1 + random.below(12) }, () => {
          const bytes = new Uint8Array(random.below(120))
          random.fill(bytes, 0, bytes.length)
          sent.add(Buffer.from(bytes).toString('hex'))
          return bytes
        })
        enc.send('in', sources)
        wire.push(...bytesOut(enc))
        const arriving = wire.splice(0).flatMap((packet): Uint8Array[] => {
          past.push(packet)
          if (random.chance(0.2)) return []
          const old = past[Math.max(0, past.length - 1 - random.below(80))] as Uint8Array
          switch (random.below(8)) {
            case 0:
              return [packet.slice(0, random.below(packet.length))]
            case 1: {
              const long = new Uint8Array(packet.length + 1 + random.below(40))
              if (random.chance(0.7)) random.fill(long, 0, long.length)
              long.set(packet)
              return [long]
            }
            case 2: {
              const bytes = new Uint8Array(random.below(100))
              random.fill(bytes, 0, bytes.length)
              return [bytes]
            }
            case 3:
              return [packet, old]
            default:
              return [packet]
          }
        })
        dec.send('in', arriving)
        done += arriving.length
        dec.advance(1e6)
        for (const bytes of bytesOut(dec)) expect(sent).toContain(Buffer.from(bytes).toString('hex'))
      }
      recovered += dec.metrics().dec.recovered_packets
      enc.stop()
      dec.stop()
    }
    expect(recovered).toBeGreaterThan(total / 100)
  })
})
