/** A hub and nodes as processes, bad networks between them, kills and pauses, clients on every node; afterwards every promise is checked. */
import { join } from 'node:path'
import type { Node, Pipeline } from '../../src/contract/types.ts'
import { Random } from '../../src/dataplane/engine/random.ts'
import { NodeProcess } from '../harness/node-process.ts'
import { until } from '../harness/waiting.ts'
import type { Caller } from '../hub/callers.ts'
import { Client } from './client.ts'
import { NodesFollower, nodeText, PipelinesFollower, pipelineText } from './followers.ts'
import type { Place } from './place.ts'
import { FAULTS, type Fault, FaultyProxy } from './proxy.ts'

export interface StormOptions {
  readonly seed: number
  readonly rounds: number
  /** Members beside the hub. */
  readonly members: number
  /** How long a round blows, milliseconds. */
  readonly milliseconds: number
  /** How much faster than real time links live. */
  readonly speed: number
  readonly directory: string
  log(line: string): void
}

/** How long everything may take to be well again, milliseconds. */
const CALM_MS = 60_000
/** Descriptors that a node may have more than before: a thread kept warm for the next run has some. */
const SPARE_DESCRIPTORS = 40

/** What one node follows: the nodes on the hub, and the pipelines of another. */
interface Followers {
  readonly through: Machine
  readonly nodes: NodesFollower
  readonly pipelines: PipelinesFollower
  readonly target: Machine
}

/** A machine with a node that may be down. */
class Machine implements Place {
  process: NodeProcess
  readonly proxy: FaultyProxy | undefined
  kills = 0
  isPaused = false

  constructor(process: NodeProcess, proxy: FaultyProxy | undefined) {
    this.process = process
    this.proxy = proxy
  }

  get id(): string {
    return this.process.id
  }

  get caller(): Caller {
    return this.process.caller
  }
}

export class Storm {
  readonly #options: StormOptions
  readonly #random: Random
  readonly #places: Machine[] = []
  readonly #clients: Client[] = []
  #port = 20_000

  constructor(options: StormOptions) {
    this.#options = options
    this.#random = new Random(options.seed)
  }

  async run(): Promise<void> {
    await this.#begin()
    const followers = this.#follow()
    try {
      const before = this.#places.map(({ process }) => process.descriptors)
      for (let round = 1; round <= this.#options.rounds; round++) {
        await this.#blow(round)
        await this.#calm()
        await this.#check(followers)
      }
      for (const client of this.#clients) await client.leave()
      for (const { nodes, pipelines } of followers) await Promise.all([nodes.close(), pipelines.close()])
      await this.#checkDescriptors(before)
      this.#report()
    } finally {
      for (const { proxy } of this.#places) proxy?.close()
    }
  }

  async #begin(): Promise<void> {
    const { members, directory, speed } = this.#options
    const start = (name: string, flags: Record<string, string>) =>
      NodeProcess.start({
        directory: join(directory, name),
        flags: { 'node-name': name, grpc: '127.0.0.1:0', ...flags },
        speed,
      })
    const hub = new Machine(await start('hub', { hub: 'true', 'http-tls': 'auto' }), undefined)
    this.#places.push(hub)
    const requests = await hub.caller.converse('authenticationByRequests')
    for (let i = 1; i <= members; i++) {
      const proxy = await FaultyProxy.listen(Number(hub.process.address.split(':')[1]), this.#random)
      const place = new Machine(await start(`node-${i}`, {}), proxy)
      this.#places.push(place)
      const hubServerAddress = `https://127.0.0.1:${proxy.port}`
      const joined = place.caller.unary('authenticateByRequest', { hubServerAddress })
      const { requestId } = await requests.stream.next()
      requests.answer({ requestId, accept: true })
      await joined
    }
    requests.stream.close()
    for (const [i, place] of this.#places.entries()) {
      const random = new Random(this.#random.bits())
      this.#clients.push(new Client(place, this.#places, random, `client-${i}`, () => this.#port++))
    }
  }

  #follow(): Followers[] {
    return this.#places.map((through, i) => {
      const target = this.#places[(i + 1) % this.#places.length] as Machine
      return {
        through,
        nodes: new NodesFollower(through),
        pipelines: new PipelinesFollower(through, target.id),
        target,
      }
    })
  }

