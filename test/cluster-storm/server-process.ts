/** A server of the hub as a process that can be killed, stopped and started anew, and what it has told so far. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { identityOf, newIdentity } from '../../src/link/identity.ts'
import { ServerCopy, type ShownNode, type ToldEvent } from './server-copy.ts'

/** How long an answer is waited for, milliseconds; later nobody knows. */
const PATIENCE_MS = 3_000

export interface ServerOptions {
  readonly name: string
  /** Addresses of the NATS servers. */
  readonly servers: readonly string[]
  readonly replicas: number
  /** Text of the certificate of the NATS servers. */
  readonly tls?: { readonly ca: string }
  /** A broken server, which answers reads from what it has seen. */
  readonly isWithoutBarrier?: boolean
}

export interface Picture {
  readonly nodes: readonly (ShownNode & { readonly route: string })[]
  /** Ids of the nodes whose links stand here. */
  readonly links: readonly string[]
  readonly isInTouch: boolean
}

export type Outcome =
  | { readonly kind: 'answered'; readonly answer: unknown }
  | { readonly kind: 'failed'; readonly code: string; readonly message: string }
  /** No answer came. */
  | { readonly kind: 'unknown' }

type Said =
  | { id: number; answer: unknown }
  | { id: number; code: string; message: string }
  | { first: ShownNode[] }
  | { told: ToldEvent }
  | { fact: string }
  | { failed: string }

export class ServerProcess {
  readonly name: string
  readonly nodeId: string
  readonly #argument: string
  readonly #log: (line: string) => void
  #child: ChildProcess | undefined
  #waiting = new Map<number, (outcome: Outcome) => void>()
  #asked = 0
  /** What each of its processes has told, the last one being the one that runs. */
  readonly copies: ServerCopy[] = []
  #isReady = false

  constructor(options: ServerOptions, log: (line: string) => void) {
    const { privateKey } = newIdentity()
    this.name = options.name
    this.nodeId = identityOf(privateKey).nodeId
    this.#argument = JSON.stringify({ ...options, key: privateKey.export({ type: 'pkcs8', format: 'pem' }) })
    this.#log = log
  }

  /** Whether it has told what it sees first. */
  get isReady(): boolean {
    return this.#isReady
  }

  /** Nothing where it runs, as after two kills that overlap. */
  start(): void {
    if (this.#child !== undefined) return
    const child = fork(fileURLToPath(new URL('server-child.mjs', import.meta.url)), [this.#argument])
    this.#child = child
    child.on('message', (said: Said) => {
      // What a killed process has said may still be on its way.
      if (this.#child === child) this.#hear(said)
    })
  }

  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#child?.kill(signal)
  }

  async kill(): Promise<void> {
    const child = this.#child
    if (child === undefined) return
    this.#child = undefined
    this.#isReady = false
    for (const settle of this.#waiting.values()) settle({ kind: 'unknown' })
    this.#waiting = new Map()
    if (child.exitCode !== null || child.signalCode !== null) return
    const gone = once(child, 'exit')
    child.kill('SIGKILL')
    await gone
  }

  /** Asks for one step. One that is not there fails it with NOT_TRIED. */
  async ask(step: string, given: object = {}, patience = PATIENCE_MS): Promise<Outcome> {
    const child = this.#child
    if (child === undefined || !this.#isReady) return { kind: 'failed', code: 'NOT_TRIED', message: 'not there' }
    const id = ++this.#asked
    const waiting = this.#waiting
    return await new Promise<Outcome>((resolve) => {
      const settle = (outcome: Outcome) => {
        clearTimeout(timer)
        waiting.delete(id)
        resolve(outcome)
      }
      const timer = setTimeout(settle, patience, { kind: 'unknown' })
      waiting.set(id, settle)
      child.send({ id, step, ...given }, (error) => {
        if (error !== null) settle({ kind: 'unknown' })
      })
    })
  }

  /** What it shows now, compared with what it has told; undefined where it does not say. */
  async picture(): Promise<Picture | undefined> {
    const copy = this.copies.at(-1)
    const outcome = await this.ask('picture')
    if (outcome.kind !== 'answered' || copy !== this.copies.at(-1)) return undefined
    const picture = outcome.answer as Picture
    return picture
  }

  #hear(said: Said): void {
    const copy = this.copies.at(-1)
    if ('id' in said) {
      const settle = this.#waiting.get(said.id)
      if ('code' in said) settle?.({ kind: 'failed', code: said.code, message: said.message })
      else {
        const { answer } = said
        // Here, before anything that is told later.
        if (isPicture(answer)) copy?.compare(answer.nodes)
        settle?.({ kind: 'answered', answer })
      }
    } else if ('first' in said) {
      this.copies.push(new ServerCopy(said.first))
      this.#isReady = true
    } else if ('told' in said) copy?.take(said.told)
    else if ('fact' in said) this.#log(`${this.name}: ${said.fact}`)
    else this.#log(`${this.name}: ${said.failed}`)
  }
}

const isPicture = (answer: unknown): answer is Picture =>
  typeof answer === 'object' && answer !== null && 'isInTouch' in answer
