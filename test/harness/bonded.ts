/** Two ends of a raft on the virtual clock, joined by emulated paths in both directions. */
import { type Bench, type DriveOptions, drive, type Pipeline } from './component.ts'

export interface Path {
  /** One way, ms (default 10). */
  delay?: number
  /** ± ms; packets may overtake each other. */
  jitter?: number
  /** Share of packets lost each way (default 0). */
  loss?: number
  /** Mbit/s each way; absent: no limit. */
  rate?: number
  /** Packets that wait for the rate (default 64). */
  queue?: number
  /** Fields of the carriers at both ends. */
  carrier?: Record<string, unknown>
}

/** One way of a path: loss, delay, rate with its queue, and a gate that cuts it. */
function way(
  name: string,
  from: string,
  to: string,
  { delay = 10, jitter = 0, loss = 0, rate, queue = 64 }: Path,
  seed: number,
): Pipeline {
  const delayFlow = { input: `${name} 1`, output: `${name} 2` }
  const rateFlow = { input: `${name} 2`, output: `${name} 3` }
  return {
    [`${name} loss`]: { uniform_loss: { input: from, output: `${name} 1`, loss_prob: loss, seed } },
    [`${name} delay`]: {
      delay_constant: { flows: [delayFlow], delay, jitter, allow_reordering: jitter > 0, seed },
    },
    [`${name} rate`]: {
      bandwidth_limit_constant: { flows: [rateFlow], bandwidth_limit_mbit: rate ?? 100_000, max_queue_size: queue },
    },
    [`${name} gate`]: { gate: { flows: [{ input: `${name} 3`, output: to }], closed: false } },
  }
}

/** The two ends, a and b. */
function ends(streams: readonly Record<string, unknown>[], carriers: readonly Record<string, unknown>[]): Pipeline {
  const pipeline: Pipeline = {}
  for (const [end, other] of [
    ['a', 'b'],
    ['b', 'a'],
  ] as const) {
    pipeline[end] = {
      raft: {
        streams: streams.map((stream, i) => ({
          input: `${end} in ${i}`,
          output: `${end} out ${i}`,
          stream_handle: i + 1,
          ...stream,
        })),
        carriers: carriers.map((carrier, i) => ({
          input: `${other}${end} ${i}`,
          output: `${end} ${i}`,
          carrier_handle: i + 7,
          ...carrier,
        })),
      },
    }
  }
  return pipeline
}

export class Bonded {
  readonly bench: Bench
  /** What was changed of the paths so far. */
  private readonly changes: Pipeline = {}

  /** Streams as in the configuration, without their ports: at the left end `left N` goes in and `right N` comes out at the right one, and back. */
  constructor(streams: readonly Record<string, unknown>[], paths: readonly Path[], options: DriveOptions = {}) {
    const pipeline = ends(
      streams,
      paths.map(({ carrier = {} }) => carrier),
    )
    paths.forEach((path, i) => {
      Object.assign(
        pipeline,
        way(`ab${i}`, `a ${i}`, `ab ${i}`, path, 10 + i),
        way(`ba${i}`, `b ${i}`, `ba ${i}`, path, 20 + i),
      )
    })
    this.bench = drive(pipeline, options)
  }

  /** Changes the streams and carriers of both ends while they run. */
  reconfigure(streams: readonly Record<string, unknown>[], carriers: readonly Record<string, unknown>[]): void {
    this.bench.reconfigure(ends(streams, carriers))
  }

  /** Cuts a path, both ways, or mends it. */
  cut(path: number, closed = true): void {
    for (const name of [`ab${path}`, `ba${path}`]) {
      const flows = [{ input: `${name} 3`, output: `${name.slice(0, 2)} ${path}` }]
      this.changes[`${name} gate`] = { gate: { flows, closed } }
    }
    this.bench.reconfigure(this.changes)
  }

  /** Makes one way of a path this long, ms, while it runs: `ab0` is that of path 0 from a to b, `ba0` the way back. */
  delay(way: string, delay: number): void {
    const { flows, jitter, allow_reordering, seed } = this.bench.config.components[`${way} delay`].config
    this.changes[`${way} delay`] = { delay_constant: { flows, delay, jitter, allow_reordering, seed } }
    this.bench.reconfigure(this.changes)
  }

  /** Metrics of an end. */
  metrics(end: 'a' | 'b'): Record<string, number> {
    return this.bench.metrics()[end] as Record<string, number>
  }
}
