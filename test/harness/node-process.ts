/** A node in a process of its own, for tests that kill and stop it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { RunningNode } from '../api/running-node.ts'
import { type Caller, freeAddress, grpcCaller, httpCaller } from '../hub/callers.ts'

const running = new Set<ChildProcess>()

/** Ends all that have not ended. */
export async function endProcesses(): Promise<void> {
  await Promise.all([...running].map((child) => end(child)))
}

async function end(child: ChildProcess): Promise<void> {
  running.delete(child)
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = once(child, 'exit')
  child.kill('SIGKILL')
  await gone
}

export interface NodeProcessOptions {
  readonly directory: string
  /** As of `penstock up`; HTTP listens on a free port that stays its own over restarts, gRPC too where `grpc` is '127.0.0.1:0'. */
  readonly flags?: Record<string, string>
  /** How much faster than real time links live; default 1. */
  readonly speed?: number
  /** Has it run as `penstock up`, in real time, and hears of it. */
  readonly command?: CommandListener
  /** Ends the start, and the process with it. */
  readonly signal?: AbortSignal
}

interface CommandListener {
  spawned(pid: number): void
  /** A line of its log. */
  said(line: string): void
}

const script = fileURLToPath(new URL('../hub/node-child.mjs', import.meta.url))
const command = fileURLToPath(new URL('../../bin/penstock.js', import.meta.url))

function spawnNode(flags: Record<string, string>, speed: number, listener?: CommandListener): ChildProcess {
  if (listener === undefined) {
    return spawn(process.execPath, [script, JSON.stringify({ flags, speed })], { stdio: ['ignore', 'pipe', 'inherit'] })
  }
  const args = Object.entries(flags).flatMap(([name, value]) =>
    value === 'true' ? [`--${name}`] : [`--${name}`, value],
  )
  const child = spawn(process.execPath, [command, 'up', ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  createInterface({ input: child.stderr }).on('line', (line) => listener.said(line))
  if (child.pid !== undefined) listener.spawned(child.pid)
  return child
}

/** What a node says when it is ready; rejects when it ends before that. */
async function ready(child: ChildProcess): Promise<{ id: string; http: string; grpc?: string }> {
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream })
  const line = await new Promise<string>((resolve, reject) => {
    lines.once('line', resolve)
    lines.once('close', () => reject(new Error('the node has ended before it was ready')))
  })
  if (!line.startsWith('{')) {
    const { node, http, grpc } = Object.fromEntries(line.split(' ').map((word) => word.split('=', 2)))
    return { id: node, http, grpc }
  }
  const said = JSON.parse(line) as { id: string; http: string; error?: string }
  if (said.error !== undefined) throw new Error(said.error)
  return said
}

export class NodeProcess {
  readonly id: string
  /** host:port of HTTP. */
  readonly address: string
  readonly caller: Caller
  readonly #child: ChildProcess
  readonly #options: NodeProcessOptions

  private constructor(
    child: ChildProcess,
    options: NodeProcessOptions,
    said: { id: string; http: string; grpc: string },
  ) {
    this.#child = child
    this.#options = options
    this.id = said.id
    this.address = said.http
    const node = { http: said.http, grpc: said.grpc }
    const { directory, flags = {} } = options
    const certificate = flags['http-tls'] === 'auto' ? readFileSync(join(directory, 'tls.crt')) : undefined
    this.caller =
      node.grpc === 'none' ? httpCaller({ node } as RunningNode) : grpcCaller({ node } as RunningNode, certificate)
  }

  static async start(options: NodeProcessOptions): Promise<NodeProcess> {
    const { directory, speed = 1 } = options
    options.signal?.throwIfAborted()
    const flags: Record<string, string> = { 'data-dir': directory, http: await freeAddress(), ...options.flags }
    if (flags.grpc === '127.0.0.1:0') flags.grpc = await freeAddress()
    const child = spawnNode(flags, speed, options.command)
    running.add(child)
    const stop = () => void end(child)
    options.signal?.addEventListener('abort', stop)
    const said = await ready(child).finally(() => options.signal?.removeEventListener('abort', stop))
    return new NodeProcess(child, { ...options, speed, flags }, { ...said, grpc: flags.grpc ?? 'none' })
  }

  /** Starts it again, at the same addresses. */
  again(): Promise<NodeProcess> {
    return NodeProcess.start(this.#options)
  }

  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#child.kill(signal)
  }

  /** Its caller goes on being told that nobody answers. */
  async kill(): Promise<void> {
    await end(this.#child)
  }

  /** Open descriptors of the process. */
  get descriptors(): number {
    return readdirSync(`/proc/${this.#child.pid}/fd`).length
  }

  async list(): Promise<{ id: string; name: string; online: boolean }[]> {
    return (await this.caller.unary('getNodes', { metadataFilters: {}, serviceFilters: [] })).nodes
  }

  /** Waits, told by its stream, until the connection state is this one. */
  async reaches(state: string): Promise<void> {
    const stream = await this.caller.stream('streamConnectionState')
    while ((await stream.next()).state !== state);
    stream.close()
  }
}
