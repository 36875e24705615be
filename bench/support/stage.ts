/** One component in a graph of its own, with batches fed to it by hand and its output released. */
import { Type } from '@sinclair/typebox'
import { components } from '../../src/dataplane/components/registry.ts'
import { Batch } from '../../src/dataplane/engine/batch.ts'
import { checkPipelineConfig } from '../../src/dataplane/engine/check.ts'
import { type AnyComponent, defineComponent } from '../../src/dataplane/engine/component.ts'
import type { Receiver } from '../../src/dataplane/engine/flow.ts'
import type { Outlet } from '../../src/dataplane/engine/outlet.ts'
import type { Packets } from '../../src/dataplane/engine/packets.ts'
import { Input, Output } from '../../src/dataplane/engine/schema.ts'
import { Simulation } from '../../src/dataplane/engine/simulate.ts'
import { native } from '../../src/dataplane/native/native.ts'

export class Stage {
  readonly packets: Packets
  readonly batch: Batch
  /** Called with every batch that comes out, before it is released; it may keep copies of bytes only. */
  look: ((batch: Batch) => void) | null = null
  private readonly simulation: Simulation
  private outlet!: Outlet

  /** `key` with its own fields, `input` and `output` left out. */
  constructor(key: string, fields: Record<string, unknown>) {
    const feed = defineComponent({
      key: 'bench_feed',
      family: 'sources',
      summary: 'Feeds batches by hand.',
      config: Type.Object({ output: Output() }),
      metrics: {},
      create: (_config, { outlets }) => {
        this.outlet = outlets.output
        return {}
      },
    })
    const end = defineComponent({
      key: 'bench_end',
      family: 'sources',
      summary: 'Releases what comes.',
      config: Type.Object({ input: Input() }),
      metrics: {},
      create: (_config, { packets }) => {
        const input: Receiver = (batch) => {
          this.look?.(batch)
          packets.releaseAll(batch)
        }
        return { input }
      },
    })
    const registry = new Map<string, AnyComponent>([...components, [feed.key, feed], [end.key, end]])
    const pipeline = {
      feed: { bench_feed: { output: 'in' } },
      stage: { [key]: { ...fields, input: 'in', output: 'out' } },
      end: { bench_end: { input: 'out' } },
    }
    const { config, problems } = checkPipelineConfig(JSON.stringify({ engine_config: { pipeline } }), registry)
    if (!config) throw new Error(problems.map(({ pointer, message }) => `${pointer}: ${message}`).join('; '))
    this.simulation = new Simulation(config, { registry })
    this.packets = this.simulation.graph.packets
    this.batch = new Batch(this.packets)
    // Pages that were never written would all be the one page of zeros, which every cache holds.
    for (let at = 0; at < 4096 * this.packets.slotBytes; at++) this.packets.data[at] = at * 31
  }

  /** Puts a packet of `bytes` bytes, or with these bytes, into the batch. */
  add(bytes: number | Uint8Array): void {
    const packet = this.packets.allocate()
    const at = this.packets.append(packet, typeof bytes === 'number' ? bytes : bytes.length)
    if (typeof bytes !== 'number') this.packets.data.set(bytes, at)
    this.batch.push(packet)
  }

  /** Hands the batch over; returns the nanoseconds that took. */
  send(): number {
    const start = native.now()
    this.outlet.send(this.batch)
    return native.now() - start
  }

  metrics(): Record<string, number> {
    return this.simulation.metrics().stage
  }

  stop(): void {
    this.simulation.stop()
  }
}
