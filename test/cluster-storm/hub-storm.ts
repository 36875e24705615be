/** A hub of several servers and its nodes in a storm: clients at all of them, bad networks, kills and pauses; afterwards every promise is checked. */
import { Random } from '../../src/dataplane/engine/random.ts'
import { until } from '../harness/waiting.ts'
import { BrokenPromise } from '../storm/broken-promise.ts'
import { Client } from '../storm/client.ts'
import type { Place } from '../storm/place.ts'
import { checkTargets } from './hub-checks.ts'
import { HubClient, noteMembership, Target } from './hub-client.ts'
import { HubRig } from './hub-rig.ts'
import { HubView } from './hub-view.ts'
import { call, type NodeParty } from './node-party.ts'
import { Operator } from './operators.ts'
import { contradiction } from './server-copy.ts'
import { strikeAll } from './strikes.ts'
import { type Strike, weatherOf, weatherText } from './weather.ts'

export interface HubStormOptions {
  readonly seed: number
  /** How long it blows, milliseconds. */
  readonly milliseconds: number
  readonly replicas: number
  /** Nodes that stay on the hub, and nodes that are removed and join again. */
  readonly steady: number
  readonly guests: number
  readonly clients: number
  /** How long after the storm, when the NATS servers are well again, all servers have to agree; milliseconds. */
  readonly calmMs: number
  readonly directory: string
  log(line: string): void
}

const START_MS = 60_000
/** How long everything may take to be as if nothing had been, milliseconds. */
const RECOVERY_MS = 60_000
const PATIENCE_MS = 4_000
/** Chance that a request to join is rejected, once all are on the hub. */
const STRICTNESS = 0.1
const FIRST_PORT = 30_000
/** Codes of failures that a storm brings with it. */
const EXPECTED = [
  ...['answered', 'UNAVAILABLE', 'UNKNOWN', 'CANCELLED', 'NOT_FOUND', 'FAILED_PRECONDITION', 'DEADLINE_EXCEEDED'],
  ...['ALREADY_EXISTS', 'UNAUTHENTICATED'],
]

export class HubStorm {
  readonly #options: HubStormOptions
  readonly #random: Random
  readonly #tally = new Map<string, number>()
  readonly #wrong: string[] = []
  readonly #log: string[] = []
  #begun = performance.now()
  #rig!: HubRig
  #targets: readonly Target[] = []
  #operators: readonly Operator[] = []
  #views: readonly HubView[] = []
  #clients: readonly HubClient[] = []
  /** They work on pipelines of the nodes that stay. */
  #pipelineClients: readonly Client[] = []
  #weather: readonly Strike[] = []

  constructor(options: HubStormOptions) {
    this.#options = options
    this.#random = new Random(options.seed)
  }

  /** Throws BrokenPromise, with what is needed to look into it. */
  async run(): Promise<void> {
    try {
      await this.#begin()
      await this.#blow()
      await this.#calm()
      await this.#recover()
      this.#check()
      this.#report()
    } catch (error) {
      throw this.#broken(error instanceof BrokenPromise ? error.message : `${(error as Error).stack}`)
    } finally {
      await Promise.all([...this.#views, ...this.#operators].map((each) => each.close()))
      await this.#rig?.close()
    }
  }

  async #begin(): Promise<void> {
    const { replicas, directory, steady, guests, milliseconds } = this.#options
    const random = this.#random
    const killed = (party: NodeParty) => {
      for (const client of this.#pipelineClients) client.killed(party)
    }
    const log = (line: string) => this.#note(line)
    this.#rig = await HubRig.make({ random, replicas, nodes: steady + guests, directory, log, killed })
    await this.#rig.start()
    const { servers, nodes, engine } = this.#rig
    this.#targets = nodes.map((party, i) => new Target(party, i >= steady))
    this.#operators = servers.map((server) => new Operator(server, new Random(random.bits())))
    this.#makeClients()
    await this.#joinAll()
    const names = { hubs: namesOf(servers), nats: engine.names, nodes: namesOf(nodes) }
    this.#weather = weatherOf({ random, milliseconds, ...names })
  }

  #makeClients(): void {
    const { servers } = this.#rig
    const common = {
      servers,
      targets: this.#targets,
      addressOf: (server: NodeParty) => this.#rig.addressOf(server),
      onOutcome: (step: string, outcome: string) => {
        const key = `${step} ${outcome}`
        this.#tally.set(key, (this.#tally.get(key) ?? 0) + 1)
      },
      onWrong: (what: string) => this.#wrong.push(what),
    }
    this.#clients = Array.from({ length: this.#options.clients }, (_, i) => {
      return new HubClient({ ...common, name: `c${i + 1}`, random: new Random(this.#random.bits()) })
    })
    const steady = this.#steady
    let port = FIRST_PORT
    const [server, node] = [servers[0], steady[0]] as [NodeParty, NodeParty]
    this.#pipelineClients = [server, overRest(node)].map((own, i) => {
      return new Client(own, steady, new Random(this.#random.bits()), `p${i + 1}`, () => port++)
    })
  }

  async #joinAll(): Promise<void> {
    const [client] = this.#clients as [HubClient]
    const { servers } = this.#rig
    const joining = this.#targets.map(async (target, i) => {
      const server = servers[i % servers.length] as NodeParty
      await until(() => client.join(target, server), `${target.party.name} on the hub`, START_MS)
    })
    await Promise.all(joining)
    await this.#agreed(START_MS)
    this.#views = servers.flatMap((server) => {
      return (['caller', 'rest'] as const).map((over) => new HubView(server, over, (id) => this.#rig.initialName(id)))
    })
    for (const operator of this.#operators) operator.strictness = STRICTNESS
  }

