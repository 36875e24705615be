/** Who works on the nodes of a hub through the API of any of its servers and nodes, and notes what was asked, what was answered, and when. */
import { createHash } from 'node:crypto'
import type { Node } from '../../src/contract/types.ts'
import type { Random } from '../../src/dataplane/engine/random.ts'
import type { Operation } from '../harness/linearizable.ts'
import type { MembershipAnswer, MembershipInput, NameInput } from './hub-history.ts'
import { type CallOutcome, call, type NodeParty } from './node-party.ts'

const MAX_PAUSE_MS = 40
/** How long an answer is waited for, milliseconds. */
const PATIENCE_MS = 4_000
/** The same where a server that has gone may have to be waited for. */
const JOIN_MS = 8_000
/** Servers that may have let a node in during one call without its hearing of it. */
const MAX_UNHEARD = 2
const MAX_PAYLOAD = 6_000
/** Chance that a call goes over REST, otherwise over gRPC. */
const OVER_REST = 0.5

/** A node that is worked on. */
export class Target {
  readonly party: NodeParty
  /** Whether it is removed and joins again, or stays on the hub. */
  readonly isGuest: boolean
  readonly memberships: Operation<MembershipInput, MembershipAnswer>[] = []
  readonly names: Operation<NameInput, string>[] = []
  /** When it asked for the sign-in that it has, as far as is known. */
  joinedSince: number | undefined
  isJoining = false

  constructor(party: NodeParty, isGuest: boolean) {
    this.party = party
    this.isGuest = isGuest
  }
}

export interface HubClientOptions {
  readonly name: string
  readonly random: Random
  readonly servers: readonly NodeParty[]
  readonly targets: readonly Target[]
  /** Where nodes ask that server to join. */
  readonly addressOf: (server: NodeParty) => string
  /** Hears of every outcome. */
  readonly onOutcome: (step: string, outcome: string) => void
  /** Something was answered that is never right. */
  readonly onWrong: (what: string) => void
}

const OF_ALL = ['set', 'set', 'get', 'get', 'get'] as const
const OF_GUESTS = [...OF_ALL, 'join', 'join', 'join', 'remove', 'remove', 'look', 'look', 'leave'] as const
/** Few leave by themselves, since that leaves open whether they are members. */
const LEAVING = 0.3

/** What a node says of itself beside its name: follows from it. */
export function metadataOf(name: string): Node['metadata'] {
  const seed = createHash('sha512').update(name).digest()
  const bytesValue = Buffer.alloc(seed.readUInt16LE(0) % MAX_PAYLOAD, seed)
  return { items: { payload: { bytesValue } } } as Node['metadata']
}

/** Whether name and metadata are of one setNode; `initial` is what a node is called that nobody has named. */
export function isWhole({ name, metadata }: Node, initial: string | undefined): boolean {
  const payload = metadata?.items.payload?.bytesValue
  if (name === initial) return payload === undefined
  const right = metadataOf(name)?.items.payload?.bytesValue as Uint8Array
  return payload !== undefined && Buffer.compare(payload, right) === 0
}

export class HubClient {
  readonly #options: HubClientOptions
  #names = 0

  constructor(options: HubClientOptions) {
    this.#options = options
  }

  /** Asks until `isOver` says so. */
  async work(isOver: () => boolean): Promise<void> {
    const { random, targets } = this.#options
    while (!isOver()) {
      const target = this.#pick(targets)
      await this.#act(target, this.#pick<(typeof OF_GUESTS)[number]>(target.isGuest ? OF_GUESTS : OF_ALL))
      await new Promise((resolve) => setTimeout(resolve, random.below(MAX_PAUSE_MS)))
    }
  }

  /** Asks one server to let it in; whether it is on the hub afterwards. */
  async join(target: Target, server: NodeParty): Promise<boolean> {
    if (target.isJoining) return false
    target.isJoining = true
    const called = performance.now()
    const hubServerAddress = this.#options.addressOf(server)
    const outcome = await this.#call(target.party, 'authenticateByRequest', { hubServerAddress }, JOIN_MS)
    target.isJoining = false
    const isIn = outcome.kind === 'answered'
    if (isIn) target.joinedSince = called
    const isRefused = outcome.kind === 'refused'
    if (!isRefused) noteMembership(target, { kind: 'join' }, called, isIn || undefined)
    // Who is rejected by one server may have been accepted before by another, which it lost before it heard.
    for (let i = 0; i < MAX_UNHEARD; i++) {
      noteMembership(target, { kind: 'accepted unheard' }, called, isIn || isRefused ? false : undefined)
    }
    return isIn
  }