  async #blow(round: number): Promise<void> {
    const { milliseconds, log } = this.#options
    const end = performance.now() + milliseconds
    const isOver = () => performance.now() >= end
    const told: string[] = []
    const working = Promise.all(this.#clients.map((client) => client.work(isOver)))
    const weather = (async () => {
      while (!isOver()) {
        told.push(await this.#strike())
        await new Promise((resolve) => setTimeout(resolve, this.#random.below(milliseconds / 4)))
      }
    })()
    await Promise.all([working, weather])
    log(`round ${round}: ${told.join(', ')}`)
  }

  /** One thing goes wrong, or is well again. */
  async #strike(): Promise<string> {
    const place = this.#places[this.#random.below(this.#places.length)] as Machine
    const at = this.#places.indexOf(place)
    const name = at === 0 ? 'hub' : `node-${at}`
    const roll = this.#random.below(10)
    if (roll < 2 && !place.isPaused) {
      await this.#kill(place)
      return `${name} killed`
    }
    if (roll < 4) {
      place.process.signal(place.isPaused ? 'SIGCONT' : 'SIGSTOP')
      place.isPaused = !place.isPaused
      return `${name} ${place.isPaused ? 'stopped' : 'continued'}`
    }
    const { proxy } = place
    if (proxy === undefined) return 'calm'
    if (proxy.fault !== undefined) {
      proxy.heal()
      return `link of ${name} healed`
    }
    const fault = FAULTS[this.#random.below(FAULTS.length)] as Fault
    proxy.break(fault)
    return `link of ${name}: ${fault}`
  }

  async #kill(place: Machine): Promise<void> {
    place.kills++
    for (const client of this.#clients) client.killed(place)
    const { process } = place
    await process.kill()
    for (const client of this.#clients) client.killed(place)
    place.process = await process.again()
    process.caller.close()
  }

  /** Everything is well again: every node on the hub, and reached through each. */
  async #calm(): Promise<void> {
    for (const place of this.#places) {
      if (place.isPaused) place.process.signal('SIGCONT')
      place.isPaused = false
      place.proxy?.heal()
    }
    const sees = async (place: Machine): Promise<boolean> => {
      try {
        const { nodes } = await place.caller.unary('getNodes', { metadataFilters: {}, serviceFilters: [] })
        if (nodes.length !== this.#places.length || nodes.some(({ online }: Node) => !online)) return false
        await Promise.all(this.#places.map(({ id }) => place.caller.unary('getNode', { nodeId: id })))
        return true
      } catch {
        return false
      }
    }
    await until(async () => (await Promise.all(this.#places.map(sees))).every(Boolean), undefined, CALM_MS)
  }

  async #check(followers: readonly Followers[]): Promise<void> {
    // Runs that were asked to stop, or are being torn down, have their time.
    const settled = async ({ caller, id }: Machine): Promise<boolean> => {
      const { pipelines } = await caller.unary('getPipelines', { nodeId: id })
      return pipelines.every(({ currentRun: run }: Pipeline) => run === undefined || /RUNNING|ENDED/.test(run.state))
    }
    await until(async () => (await Promise.all(this.#places.map(settled))).every(Boolean), undefined, CALM_MS)
    for (const client of this.#clients) await client.settle()
    for (const { through, nodes, pipelines, target } of followers) {
      const asText = <T extends { id: string }>(all: T[], text: (one: T) => string) =>
        all
          .map((one) => `${one.id} ${text(one)}`)
          .sort()
          .join('\n')
      const copyOf = (copy: ReadonlyMap<string, string>) =>
        [...copy]
          .map(([id, text]) => `${id} ${text}`)
          .sort()
          .join('\n')
      const got = async () =>
        (await through.caller.unary('getPipelines', { nodeId: target.id })).pipelines as Pipeline[]
      const listed = async () => (await through.process.list()) as Node[]
      await until(async () => copyOf(pipelines.copy) === asText(await got(), pipelineText), undefined, CALM_MS)
      await until(async () => copyOf(nodes.copy) === asText(await listed(), nodeText), undefined, CALM_MS)
    }
  }

  async #checkDescriptors(before: readonly number[]): Promise<void> {
    for (const [i, { process }] of this.#places.entries()) {
      await until(() => process.descriptors <= (before[i] as number) + SPARE_DESCRIPTORS, undefined, CALM_MS)
    }
  }

  #report(): void {
    const sum = new Map<string, number>()
    for (const { tally } of this.#clients) for (const [key, count] of tally) sum.set(key, (sum.get(key) ?? 0) + count)
    const text = [...sum].sort().map(([key, count]) => `${key}: ${count}`)
    this.#options.log(`calls: ${text.join(', ')}`)
  }
}
