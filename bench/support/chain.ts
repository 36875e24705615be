/** A graph built in this thread for benches: a feed that pushes full batches, a chain of components, a drain. */
import { Type } from '@sinclair/typebox'
import { components } from '../../src/dataplane/components/registry.ts'
import type { Batch } from '../../src/dataplane/engine/batch.ts'
import { BATCH_CAPACITY } from '../../src/dataplane/engine/batch.ts'
import { checkPipelineConfig } from '../../src/dataplane/engine/check.ts'
import { type AnyComponent, defineComponent } from '../../src/dataplane/engine/component.ts'
import type { PipelineConfig } from '../../src/dataplane/engine/config.ts'
import { Input, Output } from '../../src/dataplane/engine/schema.ts'
import { Simulation } from '../../src/dataplane/engine/simulate.ts'

/** A component of the chain: its key and its configuration without input and output. */
export type Link = Record<string, Record<string, unknown>>

/** `{ key: config }` of each link, joined one after the other between `from` and `to`. */
export function chainOf(links: readonly Link[], from: string, to: string): Record<string, unknown> {
  const pipeline: Record<string, unknown> = {}
  links.forEach((link, i) => {
    const [[key, config]] = Object.entries(link)
    const input = i === 0 ? from : `link-${i}`
    const output = i === links.length - 1 ? to : `link-${i + 1}`
    const ports =
      key === 'splitter'
        ? { input, outputs: [output] }
        : key === 'flow_combiner'
          ? { inputs: [input], output }
          : 'flows' in config
            ? { flows: [{ input, output }] }
            : { input, output }
    pipeline[`${i + 1}-${key}`] = { [key]: { ...config, ...ports } }
  })
  return pipeline
}

/** Checks a pipeline for a bench; throws with every problem. */
export function checked(
  pipeline: Record<string, unknown>,
  registry: ReadonlyMap<string, AnyComponent> = components,
): PipelineConfig {
  const { config, problems } = checkPipelineConfig(JSON.stringify({ engine_config: { pipeline } }), registry)
  if (!config) throw new Error(problems.map(({ pointer, message }) => `${pointer}: ${message}`).join('\n'))
  return config
}

/** A chain in this thread, driven breath by breath. */
export class Chain {
  private readonly simulation: Simulation
  private readonly feed: () => void

  /** Packets of `bytes` bytes go through `links` in full batches. */
  constructor(links: readonly Link[], bytes: number) {
    let push: () => void = () => {}
    const feed = defineComponent({
      key: 'bench_feed',
      family: 'sources',
      summary: 'Pushes a full batch when told to.',
      config: Type.Object({ output: Output() }),
      metrics: {},
      create(_config, { packets, outlets, batch }) {
        const own = batch()
        push = () => {
          while (own.length < BATCH_CAPACITY) {
            const packet = packets.allocate()
            packets.length[packet] = bytes
            own.push(packet)
          }
          outlets.output.send(own)
        }
        return {}
      },
    })
    const drain = defineComponent({
      key: 'bench_drain',
      family: 'sources',
      summary: 'Gives everything back.',
      config: Type.Object({ input: Input() }),
      metrics: {},
      create: (_config, { packets }) => ({ input: (batch: Batch) => packets.releaseAll(batch) }),
    })
    const registry = new Map<string, AnyComponent>([...components, [feed.key, feed], [drain.key, drain]])
    const pipeline =
      links.length === 0
        ? { feed: { bench_feed: { output: 'in' } }, drain: { bench_drain: { input: 'in' } } }
        : {
            feed: { bench_feed: { output: 'in' } },
            ...chainOf(links, 'in', 'out'),
            drain: { bench_drain: { input: 'out' } },
          }
    this.simulation = new Simulation(checked(pipeline, registry), { registry })
    this.feed = push
  }

  /** Sends `count` packets (rounded up to full batches) and returns the nanoseconds each took. */
  run(count: number): number {
    const batches = Math.ceil(count / BATCH_CAPACITY)
    const { feed } = this
    const { clock } = this.simulation
    const start = process.hrtime.bigint()
    for (let i = 0; i < batches; i++) {
      clock.advanceTo(clock.now + 1000)
      feed()
    }
    return Number(process.hrtime.bigint() - start) / (batches * BATCH_CAPACITY)
  }
}
