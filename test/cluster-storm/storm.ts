/** Servers of one hub over NATS servers of their own, bad networks between all of them, kills and pauses; afterwards every promise is checked. */
import { Random } from '../../src/dataplane/engine/random.ts'
import { checkLinearizable } from '../harness/linearizable.ts'
import { until } from '../harness/waiting.ts'
import { BrokenPromise } from '../storm/broken-promise.ts'
import { Client, Subject } from './client.ts'
import { Engine } from './engine.ts'
import { historyText, linkedNode, unlinkedNode } from './history.ts'
import { contradiction } from './server-copy.ts'
import { type Picture, ServerProcess } from './server-process.ts'
import { strikeAll } from './strikes.ts'
import { type Strike, weatherOf, weatherText } from './weather.ts'

export interface StormOptions {
  readonly seed: number
  /** How long it blows, milliseconds. */
  readonly milliseconds: number
  readonly natsServers: number
  readonly replicas: number
  readonly clients: number
  /** Nodes that are worked on, with links and without each; default 3. */
  readonly subjects?: number
  /** What goes wrong instead of what the seed gives. */
  readonly weather?: readonly Strike[]
  /** The servers are broken: they answer reads from what they have seen. */
  readonly isWithoutBarrier?: boolean
  log(line: string): void
}

/** How long after the storm, when the NATS servers are well again, all servers have to agree; milliseconds. */
const CALM_MS = 10_000
const START_MS = 60_000
const HUBS = ['h1', 'h2', 'h3']
/** Codes of failures that a storm brings with it. */
const EXPECTED = ['answered', 'refused', 'unknown', 'NOT_TRIED', 'UNAVAILABLE', 'UNKNOWN']

export class Storm {
  readonly #options: StormOptions
  readonly #random: Random
  readonly #tally = new Map<string, number>()
  readonly #subjects: readonly Subject[]
  readonly #log: string[] = []
  #begun = performance.now()
  #engine!: Engine
  #servers: readonly ServerProcess[] = []
  #weather: readonly Strike[] = []

  constructor(options: StormOptions) {
    this.#options = options
    this.#random = new Random(options.seed)
    const { subjects = 3 } = options
    this.#subjects = Array.from({ length: 2 * subjects }, (_, i) => new Subject(i < subjects))
  }

