/** A client of one node that works on pipelines of all nodes, and knows of each what it must be: what was answered, or what may have happened. */

import type { Pipeline } from '../../src/contract/types.ts'
import type { Random } from '../../src/dataplane/engine/random.ts'
import { Failed } from '../hub/callers.ts'
import { BrokenPromise } from './broken-promise.ts'
import type { Place } from './place.ts'

/** How long it waits for an answer, milliseconds. */
const PATIENCE_MS = 4_000
const MOST_PIPELINES = 4
/** Failures after which nothing has changed. */
const REFUSALS = ['NOT_FOUND', 'FAILED_PRECONDITION', 'INVALID_ARGUMENT', 'ABORTED']

/** What may be true of a pipeline; one value: what was answered. */
interface Known {
  readonly name: string
  readonly at: Place
  readonly port: number
  id: string | undefined
  exists: Set<boolean>
  configs: Set<string>
  started: Set<boolean>
}

export class Client {
  readonly #own: Place
  readonly #places: readonly Place[]
  readonly #random: Random
  readonly #label: string
  readonly #nextPort: () => number
  readonly #known: Known[] = []
  #count = 0
  /** Calls by outcome. */
  readonly tally = new Map<string, number>()

  constructor(own: Place, places: readonly Place[], random: Random, label: string, nextPort: () => number) {
    this.#own = own
    this.#places = places
    this.#random = random
    this.#label = label
    this.#nextPort = nextPort
  }

