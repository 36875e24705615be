/** A node of the storm as `penstock up`, which is started anew as long as it is to run, as whoever supervises a process does. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { NodeProcess } from '../harness/node-process.ts'
import { type Caller, Failed, freeAddress } from '../hub/callers.ts'
import type { Place } from '../storm/place.ts'
import { restCaller } from './rest-caller.ts'
import type { Party } from './strikes.ts'

/** Between two tries to start, milliseconds. */
const AGAIN_MS = 200
/** How long it may take to start, whatever goes wrong meanwhile, milliseconds. */
const START_MS = 90_000

export interface NodePartyOptions {
  readonly name: string
  readonly directory: string
  /** As of `penstock up`. */
  readonly flags: Record<string, string>
  readonly log: (line: string) => void
  /** Hears of each kill, before it and after it. */
  readonly killed: (party: NodeParty) => void
}

export class NodeParty implements Place, Party {
  readonly name: string
  readonly #directory: string
  readonly #flags: Record<string, string>
  readonly #log: (line: string) => void
  readonly #killed: (party: NodeParty) => void
  #process: NodeProcess | undefined
  #rest: Caller | undefined
  /** Of the process that runs, or starts. */
  #pid: number | undefined
  /** Ends with the next kill. */
  #running: AbortController | undefined
  kills = 0

  private constructor(
    { name, directory, flags, log, killed }: NodePartyOptions,
    addresses: { http: string; grpc: string },
  ) {
    this.name = name
    this.#directory = join(directory, name)
    this.#flags = { 'node-name': name, 'data-dir': this.#directory, loopback: 'open', ...addresses, ...flags }
    this.#killed = killed
    this.#log = (line) => log(`${name}: ${line}`)
  }

  static async make(options: NodePartyOptions): Promise<NodeParty> {
    return new NodeParty(options, { http: await freeAddress(), grpc: await freeAddress() })
  }

  /** Where its HTTP listens, a port of this machine. */
  get port(): number {
    return Number(this.#flags.http?.split(':')[1])
  }

  get pid(): number | undefined {
    return this.#pid
  }

  get id(): string {
    return (this.#process as NodeProcess).id
  }

  get caller(): Caller {
    return (this.#process as NodeProcess).caller
  }

  /** As `caller`, over HTTP. */
  get rest(): Caller {
    return this.#rest as Caller
  }

  /** Sets flags that are known only once it has its addresses. */
  configure(flags: Record<string, string>): void {
    Object.assign(this.#flags, flags)
  }

  /** Resolves once it is ready, or killed; rejects when it does not start. */
  async start(): Promise<void> {
    if (this.#running !== undefined) return
    const running = new AbortController()
    this.#running = running
    const end = performance.now() + START_MS
    while (!running.signal.aborted) {
      try {
        const before = this.#process
        this.#process = await this.#run(running.signal)
        this.#rest ??= restCaller(this.#process.address, this.#certificate())
        before?.caller.close()
        return
      } catch (error) {
        if (running.signal.aborted) return
        this.#log(`did not start: ${error}`)
        if (performance.now() > end) throw new Error(`${this.name} does not start: ${error}`)
        await new Promise((resolve) => setTimeout(resolve, AGAIN_MS))
      }
    }
  }

  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#process?.signal(signal)
  }

  async kill(): Promise<void> {
    if (this.#running === undefined) return
    this.kills++
    this.#killed(this)
    this.#running.abort()
    this.#running = undefined
    await this.#process?.kill()
    this.#killed(this)
  }

  /** Ends it for good. */
  async close(): Promise<void> {
    await this.kill()
    this.#process?.caller.close()
  }

  /** Made at its first start, where it speaks TLS. */
  #certificate(): Buffer | undefined {
    return this.#flags['http-tls'] === 'auto' ? readFileSync(join(this.#directory, 'tls.crt')) : undefined
  }

  async #run(signal: AbortSignal): Promise<NodeProcess> {
    const spawned = (pid: number) => {
      this.#pid = pid
    }
    const process = await NodeProcess.start({
      directory: this.#directory,
      flags: this.#flags,
      command: { spawned, said: this.#log },
      signal,
    })
    if (!signal.aborted) return process
    await process.kill()
    throw new Error('killed')
  }
}

/** What became of a call: `refused` says that nothing was changed. */
export type CallOutcome =
  | { readonly kind: 'answered'; readonly answer: unknown }
  | { readonly kind: 'refused'; readonly code: string; readonly message: string }
  | { readonly kind: 'unknown'; readonly code: string; readonly message: string }

/** Codes of failures that a storm brings with it, and that do not tell what was done. */
const UNCERTAIN = ['UNAVAILABLE', 'UNKNOWN', 'CANCELLED', 'DEADLINE_EXCEEDED', 'ABORTED']

/** Calls an operation of a node; gives it up after `patience` milliseconds. */
export async function call(
  caller: Caller,
  name: Parameters<Caller['unary']>[0],
  request: object,
  patience: number,
): Promise<CallOutcome> {
  try {
    return { kind: 'answered', answer: await caller.unary(name, request, AbortSignal.timeout(patience)) }
  } catch (error) {
    if (!(error instanceof Failed)) throw error
    const { code, message } = error
    return { kind: UNCERTAIN.includes(code) ? 'unknown' : 'refused', code, message }
  }
}
