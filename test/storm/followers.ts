/** Subscribers that keep a copy of what a stream tells of, opened again whenever it ends. */
import type { Node, Pipeline } from '../../src/contract/types.ts'
import type { Stream } from '../hub/callers.ts'
import type { Place } from './place.ts'

const AGAIN_MS = 50

/** A copy by id; `text` is all that is compared. */
abstract class Follower {
  readonly copy = new Map<string, string>()
  #isOver = false
  #stream: Stream | undefined
  readonly #done: Promise<void>

  constructor() {
    this.#done = this.#follow()
  }

  protected abstract open(): Promise<Stream>
  /** Takes one message into the copy. */
  protected abstract take(message: never): void
  /** Sets the copy to how things are, after the stream stands. */
  protected abstract begin(): Promise<void>

  async #follow(): Promise<void> {
    // Not before the subclass has its fields.
    await Promise.resolve()
    while (!this.#isOver) {
      try {
        this.#stream = await this.open()
        await this.begin()
        while (!this.#isOver) this.take((await this.#stream.next()) as never)
      } catch {
        // It ended, as streams do in a storm.
        if (!this.#isOver) await new Promise((resolve) => setTimeout(resolve, AGAIN_MS))
      } finally {
        this.#stream?.close()
      }
    }
  }

  async close(): Promise<void> {
    this.#isOver = true
    this.#stream?.close()
    this.#stream?.end()
    await this.#done
  }
}

export const pipelineText = ({ name, jsonConfig, started, currentRun }: Pipeline): string =>
  JSON.stringify([name, jsonConfig, started, currentRun?.id, currentRun?.state])

export const nodeText = ({ name, online }: Node): string => JSON.stringify([name, online])

/** The pipelines of a node, as seen through another. */
export class PipelinesFollower extends Follower {
  readonly #through: () => Place
  readonly #nodeId: string

  constructor(through: Place, nodeId: string) {
    super()
    this.#through = () => through
    this.#nodeId = nodeId
  }

  protected override open(): Promise<Stream> {
    return this.#through().caller.stream('streamPipelines', { nodeId: this.#nodeId })
  }

  protected override async begin(): Promise<void> {
    const { pipelines } = await this.#through().caller.unary('getPipelines', { nodeId: this.#nodeId })
    this.copy.clear()
    for (const pipeline of pipelines as Pipeline[]) this.copy.set(pipeline.id, pipelineText(pipeline))
  }

  protected override take(event: Record<'create' | 'update' | 'delete', { pipeline: Pipeline } | undefined>): void {
    const change = event.create ?? event.update
    if (change !== undefined) this.copy.set(change.pipeline.id, pipelineText(change.pipeline))
    else if (event.delete !== undefined) this.copy.delete(event.delete.pipeline.id)
  }
}

/** The nodes on the hub, as seen through one of them. */
export class NodesFollower extends Follower {
  readonly #through: () => Place

  constructor(through: Place) {
    super()
    this.#through = () => through
  }

  protected override open(): Promise<Stream> {
    return this.#through().caller.stream('streamNodes', { metadataFilters: {}, serviceFilters: [] })
  }

  protected override async begin(): Promise<void> {}

  protected override take(message: {
    initialResponse?: { nodes: Node[] }
    updateResponse?: Record<string, Node | undefined>
  }): void {
    if (message.initialResponse !== undefined) {
      this.copy.clear()
      for (const node of message.initialResponse.nodes) this.copy.set(node.id, nodeText(node))
      return
    }
    for (const [kind, node] of Object.entries(message.updateResponse ?? {})) {
      if (node === undefined) continue
      if (kind === 'deauthenticatedNode') this.copy.delete(node.id)
      else this.copy.set(node.id, nodeText(node))
    }
  }
}