  /** Throws BrokenPromise, with what is needed to look into it. */
  async run(): Promise<void> {
    try {
      await this.#begin()
      const clients = this.#clients()
      await this.#blow(clients)
      await this.#calm(clients[0] as Client)
      this.#checkHistories()
      this.#checkServers()
      const outcomes = [...this.#tally].sort().map(([key, count]) => `${key}: ${count}`)
      this.#options.log(`${this.#weather.length} strikes; ${outcomes.join(', ')}`)
    } finally {
      await Promise.all(this.#servers.map((server) => server.kill()))
      await this.#engine?.close()
    }
  }

  async #begin(): Promise<void> {
    const { natsServers, replicas, milliseconds, weather, isWithoutBarrier = false } = this.#options
    this.#engine = await Engine.start(natsServers, HUBS, this.#random)
    const { names, certificate } = this.#engine
    this.#servers = HUBS.map((name) => {
      const servers = this.#engine.addressesFor(name)
      const options = { name, servers, replicas, tls: { ca: certificate }, isWithoutBarrier }
      return new ServerProcess(options, (line) => this.#note(line))
    })
    for (const server of this.#servers) server.start()
    await until(async () => (await this.#disagreement()) === undefined, undefined, START_MS)
    const planned = { random: this.#random, milliseconds, hubs: HUBS, nats: names }
    this.#weather = weather ?? weatherOf(planned)
  }

  #clients(): Client[] {
    const onOutcome = (step: string, outcome: string) => {
      const key = `${step} ${outcome}`
      this.#tally.set(key, (this.#tally.get(key) ?? 0) + 1)
    }
    const common = { servers: this.#servers, subjects: this.#subjects, onOutcome }
    return Array.from({ length: this.#options.clients }, (_, i) => {
      return new Client({ ...common, name: `c${i + 1}`, random: new Random(this.#random.bits()) })
    })
  }

  async #blow(clients: readonly Client[]): Promise<void> {
    this.#begun = performance.now()
    const isOver = () => performance.now() - this.#begun >= this.#options.milliseconds
    const working = clients.map((client) => client.work(isOver))
    const party = (name: string) => this.#servers.find((server) => server.name === name) ?? this.#engine.server(name)
    const strikes = { weather: this.#weather, paths: this.#engine.paths, party, begun: this.#begun }
    await Promise.all([...working, strikeAll(strikes)])
  }

  /** All that went wrong is well again: before long all servers agree, and answer. */
  async #calm(client: Client): Promise<void> {
    const ended = performance.now()
    let since: number
    let last: string | undefined
    const isAgreed = async () => {
      last = (await this.#disagreement()) ?? (await this.#unanswered(client)) ?? (await this.#disagreement())
      return last === undefined
    }
    try {
      since = await this.#engine.calm(isAgreed, CALM_MS)
    } catch (error) {
      throw this.#broken(`${CALM_MS / 1000} s of calm: ${last ?? error}`)
    }
    const [engine, all] = [since - ended, performance.now() - since].map((time) => (time / 1000).toFixed(1))
    this.#options.log(`the engine was well after ${engine} s, and all agreed ${all} s later`)
  }

  /** What the servers disagree about, and what is not as the links are; undefined: nothing. */
  async #disagreement(): Promise<string | undefined> {
    const asked = await Promise.all(this.#servers.map((server) => server.picture()))
    const silent = this.#servers.filter((_, i) => asked[i]?.isInTouch !== true)
    if (silent.length > 0) return `${silent.map(({ name }) => name).join(', ')} without touch with the engine`
    const pictures = asked as Picture[]
    const texts = pictures.map(({ nodes }) => nodes.map(({ id, name, online }) => `${id} ${name} ${online}`).sort())
    const shown = texts.map((lines) => lines.join('\n'))
    if (new Set(shown).size > 1) return `pictures that differ:\n${shown.join('\n\n')}`
    return this.#wrongRoute(pictures)
  }

  /** A node that is not shown where it is. */
  #wrongRoute(pictures: readonly Picture[]): string | undefined {
    const subjects = this.#subjects.map(({ nodeId }) => ({ nodeId, at: this.#holders(nodeId, pictures) }))
    const servers = this.#servers.map(({ nodeId }) => ({ nodeId, at: [nodeId] }))
    for (const { nodeId, at } of [...subjects, ...servers]) {
      if (at.length > 1) return `node ${nodeId} has links to ${at.join(' and ')}`
      for (const [i, { nodes }] of pictures.entries()) {
        const { name, nodeId: self } = this.#servers[i] as ServerProcess
        const node = nodes.find(({ id }) => id === nodeId)
        const here = nodeId === self ? 'self' : 'session'
        const route = at.length === 0 ? 'offline' : at[0] === self ? here : at[0]
        if (node === undefined ? at.length > 0 : node.online !== at.length > 0 || node.route !== route) {
          return `${name} shows ${JSON.stringify(node)}, whose link is at ${at[0] ?? 'no server'}`
        }
      }
    }
    return undefined
  }

  /** The servers at which the node's links stand. */
  #holders(nodeId: string, pictures: readonly Picture[]): string[] {
    return this.#servers.filter((_, i) => pictures[i]?.links.includes(nodeId)).map((server) => server.nodeId)
  }

  /** What holds in the end is part of every history. */
  async #unanswered(client: Client): Promise<string | undefined> {
    for (const subject of this.#subjects) {
      for (const server of this.#servers) {
        if (!(await client.read(server, subject))) return `${server.name} answers no read`
      }
    }
    return undefined
  }

  #checkHistories(): void {
    for (const { history, isLinked, nodeId } of this.#subjects) {
      const verdict = checkLinearizable(isLinked ? linkedNode : unlinkedNode, history)
      if (verdict.kind === 'linearizable') continue
      const why =
        verdict.kind === 'gave up'
          ? ''
          : `\nafter this longest order none of these could follow:\n${historyText(
              verdict.stuck as typeof history,
              this.#begun,
            )}\n\nthe order's end:\n${historyText(verdict.order.slice(-5) as typeof history, this.#begun)}`
      throw this.#broken(`node ${nodeId}: ${verdict.kind}\n${historyText(history, this.#begun)}\n${why}`)
    }
  }

  #checkServers(): void {
    for (const { name, copies } of this.#servers) {
      for (const { faults } of copies) {
        if (faults.length > 0) throw this.#broken(`${name} told what does not fit:\n${faults.join('\n')}`)
      }
    }
    const copies = this.#servers.flatMap((server) => server.copies)
    for (const { nodeId, isLinked } of this.#subjects) {
      const found = isLinked ? undefined : contradiction(copies.map(({ names }) => names.get(nodeId) ?? []))
      if (found !== undefined) throw this.#broken(`the servers showed node ${nodeId} in different orders: ${found}`)
    }
    const odd = [...this.#tally.keys()].filter((key) => !EXPECTED.includes(key.split(' ')[1] as string))
    if (odd.length > 0) throw this.#broken(`outcomes that a storm does not explain: ${odd.join(', ')}`)
  }

  #note(line: string): void {
    this.#log.push(`${(performance.now() - this.#begun).toFixed(0).padStart(6)} ${line}`)
  }

  #broken(what: string): BrokenPromise {
    const parts = [
      `seed ${this.#options.seed}: ${what}`,
      `plan:\n${weatherText(this.#weather)}`,
      `log:\n${this.#log.join('\n')}`,
      `NATS servers:\n${this.#engine?.said ?? 'none'}`,
    ]
    return new BrokenPromise(parts.join('\n\n'))
  }
}
