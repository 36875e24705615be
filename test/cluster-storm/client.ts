/** Who works on nodes of the hub through any of its servers, and notes what was asked, what was answered, and when. */
import type { Random } from '../../src/dataplane/engine/random.ts'
import { newIdentity } from '../../src/link/identity.ts'
import { rawKey } from '../../src/link/keys.ts'
import type { Answer, Input, NodeOperation, Place } from './history.ts'
import type { Outcome, ServerProcess } from './server-process.ts'

const MAX_PAUSE_MS = 40
/** Places of a node that are remembered, to be given back. */
const PLACES = 4

/** A node that is worked on. */
export class Subject {
  /** Whether links of it come and go. */
  readonly isLinked: boolean
  readonly nodeId: string
  readonly rawKey: string
  /** Its private key, PKCS #8 as PEM. */
  readonly nodeKey: string
  readonly history: NodeOperation[] = []
  readonly places: Place[] = []

  constructor(isLinked: boolean) {
    const { nodeId, publicKey, privateKey } = newIdentity()
    this.isLinked = isLinked
    this.nodeId = nodeId
    this.rawKey = Buffer.from(rawKey(publicKey)).toString('hex')
    this.nodeKey = privateKey.export({ type: 'pkcs8', format: 'pem' }) as string
  }
}

export interface ClientOptions {
  readonly name: string
  readonly random: Random
  readonly servers: readonly ServerProcess[]
  readonly subjects: readonly Subject[]
  /** Hears of every outcome. */
  readonly onOutcome: (step: string, outcome: string) => void
}

/** What is asked of which, by how often. */
const UNLINKED = ['read', 'read', 'read', 'admit', 'admit', 'update', 'update', 'remove', 'expel'] as const
const LINKED = [
  'connect',
  'connect',
  'connect',
  'disconnect',
  'read',
  'read',
  'admit',
  'admit',
  'remove',
  'expel',
] as const
type Step = (typeof UNLINKED)[number] | (typeof LINKED)[number]

export class Client {
  readonly #options: ClientOptions
  #names = 0

  constructor(options: ClientOptions) {
    this.#options = options
  }

  /** Asks until `isOver` says so. */
  async work(isOver: () => boolean): Promise<void> {
    const { random, servers, subjects } = this.#options
    while (!isOver()) {
      const subject = this.#pick(subjects)
      await this.#act(this.#pick(servers), subject, this.#pick<Step>(subject.isLinked ? LINKED : UNLINKED))
      await new Promise((resolve) => setTimeout(resolve, random.below(MAX_PAUSE_MS)))
    }
  }

  /** A read after a barrier; whether it was answered. */
  async read(server: ServerProcess, subject: Subject): Promise<boolean> {
    return await this.#ask(server, subject, 'read', { kind: 'read' })
  }

  async #act(server: ServerProcess, subject: Subject, step: Step): Promise<void> {
    const name = `${this.#options.name}-${++this.#names}`
    if (step === 'disconnect') await server.ask(step, subject)
    else if (step === 'connect') await this.#connect(server, subject, name)
    else if (step === 'expel') {
      const place = this.#pick(subject.places)
      if (place !== undefined) await this.#ask(server, subject, step, { kind: step, place })
    } else if (step === 'admit' || step === 'update') await this.#ask(server, subject, step, { kind: step, name })
    else await this.#ask(server, subject, step, { kind: step })
  }

  /** What links stand is looked at when all is calm; a refusal says that it is no member. */
  async #connect(server: ServerProcess, subject: Subject, name: string): Promise<void> {
    const called = performance.now()
    const outcome = await server.ask('connect', { nodeKey: subject.nodeKey, name })
    const { connected, isNoMember } = (outcome.kind === 'answered' ? outcome.answer : {}) as Record<string, boolean>
    this.#options.onOutcome('connect', connected ? 'answered' : isNoMember ? 'refused' : 'UNAVAILABLE')
    if (isNoMember !== true) return
    const answered = { at: performance.now(), answer: { done: false } }
    subject.history.push({ input: { kind: 'connect', name }, called, answered, server: server.name })
  }

  async #ask(server: ServerProcess, subject: Subject, step: Input['kind'], input: Input): Promise<boolean> {
    const { nodeId, rawKey, history, places } = subject
    const called = performance.now()
    const outcome = await server.ask(step, { nodeId, rawKey, ...input })
    this.#options.onOutcome(step, outcome.kind === 'failed' ? outcome.code : outcome.kind)
    if (outcome.kind === 'answered') {
      const answer = outcome.answer as Answer
      history.push({ input, called, answered: { at: performance.now(), answer }, server: server.name })
      if (input.kind === 'admit') places.splice(0, places.length - PLACES + 1, answer as Place)
      return true
    }
    if (mayHaveEffect(input, outcome)) history.push({ input, called, answered: undefined, server: server.name })
    return false
  }

  #pick<T>(from: readonly T[]): T {
    return from[this.#options.random.below(from.length)] as T
  }
}

/** UNAVAILABLE promises that nothing was changed; not for an update, whose node comes again anyway. */
function mayHaveEffect({ kind }: Input, outcome: Exclude<Outcome, { kind: 'answered' }>): boolean {
  if (kind === 'read') return false
  if (outcome.kind === 'unknown') return true
  return outcome.code !== 'NOT_TRIED' && (kind === 'update' || outcome.code !== 'UNAVAILABLE')
}
