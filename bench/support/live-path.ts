/** A path between UDP endpoints that loses and delays both ways, and what carries packets over it: rely, raft and SRT. */
import { type ChildProcess, spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { pipelineOf } from '../../src/cli/impairment.ts'
import type { RunPool } from '../../src/dataplane/engine/run.ts'
import { checked } from './chain.ts'

export const DELAY_MS = 25
export const LOSS = 0.05
const WINDOW_MS = 100
const FIRST_PORT = 19_500
const ATTEMPTS = 10
const PATIENCE_MS = 4000

const at = (port: number): string => `127.0.0.1:${port}`

/** What carries packets of an application from one port to another. */
export interface Carrying {
  /** Where the application sends to. */
  readonly from: number
  /** Where it listens. */
  readonly to: number
  close(): Promise<void>
}

export class LivePaths {
  private readonly pool: RunPool
  private nextPort = FIRST_PORT
  private nextSeed = 1

  /** Runs are threads of `pool`. */
  constructor(pool: RunPool) {
    this.pool = pool
  }

  private port(): number {
    return this.nextPort++
  }

  /** Starts a pipeline; it runs when the promise is fulfilled. Gives what ends it. */
  private async start(pipeline: Record<string, unknown>): Promise<() => Promise<void>> {
    const options = { runId: `bench-${this.port()}`, performanceMode: false, level: 'WARN' } as const
    const run = this.pool.start({ ...options, config: checked(pipeline) }, () => {})
    await run.running
    return async () => {
      run.stop()
      await run.ended
    }
  }

  /** A path from the port that it gives to `forward`, and back to whoever sends first. */
  private async path(forward: number): Promise<{ port: number; close: () => Promise<void> }> {
    const port = this.port()
    const way = [{ delay_constant: { delay: DELAY_MS } }, { loss_constant: { loss_probability: LOSS } }]
    const ends = { listen: at(port), forward: at(forward), seed: this.nextSeed++ }
    const { engine_config } = pipelineOf({ up: way, down: way }, ends)
    return { port, close: await this.start(engine_config.pipeline) }
  }

  /** rely with this many repairs per packet, in order. */
  async rely(rate: number): Promise<Carrying> {
    const [from, wire, to] = [this.port(), this.port(), this.port()]
    const path = await this.path(wire)
    const stopReceiver = await this.start({
      wire: { udp_local: { address: at(wire), output: 'lossy' } },
      decoder: { rely_decoder: { input: 'lossy', output: 'whole', release_in_order: true } },
      application: { udp: { remote_address: at(to), input: 'whole' } },
    })
    const stopSender = await this.start({
      application: { udp_local: { address: at(from), output: 'packets' } },
      encoder: {
        rely_encoder: { input: 'packets', output: 'coded', repair_target_rate: rate, repair_time_window: WINDOW_MS },
      },
      wire: { udp: { remote_address: at(path.port), input: 'coded' } },
    })
    return { from, to, close: () => closeAll([stopSender, stopReceiver, path.close]) }
  }

  /** raft over this many paths, with a realtime stream of this timeout. */
  async raft(paths: number, timeout: number): Promise<Carrying> {
    const [from, to] = [this.port(), this.port()]
    const wires = Array.from({ length: paths }, () => this.port())
    const opened = await Promise.all(wires.map((wire) => this.path(wire)))
    const end = (carriers: readonly Record<string, unknown>[], application: Record<string, unknown>) => {
      const pipeline: Record<string, unknown> = { application }
      carriers.forEach((udp, i) => {
        pipeline[`carrier ${i}`] = { udp: { ...udp, input: `to ${i}`, output: `from ${i}` } }
      })
      const stream = { input: 'sent', output: 'received', stream_handle: 1, realtime_stream: { timeout } }
      const joined = carriers.map((_, i) => ({ input: `from ${i}`, output: `to ${i}`, carrier_handle: i + 1 }))
      return { ...pipeline, raft: { raft: { streams: [stream], carriers: joined } } }
    }
    // Nobody answers the application, which has no need of one address for both ways.
    const receiving = { udp: { remote_address: at(to), input: 'received', output: 'sent' } }
    const sending = { udp: { local_address: at(from), input: 'received', output: 'sent' } }
    const far = wires.map((wire) => ({ local_address: at(wire), lock_to_first_peer: true }))
    const stopReceiver = await this.start(end(far, receiving))
    const stopSender = await this.start(
      end(
        opened.map(({ port }) => ({ remote_address: at(port) })),
        sending,
      ),
    )
    return { from, to, close: () => closeAll([stopSender, stopReceiver, ...opened.map(({ close }) => close)]) }
  }

  /** Two processes of srt-live-transmit with this latency, ms. Throws when they do not come to an understanding. */
  async srt(latency: number, bytes: number): Promise<Carrying> {
    // A handshake of which packets are lost may leave both waiting for good (1.5.1); the next one is another.
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const carrying = await this.srtOnce(latency, bytes)
      if (await carries(carrying, bytes)) return carrying
      await carrying.close()
    }
    throw new Error(`srt-live-transmit carried nothing in ${ATTEMPTS} attempts: try it by hand, without -loglevel`)
  }

  private async srtOnce(latency: number, bytes: number): Promise<Carrying> {
    const [from, wire, to] = [this.port(), this.port(), this.port()]
    const path = await this.path(wire)
    const quiet = ['-q', '-loglevel:fatal', `-chunk:${bytes}`]
    const transmit = (source: string, target: string): ChildProcess =>
      spawn('srt-live-transmit', [...quiet, source, target], { stdio: ['ignore', 'ignore', 'inherit'] })
    const options = `latency=${latency}&transtype=live`
    const receiver = transmit(`srt://${at(wire)}?mode=listener&${options}`, `udp://${at(to)}`)
    const sender = transmit(`udp://${at(from)}?mode=listener`, `srt://${at(path.port)}?mode=caller&${options}`)
    return { from, to, close: () => closeAll([() => ended(sender), () => ended(receiver), path.close]) }
  }
}

/** Whether a datagram comes through in `PATIENCE_MS`, when one is sent every 20 ms. */
async function carries({ from, to }: Carrying, bytes: number): Promise<boolean> {
  const socket = createSocket('udp4')
  socket.bind(to, '127.0.0.1')
  await once(socket, 'listening')
  // An empty number: whoever counts takes it for one that is not counted.
  const sending = setInterval(() => socket.send(Buffer.alloc(bytes), from, '127.0.0.1'), 20)
  try {
    return await once(socket, 'message', { signal: AbortSignal.timeout(PATIENCE_MS) }).then(
      () => true,
      () => false,
    )
  } finally {
    clearInterval(sending)
    await new Promise<void>((resolve) => socket.close(() => resolve()))
  }
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  child.kill('SIGKILL')
  await once(child, 'close')
}

async function closeAll(closes: readonly (() => Promise<void>)[]): Promise<void> {
  for (const close of closes) await close()
}
