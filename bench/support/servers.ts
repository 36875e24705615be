/** The servers of the API benches, each a process on the second CPU: a node, and a bare server that answers the same bytes. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { packageRoot } from '../../src/package-root.ts'
import { cpuOf, nativeProgram } from '../measure.ts'
import type { BareAnswers } from './bare.ts'

export const LOAD_CPU = 0
const SERVER_CPU = 1

/** A server process. */
export class Server {
  readonly port: number
  /** gRPC, of a node. */
  readonly grpcPort: number
  readonly #child: ChildProcess
  readonly #directory: string | undefined

  private constructor(child: ChildProcess, port: number, grpcPort: number, directory?: string) {
    this.#child = child
    this.port = port
    this.grpcPort = grpcPort
    this.#directory = directory
  }

  /** `penstock up` with a data directory of its own. */
  static async node(...flags: string[]): Promise<Server> {
    const directory = mkdtempSync(join(tmpdir(), 'penstock-bench-'))
    const free = ['--http', '127.0.0.1:0', '--grpc', '127.0.0.1:0', '--log-level', 'warn']
    const { child, ready } = await run(
      [join(packageRoot(), 'bin/penstock.js'), 'up', '--data-dir', directory, ...free, ...flags],
      /^penstock ready http=\S*:(\d+) grpc=\S*:(\d+)/,
    )
    return new Server(child, Number(ready[1]), Number(ready[2]), directory)
  }

  static async bare(answers: BareAnswers): Promise<Server> {
    const script = join(packageRoot(), 'dist/bench/support/bare.js')
    const { child, ready } = await run([script], /^ready (\d+)/, JSON.stringify(answers))
    return new Server(child, Number(ready[1]), Number(ready[1]))
  }

  get pid(): number {
    return this.#child.pid as number
  }

  /** CPU time used so far by all its threads, s. */
  cpu(): number {
    return cpuOf(this.pid)
  }

  /** Memory that is in RAM, bytes. */
  memory(): number {
    const status = readFileSync(`/proc/${this.#child.pid}/status`, 'latin1')
    return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]) * 1024
  }

  async stop(): Promise<void> {
    const gone = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await gone
    if (this.#directory !== undefined) rmSync(this.#directory, { recursive: true, force: true })
  }
}

async function run(
  args: string[],
  pattern: RegExp,
  input = '',
): Promise<{ child: ChildProcess; ready: RegExpExecArray }> {
  const child = spawn('taskset', ['-c', String(SERVER_CPU), process.execPath, ...args], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  child.stdin.end(input)
  // However the bench ends, the server does not outlive it.
  process.on('exit', () => child.kill('SIGKILL'))
  for await (const line of createInterface({ input: child.stdout })) {
    const ready = pattern.exec(line)
    if (ready !== null) return { child, ready }
  }
  throw new Error(`the server ended before it was ready: ${args.join(' ')}`)
}

/** Answers that `server` gives to GET `path` with 32 requests under way for `seconds`. */
async function load(server: Server, path: string, seconds: number): Promise<number> {
  const child = spawn(nativeProgram('load'), ['rest', server.port, 32, seconds, LOAD_CPU].map(String), {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  child.stdin.end(`GET ${path} HTTP/1.1\r\nhost: 127.0.0.1:${server.port}\r\n\r\n`)
  let output = ''
  child.stdout.on('data', (chunk) => {
    output += chunk
  })
  await once(child, 'close')
  return (JSON.parse(output) as { answers: number }).answers
}

/** Answers a second of the server's CPU time: who else keeps the machine busy does not show. */
export async function restRate(server: Server, path: string, seconds: number): Promise<number> {
  const before = server.cpu()
  const answers = await load(server, path, seconds)
  return answers / (server.cpu() - before)
}

/** A pipeline of the node at `port`, made for the bench; returns what its REST paths need. */
export async function makePipeline(port: number, name: string): Promise<{ node: string; id: string }> {
  const base = `http://127.0.0.1:${port}/v1`
  const { nodeId: node } = (await (await fetch(`${base}/hub-client/local-node-id`)).json()) as { nodeId: string }
  const jsonConfig = readFileSync(join(packageRoot(), 'examples/udp-forward.json'), 'utf8')
  const made = await fetch(`${base}/nodes/${node}/pipelines`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ name, jsonConfig }),
  })
  const { pipeline } = (await made.json()) as { pipeline: { id: string } }
  return { node, id: pipeline.id }
}
