/** A source of numbered packets and an end that notes when each arrives, for simulations that ask what came, how late, and in which order. */
import { Type } from '@sinclair/typebox'
import { type AnyComponent, defineComponent } from '../../src/dataplane/engine/component.ts'
import { Input, Output } from '../../src/dataplane/engine/schema.ts'

export class Deliveries {
  /** `bench_source` and `bench_deliveries`, to add to a registry. */
  readonly components: readonly [string, AnyComponent][]
  private readonly interval: number
  /** When each packet came, ns; NaN: not yet. */
  private readonly out: Float64Array

  /** `count` packets of `bytes` bytes, one every `interval` ns from 0 on. */
  constructor(bytes: number, interval: number, count: number) {
    this.interval = interval
    this.out = new Float64Array(count).fill(Number.NaN)
    const source = defineComponent({
      key: 'bench_source',
      family: 'sources',
      summary: 'Sends numbered packets.',
      config: Type.Object({ output: Output() }),
      metrics: {},
      mtu: () => bytes,
      create: (_config, { outlets, packets, timer }) => {
        let next = 0
        const tick = timer(() => {
          const packet = packets.allocate()
          packets.view.setUint32(packets.append(packet, bytes), next++)
          outlets.output.push(packet)
          outlets.output.flush()
          if (next < count) tick.at(next * interval)
        })
        tick.at(0)
        return { active: () => next < count }
      },
    })
    const end = defineComponent({
      key: 'bench_deliveries',
      family: 'sources',
      summary: 'Notes when packets arrive.',
      config: Type.Object({ input: Input() }),
      metrics: {},
      create: (_config, { packets, clock }) => ({
        input: (batch) => {
          for (let i = 0; i < batch.length; i++) {
            this.out[packets.view.getUint32(packets.offset[batch.handles[i]])] = clock.now
          }
          packets.releaseAll(batch)
        },
      }),
    })
    this.components = [
      [source.key, source],
      [end.key, end],
    ]
  }

  /** Of the first `count` packets what never came, and of the others the time from a packet's sending until it and all before it that come at all are there, ns. */
  inOrder(count: number): { lost: number; delays: Float64Array } {
    return Deliveries.inOrderOf(this.out.subarray(0, count), this.interval)
  }

  /** The same of packets that came at these times, NaN where they did not. */
  static inOrderOf(out: Float64Array, interval: number): { lost: number; delays: Float64Array } {
    const delays: number[] = []
    let latest = 0
    out.forEach((time, n) => {
      if (Number.isNaN(time)) return
      latest = Math.max(latest, time)
      delays.push(latest - n * interval)
    })
    return { lost: out.length - delays.length, delays: Float64Array.from(delays) }
  }

  /** The value below which each of these shares of `values` is. */
  static quantiles(values: Float64Array, shares: readonly number[]): number[] {
    const sorted = values.slice().sort()
    return shares.map((share) => sorted[Math.floor(sorted.length * share)] as number)
  }
}