  /** Calls until `isOver` says so. */
  async work(isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      await this.#act()
      await new Promise((resolve) => setTimeout(resolve, this.#random.below(30)))
    }
  }

  async #act(): Promise<void> {
    const known = this.#known[this.#random.below(this.#known.length)]
    if (known === undefined || (this.#known.length < MOST_PIPELINES && this.#random.chance(0.3))) await this.#create()
    else if (known.id !== undefined && !known.exists.has(false)) await this.#change(known, known.id)
  }

  async #create(): Promise<void> {
    const at = this.#places[this.#random.below(this.#places.length)] as Place
    const port = this.#nextPort()
    const config = configuration(port, 1)
    const known: Known = {
      name: `${this.#label}-${this.#count++}`,
      at,
      port,
      id: undefined,
      exists: new Set([true, false]),
      configs: new Set([config]),
      started: new Set([false]),
    }
    this.#known.push(known)
    const request = { nodeId: at.id, name: known.name, jsonConfig: config }
    const outcome = await this.#call('createPipeline', request)
    if (outcome.kind === 'answered') {
      known.id = (outcome.answer as { pipeline: Pipeline }).pipeline.id
      known.exists = new Set([true])
    } else if (outcome.kind === 'refused') throw new BrokenPromise(`create was refused: ${outcome.error.message}`)
  }

  async #change(known: Known, id: string): Promise<void> {
    const where = { nodeId: known.at.id, id }
    const kills = known.at.kills
    const roll = this.#random.below(10)
    if (roll < 3) {
      const before = new Set(known.started)
      known.started.add(true)
      const outcome = await this.#call('startPipeline', where)
      // A kill on the way ends the run.
      if (outcome.kind === 'answered') known.started = new Set(kills === known.at.kills ? [true] : [true, false])
      else if (outcome.kind === 'refused') {
        if (outcome.error.code === 'ABORTED') {
          throw new BrokenPromise(`${known.name} did not start: ${outcome.error.message}`)
        }
        // Already started, or stopping.
        if (!before.has(true)) throw new BrokenPromise(`${known.name} was started by nobody: ${outcome.error.message}`)
      }
    } else if (roll < 6) {
      const before = new Set(known.started)
      known.started.add(false)
      const outcome = await this.#call('stopPipeline', where)
      if (outcome.kind === 'answered') known.started = new Set([false])
      else if (outcome.kind === 'refused' && !before.has(false) && kills === known.at.kills) {
        throw new BrokenPromise(`${known.name} was stopped by nobody: ${outcome.error.message}`)
      }
    } else if (roll < 8) {
      const config = configuration(known.port, this.#random.between(1, 50))
      known.configs.add(config)
      const outcome = await this.#call('updatePipeline', {
        ...where,
        name: known.name,
        jsonConfig: config,
        defaultLoggingLevel: 'INFO',
        instructionsTimeout: 10,
        forceRestart: false,
      })
      if (outcome.kind === 'answered') known.configs = new Set([config])
      else if (outcome.kind === 'refused') throw new BrokenPromise(`update was refused: ${outcome.error.message}`)
    } else if (roll < 9) {
      known.exists.add(false)
      // It is stopped first, and stays so when the caller is gone before its end.
      known.started.add(false)
      const outcome = await this.#call('deletePipeline', where)
      if (outcome.kind === 'answered') this.#forget(known)
      else if (outcome.kind === 'refused') throw new BrokenPromise(`delete was refused: ${outcome.error.message}`)
    } else {
      const outcome = await this.#call('getPipelineById', where)
      if (outcome.kind === 'answered') this.#compare(known, (outcome.answer as { pipeline: Pipeline }).pipeline)
      else if (outcome.kind === 'refused') throw new BrokenPromise(`${known.name} is gone: ${outcome.error.message}`)
    }
  }

  /** A node was killed: its runs are gone. */
  killed(at: Place): void {
    for (const known of this.#known) if (known.at === at) known.started.add(false)
  }

  /** Compares everything with what the nodes say; from here on that is known. */
  async settle(): Promise<void> {
    for (const known of [...this.#known]) {
      const { pipelines } = (await this.#own.caller.unary('getPipelines', { nodeId: known.at.id })) as {
        pipelines: Pipeline[]
      }
      const found = pipelines.find(({ name }) => name === known.name)
      if (!known.exists.has(found !== undefined)) {
        throw new BrokenPromise(
          `${known.name} ${found === undefined ? 'is gone' : 'is there'}, against what was answered`,
        )
      }
      if (found === undefined) {
        this.#forget(known)
        continue
      }
      this.#compare(known, found)
      known.id = found.id
      known.exists = new Set([true])
      known.configs = new Set([found.jsonConfig])
      known.started = new Set([found.started])
    }
  }

  #compare(known: Known, found: Pipeline): void {
    if (!known.configs.has(found.jsonConfig)) {
      throw new BrokenPromise(`${known.name} has a configuration that it was not given: ${found.jsonConfig}`)
    }
    if (!known.started.has(found.started)) {
      throw new BrokenPromise(`${known.name} is ${found.started ? 'started' : 'stopped'}, against what was answered`)
    }
    const state = found.currentRun?.state
    if (!found.started && state !== undefined && state !== 'ENDED' && state !== 'STOPPING') {
      throw new BrokenPromise(`${known.name} is stopped and has a run that is ${state}`)
    }
  }

  /** Deletes all; what they listened on is free afterwards. */
  async leave(): Promise<void> {
    for (const known of [...this.#known]) {
      const where = { nodeId: known.at.id, id: known.id as string }
      await this.#own.caller.unary('deletePipeline', where)
      this.#forget(known)
    }
  }

  #forget(known: Known): void {
    const at = this.#known.indexOf(known)
    if (at >= 0) this.#known.splice(at, 1)
  }

  async #call(
    name: Parameters<Place['caller']['unary']>[0],
    request: object,
  ): Promise<
    { kind: 'answered'; answer: unknown } | { kind: 'refused'; error: Failed } | { kind: 'unknown'; error: unknown }
  > {
    try {
      const answer = await this.#own.caller.unary(name, request, AbortSignal.timeout(PATIENCE_MS))
      this.#note(name, 'OK')
      return { kind: 'answered', answer }
    } catch (error) {
      if (!(error instanceof Failed)) throw error
      this.#note(name, error.code)
      if (REFUSALS.includes(error.code)) return { kind: 'refused', error }
      return { kind: 'unknown', error }
    }
  }

  #note(name: string, code: string): void {
    const key = `${name} ${code}`
    this.tally.set(key, (this.tally.get(key) ?? 0) + 1)
  }
}

/** A socket of its own shows a run that nobody owns: the next one could not bind it. `delay` is live. */
function configuration(port: number, delay: number): string {
  return JSON.stringify({
    engine_config: {
      pipeline: {
        socket: { udp_local: { address: `127.0.0.1:${port}`, output: 'a' } },
        delay: { delay_constant: { flows: [{ input: 'a', output: 'b' }], delay } },
        sink: { traffic_sink: { input: 'b' } },
      },
    },
  })
}