  /** Asks the node itself what it is called. */
  async ownName(target: Target): Promise<void> {
    await this.#get(target, target.party)
  }

  async #act(target: Target, step: (typeof OF_GUESTS)[number]): Promise<void> {
    const { servers, targets } = this.#options
    const parties = [...servers, ...targets.map(({ party }) => party)]
    if (step === 'set') await this.#set(target, this.#pick(parties))
    else if (step === 'get') await this.#get(target, this.#pick(parties))
    else if (step === 'join') await this.join(target, this.#pick(servers))
    else if (step === 'remove') await this.#remove(target, this.#pick(servers))
    else if (step === 'look') await this.#look(target)
    else if (this.#options.random.chance(LEAVING)) await this.#leave(target)
  }

  async #set({ party, names, isGuest }: Target, through: NodeParty): Promise<void> {
    const name = `${party.name}-${this.#options.name}-${++this.#names}`
    const called = performance.now()
    const request = { nodeId: party.id, name, metadata: metadataOf(name) }
    const outcome = await this.#call(through, 'setNode', request)
    const input: NameInput = { kind: 'set', name }
    if (outcome.kind === 'unknown') names.push({ input, called, answered: undefined })
    if (outcome.kind === 'refused' && outcome.code === 'NOT_FOUND' && !isGuest) {
      this.#options.onWrong(`${party.name}, which is on the hub, is not there for ${through.name}: ${outcome.message}`)
    }
    if (outcome.kind !== 'answered') return
    names.push({ input, called, answered: { at: performance.now(), answer: this.#nameIn(outcome.answer, party) } })
  }

  async #get({ party, names }: Target, through: NodeParty): Promise<void> {
    const called = performance.now()
    const outcome = await this.#call(through, 'getNode', { nodeId: party.id })
    if (outcome.kind !== 'answered') return
    const answered = { at: performance.now(), answer: this.#nameIn(outcome.answer, party) }
    names.push({ input: { kind: 'get' }, called, answered })
  }

  #nameIn(answer: unknown, { id, name }: NodeParty): string {
    const { node } = answer as { node: Node }
    if (node.id !== id || !isWhole(node, name))
      this.#options.onWrong(`node ${id} was answered as ${JSON.stringify(node)}`)
    return node.name
  }

  /** UNAVAILABLE of a server that has lived through the call promises that nothing was changed. */
  async #remove(target: Target, server: NodeParty): Promise<void> {
    const called = performance.now()
    const { kills } = server
    const outcome = await this.#call(server, 'removeNode', { nodeId: target.party.id })
    if (outcome.kind === 'answered') noteMembership(target, { kind: 'remove' }, called, true)
    else if (outcome.code === 'NOT_FOUND') noteMembership(target, { kind: 'remove' }, called, false)
    else if (outcome.code !== 'UNAVAILABLE' || server.kills !== kills) {
      noteMembership(target, { kind: 'remove' }, called, undefined)
    }
  }

  async #leave(target: Target): Promise<void> {
    const called = performance.now()
    target.joinedSince = undefined
    const outcome = await this.#call(target.party, 'disconnect', {})
    if (outcome.kind !== 'refused') noteMembership(target, { kind: 'leave' }, called, undefined)
  }

  /** A node that holds no sign-in any more was told by the hub that it is no member, at some time since it asked for it. */
  async #look(target: Target): Promise<void> {
    const { joinedSince } = target
    if (joinedSince === undefined) return
    const outcome = await this.#call(target.party, 'getLocalNodeId', {})
    if (outcome.kind !== 'answered' || target.joinedSince !== joinedSince) return
    if ((outcome.answer as { isAuthenticated: boolean }).isAuthenticated) return
    target.joinedSince = undefined
    noteMembership(target, { kind: 'look' }, joinedSince, false)
  }

  async #call(
    party: NodeParty,
    name: Parameters<typeof call>[1],
    request: object,
    patience = PATIENCE_MS,
  ): Promise<CallOutcome> {
    const caller = this.#options.random.chance(OVER_REST) ? party.rest : party.caller
    const outcome = await call(caller, name, request, patience)
    this.#options.onOutcome(`${name}/${caller.transport}`, outcome.kind === 'answered' ? 'answered' : outcome.code)
    return outcome
  }

  #pick<T>(from: readonly T[]): T {
    return from[this.#options.random.below(from.length)] as T
  }
}

/** `answer` undefined: nobody knows. */
export function noteMembership(
  { memberships }: Target,
  input: MembershipInput,
  called: number,
  answer: MembershipAnswer | undefined,
): void {
  memberships.push({ input, called, answered: answer === undefined ? undefined : { at: performance.now(), answer } })
}
