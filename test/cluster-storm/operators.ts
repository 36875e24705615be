/** Who answers requests to join at one server of the hub: most are accepted, at whichever server is asked first. */
import type { Random } from '../../src/dataplane/engine/random.ts'
import type { Stream } from '../hub/callers.ts'
import type { NodeParty } from './node-party.ts'

const AGAIN_MS = 50
const MAX_PAUSE_MS = 100

export class Operator {
  readonly #server: NodeParty
  readonly #random: Random
  /** Chance that a request is rejected. */
  strictness = 0
  #stream: Stream | undefined
  #isOver = false
  readonly #done: Promise<void>

  constructor(server: NodeParty, random: Random) {
    this.#server = server
    this.#random = random
    this.#done = this.#work()
  }

  async close(): Promise<void> {
    this.#isOver = true
    this.#stream?.close()
    this.#stream?.end()
    await this.#done
  }

  async #work(): Promise<void> {
    while (!this.#isOver) {
      try {
        await this.#answerAll()
      } catch {
        // It ended, as streams do when their server does.
        if (!this.#isOver) await new Promise((resolve) => setTimeout(resolve, AGAIN_MS))
      }
    }
  }

  async #answerAll(): Promise<void> {
    const { stream, answer } = await this.#server.caller.converse('authenticationByRequests')
    this.#stream = stream
    try {
      while (!this.#isOver) {
        const { requestId } = (await stream.next()) as { requestId?: bigint }
        await new Promise((resolve) => setTimeout(resolve, this.#random.below(MAX_PAUSE_MS)))
        // What another server was faster with arrives as an error of that message.
        if (requestId !== undefined) answer({ requestId, accept: !this.#random.chance(this.strictness) })
      }
    } finally {
      stream.close()
    }
  }
}