  async #blow(): Promise<void> {
    const begun = performance.now()
    this.#begun = begun
    const isOver = () => performance.now() - begun >= this.#options.milliseconds
    const working = [...this.#clients, ...this.#pipelineClients].map((client) => client.work(isOver))
    const party = (name: string) => this.#rig.party(name)
    const striking = strikeAll({ weather: this.#weather, paths: this.#rig.paths, party, begun })
    // What is stopped goes on, and what is killed starts again, whatever has failed.
    const ends = await Promise.allSettled([...working, striking])
    for (const end of ends) if (end.status === 'rejected') throw end.reason
  }

  /** All that went wrong is well again: before long all servers show the same nodes, each as it is. */
  async #calm(): Promise<void> {
    const ended = performance.now()
    let last: string | undefined
    const isAgreed = async () => {
      last = await this.#rig.disagreement()
      return last === undefined
    }
    const since = await this.#rig.engine.calm(isAgreed, this.#options.calmMs).catch((error: unknown) => {
      throw new BrokenPromise(`${error}: ${last}`)
    })
    const [engine, all] = [since - ended, performance.now() - since].map((time) => (time / 1000).toFixed(1))
    this.#options.log(`the engine was well after ${engine} s, and all agreed ${all} s later`)
  }

  async #agreed(milliseconds: number): Promise<void> {
    let last: string | undefined
    const isAgreed = async () => {
      last = await this.#rig.disagreement()
      return last === undefined
    }
    await until(isAgreed, () => `${last}`, milliseconds)
  }

  /** Everybody reaches everybody; what holds in the end is part of every history. */
  async #recover(): Promise<void> {
    await this.#reached()
    for (const client of this.#pipelineClients) await client.settle()
    for (const client of this.#pipelineClients) await client.leave()
    for (const target of this.#targets) await this.#clients[0]?.ownName(target)
    const called = performance.now()
    await this.#agreed(RECOVERY_MS)
    const listed = (await this.#rig.lists())[0]?.map(({ id }) => id) ?? []
    for (const target of this.#targets) {
      noteMembership(target, { kind: 'look' }, called, listed.includes(target.party.id))
    }
    for (const view of this.#views) {
      await until(() => view.isCaughtUp(), `the stream of ${view.name} tells what it lists`, RECOVERY_MS)
    }
  }

  async #reached(): Promise<void> {
    const parties = [...this.#rig.servers, ...this.#steady]
    let last = ''
    const isReached = async () => {
      for (const from of parties) {
        for (const { id } of parties) {
          for (const caller of [from.caller, from.rest]) {
            const outcome = await call(caller, 'getNode', { nodeId: id }, PATIENCE_MS)
            if (outcome.kind === 'answered') continue
            last = `${from.name} does not reach ${id} over ${caller.transport}: ${outcome.message}`
            return false
          }
        }
      }
      return true
    }
    await until(isReached, () => last, RECOVERY_MS)
  }

  #check(): void {
    checkTargets(this.#targets, this.#begun)
    for (const { name, faults } of this.#views) {
      if (faults.length > 0) throw new BrokenPromise(`${name} told what does not fit:\n${faults.join('\n')}`)
    }
    // Who joins again brings the name that it had.
    for (const { id, name } of this.#steady) {
      const found = contradiction(this.#views.flatMap((view) => view.namesOf(id)))
      if (found !== undefined) throw new BrokenPromise(`the servers showed ${name} in different orders: ${found}`)
    }
    const odd = [...this.#tally.keys()].filter((key) => !EXPECTED.includes(key.split(' ')[1] as string))
    if (odd.length > 0) throw new BrokenPromise(`outcomes that a storm does not explain: ${odd.join(', ')}`)
    if (this.#wrong.length > 0) throw new BrokenPromise(this.#wrong.join('\n'))
  }

  #report(): void {
    const outcomes = [...this.#tally].sort().map(([key, count]) => `${key}: ${count}`)
    const seen = this.#views.map(({ counts: { changes, lists } }) => `${changes} changes told, ${lists} lists compared`)
    this.#options.log(`${this.#weather.length} strikes; ${outcomes.join(', ')}; ${seen.join('; ')}`)
  }

  get #steady(): NodeParty[] {
    return this.#targets.filter(({ isGuest }) => !isGuest).map(({ party }) => party)
  }

  #note(line: string): void {
    this.#log.push(`${(performance.now() - this.#begun).toFixed(0).padStart(6)} ${line}`)
  }

  #broken(what: string): BrokenPromise {
    const plan = `plan:\n${weatherText(this.#weather)}`
    const log = `log:\n${this.#log.join('\n')}`
    const engine = `NATS servers:\n${this.#rig?.engine.said ?? 'none'}`
    return new BrokenPromise([`seed ${this.#options.seed}: ${what}`, plan, log, engine].join('\n\n'))
  }
}

/** Works through the node over HTTP. */
const overRest = (party: NodeParty): Place => ({
  get id() {
    return party.id
  },
  get caller() {
    return party.rest
  },
  get kills() {
    return party.kills
  },
})

const namesOf = (parties: readonly NodeParty[]): string[] => parties.map(({ name }) => name)
