/** A hub of three servers on three NATS servers as processes, with simulated nodes at each, and real nodes that call each other. */
import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { NodeRecord } from '../../src/link/link.ts'
import { packageRoot } from '../../src/package-root.ts'
import { cpuTime } from './cpu-time.ts'

/** Where simulated nodes connect first. */
export interface HubAsked {
  readonly address: string
  readonly hubId: string
  /** Raw public key, hexadecimal text. */
  readonly hubKey: string
}

/** What a simulated node says of itself. */
export const recordOf = (name: string): NodeRecord => ({
  name,
  metadata: { items: { region: { stringValue: 'eu' } } },
  services: ['PIPELINES'],
})

/** CPU time of a process, s. */
export const cpuSeconds = (pid: number): number => cpuTime(pid) / 1e9

/** Memory of a process that is in RAM, kB. */
export function residentKb(pid: number): number {
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1])
}

/** A penstock process. */
export class UpProcess {
  readonly id: string
  readonly url: string
  readonly #child: ChildProcess
  readonly #directory: string

  private constructor(child: ChildProcess, directory: string, url: string, id: string) {
    this.#child = child
    this.#directory = directory
    this.url = url
    this.id = id
  }

  static async start(name: string, ...flags: string[]): Promise<UpProcess> {
    const directory = mkdtempSync(join(tmpdir(), 'penstock-bench-'))
    const own = ['--data-dir', directory, '--node-name', name, '--grpc', 'none', '--loopback', 'open']
    const args = [join(packageRoot(), 'bin/penstock.js'), 'up', ...own, '--log-level', 'error', ...flags]
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    process.once('exit', () => child.kill('SIGKILL'))
    for await (const line of createInterface({ input: child.stdout })) {
      const ready = /^penstock ready http=(\S+) grpc=none node=(\S+)$/.exec(line)
      if (ready !== null) return new UpProcess(child, directory, `http://${ready[1]}`, ready[2] as string)
    }
    throw new Error(`${name} did not start`)
  }

  get pid(): number {
    return this.#child.pid as number
  }

  signal(signal: 'SIGKILL' | 'SIGSTOP'): void {
    this.#child.kill(signal)
  }

  async close(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      const gone = once(this.#child, 'exit')
      this.#child.kill('SIGKILL')
      await gone
    }
    rmSync(this.#directory, { recursive: true, force: true })
  }
}

/** Simulated nodes in a process of their own. */
export class LinkedNodes {
  readonly #child: ChildProcess
  /** Raw public keys. */
  keys: readonly Uint8Array[] = []

  constructor() {
    this.#child = fork(join(packageRoot(), 'dist/bench/support/linked-nodes.js'))
  }

  async make(count: number): Promise<void> {
    const { keys } = await this.#ask<{ keys: string[] }>({ count })
    this.keys = keys.map((key) => Buffer.from(key, 'hex'))
  }

  /** Resolves when all of them have a link. */
  async connect(hub: HubAsked): Promise<void> {
    await this.#ask({ hub })
  }

  get pid(): number {
    return this.#child.pid as number
  }

  close(): void {
    this.#child.kill('SIGKILL')
  }

  async #ask<T>(request: object): Promise<T> {
    const told = nextMessage<T>(this.#child)
    this.#child.send(request)
    return await told
  }
}

/** What a child says next. Rejects when it ends instead. */
async function nextMessage<T>(child: ChildProcess): Promise<T> {
  const over = new AbortController()
  const { signal } = over
  const ended = once(child, 'exit', { signal }).then(([code, by]) => {
    throw new Error(`${child.spawnargs.slice(1).join(' ')} has ended with ${by ?? code} instead of an answer`)
  })
  try {
    const [message] = (await Promise.race([once(child, 'message', { signal }), ended])) as [T]
    return message
  } finally {
    over.abort()
    await ended.catch(() => undefined)
  }
}

/** The path to an address, which can be made silent. */
export class HeldPath {
  /** Where the path begins. */
  readonly address: string
  readonly #child: ChildProcess

  private constructor(child: ChildProcess, address: string) {
    this.#child = child
    this.address = address
  }

  static async to(target: string): Promise<HeldPath> {
    const child = fork(join(packageRoot(), 'dist/bench/support/tcp-proxy.js'), [target])
    const { address } = await nextMessage<{ address: string }>(child)
    return new HeldPath(child, address)
  }

  hold(): void {
    this.#child.kill('SIGSTOP')
  }

  close(): void {
    this.#child.kill('SIGKILL')
  }
}

/** Something that is asked again and again, so many milliseconds after each answer. */
export class Asking {
  answers = 0
  readonly failures: unknown[] = []
  /** ms. */
  slowest = 0
  #isOver = false
  readonly #done: Promise<void>

  constructor(ask: () => Promise<unknown>, pause: number) {
    this.#done = this.#run(ask, pause)
  }

  async stop(): Promise<void> {
    this.#isOver = true
    await this.#done
  }

  async #run(ask: () => Promise<unknown>, pause: number): Promise<void> {
    while (!this.#isOver) {
      const asked = performance.now()
      await ask().then(
        () => this.answers++,
        (error: unknown) => this.failures.push(error),
      )
      this.slowest = Math.max(this.slowest, performance.now() - asked)
      await new Promise((resolve) => setTimeout(resolve, pause))
    }
  }
}
