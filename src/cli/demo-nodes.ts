/** What the demonstrations of hubs have in common: starting and ending, joining, following nodes and runs, sending UDP from node to node. */
import type { Client, Node, TelemetrySample } from '@penstock/client'
import { clientOf } from './client.ts'
import { Failure, Interrupted } from './failure.ts'
import type { NodeProcess } from './node-process.ts'
import { interruption } from './options.ts'
import type { RequestSocket } from './request-socket.ts'
import { paint, print } from './terminal.ts'

/** How long a request to join may wait, ms. */
const PATIENCE_MS = 60_000

const configOf = (pipeline: object): string => JSON.stringify({ version: 1, engine_config: { pipeline } })

/** Measures the probes that arrive on a UDP port, which the system chooses. */
export const receiver = configOf({
  socket: { udp_local: { address: '127.0.0.1:0', output: 'received' } },
  sink: { traffic_sink: { input: 'received', latency_budget: 1_000 } },
})

/** Sends 1,000 probes a second to a UDP port. */
export const sender = (port: number): string =>
  configOf({
    source: { throughput_traffic_source: { output: 'probes', throughput_mbit: 8, payload_size: 1_000 } },
    socket: { udp: { remote_address: `127.0.0.1:${port}`, input: 'probes' } },
  })

type NodeChange = 'joined' | 'left' | 'connected' | 'disconnected' | 'changed'

/** What streamNodes told so far; waits for what is still to come. */
export class Changes {
  readonly #seen: { change: NodeChange; node: Node }[] = []
  #failure: unknown
  #isOpen = false
  #wake: () => void = () => undefined

  private constructor(client: Client, signal: AbortSignal) {
    this.#follow(client, signal).catch((error) => {
      this.#failure = error
      this.#wake()
    })
  }

  /** Fulfilled once the stream has told of the nodes there are: everything later is told as a change. */
  static async open(client: Client, signal: AbortSignal): Promise<Changes> {
    const changes = new Changes(client, signal)
    while (!changes.#isOpen) await changes.#more()
    return changes
  }

  async #more(): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure
    await new Promise<void>((resolve) => {
      this.#wake = resolve
    })
  }

  async #follow(client: Client, signal: AbortSignal): Promise<void> {
    for await (const { initialResponse: initial, updateResponse: update } of client.streamNodes({}, { signal })) {
      if (initial !== undefined) {
        step('streamNodes', `at first: ${initial.nodes.map(({ name }) => name).join(', ')}`)
        this.#isOpen = true
      }
      const told = [
        ['joined', update?.authenticatedNode],
        ['left', update?.deauthenticatedNode],
        ['connected', update?.connectedNode],
        ['disconnected', update?.disconnectedNode],
        ['changed', update?.updatedNode],
      ] as const
      for (const [change, node] of told) {
        if (node === undefined) continue
        step('streamNodes', `${node.name} ${change}`)
        this.#seen.push({ change, node })
      }
      this.#wake()
    }
  }

  /** Takes the first such change out of what was seen. */
  async next(change: NodeChange, id: string): Promise<void> {
    for (;;) {
      const at = this.#seen.findIndex((seen) => seen.change === change && seen.node.id === id)
      if (at >= 0) {
        this.#seen.splice(at, 1)
        return
      }
      await this.#more()
    }
  }
}

export interface Demonstration {
  /** Sees to the end of a process, which takes the place of an earlier one of the same node. */
  readonly keep: (node: NodeProcess) => NodeProcess
  /** Does this once all processes have ended. */
  readonly atEnd: (step: () => Promise<unknown>) => void
  /** Aborted at the end. */
  readonly signal: AbortSignal
}

/** Plays it, and ends what it has started. Throws Interrupted, or Failure when it is not done after `patience` ms. */
export async function demonstrate(patience: number, play: (demo: Demonstration) => Promise<void>): Promise<void> {
  const stop = interruption()
  const over = new AbortController()
  const started = performance.now()
  const running = new Map<string, NodeProcess>()
  const last: (() => Promise<unknown>)[] = []
  // What was under way when it ended is not gone on with.
  const refuseOver = (end: () => Promise<unknown>) => {
    if (!over.signal.aborted) return
    end().catch(() => undefined)
    throw new Failure('it is over')
  }
  const keep = (node: NodeProcess) => {
    refuseOver(() => node.stop())
    running.set(node.id, node)
    return node
  }
  const atEnd = (end: () => Promise<unknown>) => {
    refuseOver(end)
    last.unshift(end)
  }
  const limit = AbortSignal.any([stop, AbortSignal.timeout(patience)])
  const ended = new Promise<never>((_, reject) => {
    const end = () => {
      reject(
        stop.aborted ? new Interrupted('interrupted', stop.reason) : new Failure(`not done after ${patience / 1000} s`),
      )
    }
    if (limit.aborted) end()
    else limit.addEventListener('abort', end)
  })
  ended.catch(() => undefined)
  try {
    await Promise.race([play({ keep, atEnd, signal: over.signal }), ended])
    print(`\nall of it was seen, in ${((performance.now() - started) / 1000).toFixed(1)} s`)
  } finally {
    over.abort()
    // One that cannot be ended keeps no other.
    await Promise.allSettled([...running.values()].map((node) => node.stop()))
    for (const end of last) await end().catch(() => undefined)
  }
}

export function step(who: string, text: string): void {
  print(`${paint(who.padStart(12), 'cyan')}  ${text}`)
}

export async function join(name: string, node: NodeProcess, hub: NodeProcess, socket: RequestSocket): Promise<void> {
  const asked = clientOf(`http://${node.http}`).authenticateByRequest(
    { hubServerAddress: `http://${hub.http}` },
    { timeout: PATIENCE_MS },
  )
  const frame = await Promise.race([socket.next(), asked.then(() => undefined)])
  if (frame === undefined) throw new Failure(`${name} joined without being approved`)
  if ('failure' in frame) throw frame.failure
  const { requestId, node: who } = frame.request
  if (who?.id !== node.id) throw new Failure(`the hub shows a request of ${who?.id} instead of ${node.id}`)
  step('operator', `approves request ${requestId} of ${who.name} ${who.id} over the WebSocket`)
  socket.answer(requestId, true)
  await asked
  step(name, 'authenticateByRequest has returned: this node is on the hub')
}

export function metric(sample: TelemetrySample, path: string, name: string): number {
  const found = sample.metricCollections.find((collection) => collection.path === path)?.metrics[name]
  return Number(found?.uint64Value ?? found?.int64Value ?? found?.doubleValue ?? Number.NaN)
}

/** Follows a run until `enough` says so; gives that sample. */
export async function until(
  client: Client,
  node: string,
  run: string,
  enough: (sample: TelemetrySample) => boolean,
): Promise<TelemetrySample> {
  for await (const sample of client.openTelemetryStream({ nodeId: node, runId: run })) if (enough(sample)) return sample
  throw new Failure(`the telemetry of run ${run} ended`)
}
