/** Starts pipelines in real worker threads and talks to them through real sockets, for tests. */
import dgram from 'node:dgram'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { components } from '../../src/dataplane/components/registry.ts'
import { checkPipelineConfig } from '../../src/dataplane/engine/check.ts'
import type { Registry } from '../../src/dataplane/engine/component.ts'
import type { PipelineConfig } from '../../src/dataplane/engine/config.ts'
import { type MetricSnapshot, RegionReader } from '../../src/dataplane/engine/metrics.ts'
import { createRunPool, type RunPoolOptions } from '../../src/dataplane/engine/pool.ts'
import type { LogLine, RunHandle, RunOptions, RunPool } from '../../src/dataplane/engine/run.ts'
import { native } from '../../src/dataplane/native/native.ts'
import { type Pipeline, Refused } from '../harness/component.ts'
import { until } from '../harness/waiting.ts'
import extra from './extra.mjs'

/** The product's components and those of the tests. */
export const registry: Registry = new Map([
  ...components,
  ...extra.map((definition) => [definition.key, definition] as const),
])

/** A checked configuration of these components; throws `Refused` with what is wrong. */
export function configure(pipeline: Pipeline): PipelineConfig {
  const json = JSON.stringify({ version: 1, engine_config: { pipeline } })
  const { config, problems } = checkPipelineConfig(json, registry)
  if (!config) throw new Refused(problems)
  return config
}

/** For threads that are kept ready: ends at once. */
export const rehearsal = configure({ bomb: { bomb: { delay: 0, poison: 'NONE' } } })

/** A pool whose threads know the test components. None is kept ready unless a rehearsal is given, so that nothing is open but what runs open. */
export function testPool(options: Omit<RunPoolOptions, 'registry' | 'thread'> = {}): RunPool {
  const thread = fileURLToPath(new URL('./thread.mjs', import.meta.url))
  return createRunPool({ ...options, registry, thread })
}

/** A run with its log and its metrics at hand. */
export class TestRun {
  readonly handle: RunHandle
  readonly log: LogLine[] = []
  private readonly reader: RegionReader
  private whole: MetricSnapshot

  constructor(pool: RunPool, pipeline: Pipeline, options: Partial<RunOptions> = {}) {
    const whole = { runId: 'test', performanceMode: false, level: 'DEBUG' as const, ...options }
    this.handle = pool.start({ ...whole, config: configure(pipeline) }, (lines) => this.log.push(...lines))
    this.reader = new RegionReader(this.handle.region)
    this.whole = this.reader.blank
  }

  /** Published numbers: component, then metric. */
  metrics(): Record<string, Record<string, number>> {
    const snapshot = this.reader.snapshot()
    if (snapshot !== undefined) this.whole = snapshot
    const { values } = this.whole
    const result: Record<string, Record<string, number>> = {}
    for (const { path, name, index } of this.reader.entries) {
      result[path] ??= {}
      result[path][name] = values[index]
    }
    return result
  }

  /** The port that a socket component is bound to or listens at, from the log. */
  port(component: string): number {
    const line = this.log.find(
      (entry) => entry.component === component && /^(bound to|listens at) /.test(entry.message),
    )
    if (!line) throw new Error(`"${component}" has not said where it is bound to`)
    return Number(/:(\d+)$/.exec(String(line.fields.address))?.[1])
  }

  async stop(): Promise<void> {
    this.handle.stop()
    await this.handle.ended
  }
}

/** Starts a run and waits until packets flow. */
export async function startRun(pool: RunPool, pipeline: Pipeline, options?: Partial<RunOptions>): Promise<TestRun> {
  const run = new TestRun(pool, pipeline, options)
  await run.handle.running
  return run
}

/** A plain socket at the other end: sends, and keeps what it hears. */
export class Peer {
  readonly heard: { text: string; bytes: Buffer; port: number }[] = []
  readonly socket: dgram.Socket
  readonly host: string

  private constructor(family: 4 | 6) {
    this.socket = dgram.createSocket(family === 4 ? 'udp4' : 'udp6')
    this.host = family === 4 ? '127.0.0.1' : '::1'
    this.socket.on('message', (bytes, { port }) => this.heard.push({ text: bytes.toString('latin1'), bytes, port }))
    this.socket.on('error', () => {})
  }

  static async open(family: 4 | 6 = 4): Promise<Peer> {
    const peer = new Peer(family)
    peer.socket.bind(0, peer.host)
    await once(peer.socket, 'listening')
    return peer
  }

  get port(): number {
    return (this.socket.address() as AddressInfo).port
  }

  /** `ip:port` as configurations have it. */
  get address(): string {
    return this.host === '::1' ? `[::1]:${this.port}` : `${this.host}:${this.port}`
  }

  send(to: number, ...payloads: (string | Uint8Array)[]): Promise<unknown> {
    return Promise.all(
      payloads.map(
        (payload) => new Promise((resolve) => this.socket.send(payload, to, this.host, (error) => resolve(error))),
      ),
    )
  }

  async hears(count: number): Promise<void> {
    await until(() => this.heard.length >= count, `${count} datagrams heard`)
  }

  close(): void {
    this.socket.close()
  }
}

export interface Thread {
  /** As ps names it: R is running or waiting for a CPU, S is asleep. */
  state(): string
  /** CPU time it has taken, ns. */
  spent(): number
}

/** The one thread of this process that is pinned to the first CPU. */
export function pinnedThread(): Thread {
  const cpu = String(native.affinity()[0])
  const task = readdirSync('/proc/self/task').find((name) =>
    new RegExp(`^Cpus_allowed_list:\\s*${cpu}$`, 'm').test(readFileSync(`/proc/self/task/${name}/status`, 'utf8')),
  )
  const read = (file: string) => readFileSync(`/proc/self/task/${task}/${file}`, 'utf8')
  return {
    state: () => /\) (\w) /.exec(read('stat'))?.[1] as string,
    spent: () => Number(read('schedstat').split(' ')[0]),
  }
}

/** Whether a thread is asleep and stays so for a while: not one moment of CPU time goes to it. */
export async function sleeps(thread: Thread): Promise<boolean> {
  const spent = thread.spent()
  const isAsleep = thread.state() === 'S'
  await new Promise((resolve) => setTimeout(resolve, 300))
  return isAsleep && thread.state() === 'S' && thread.spent() === spent
}

/** A pool that knows which of its runs are not over. */
export function watched(pool: RunPool): { pool: RunPool; active: Map<string, RunHandle> } {
  const active = new Map<string, RunHandle>()
  const start: RunPool['start'] = (options, onLog) => {
    const handle = pool.start(options, onLog)
    active.set(handle.id, handle)
    handle.ended.then(() => active.delete(handle.id))
    return handle
  }
  return { pool: { ...pool, start }, active }
}
