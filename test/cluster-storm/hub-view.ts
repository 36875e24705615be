/** What one server shows to those who follow it: a stream of changes, and lists that have to be states of that stream, in its order. */
import type { Node } from '../../src/contract/types.ts'
import type { Caller, Stream } from '../hub/callers.ts'
import { Following } from './following.ts'
import { isWhole } from './hub-client.ts'
import type { NodeParty } from './node-party.ts'
import { type ShownNode, type ToldEvent, textOf } from './server-copy.ts'

const AGAIN_MS = 50
/** Between two lists, milliseconds. */
const LIST_MS = 30
const LIST_PATIENCE_MS = 4_000

export class HubView {
  /** The server, and how it is followed. */
  readonly name: string
  readonly #caller: () => Caller
  readonly #initialNameOf: (nodeId: string) => string | undefined
  #stream: Stream | undefined
  #isOver = false
  readonly #done: Promise<void>
  readonly #followed: Following[] = []
  readonly #faults: string[] = []

  /** Follows at once. `initialNameOf`: what a node is called that nobody has named. */
  constructor(server: NodeParty, over: 'caller' | 'rest', initialNameOf: (nodeId: string) => string | undefined) {
    this.name = `${server.name} over ${server[over].transport}`
    this.#caller = () => server[over]
    this.#initialNameOf = initialNameOf
    this.#done = this.#follow()
  }

  /** What was told and shown, and cannot be. */
  get faults(): string[] {
    const misfits = this.#followed.flatMap((following, i) => {
      return following.misfits(i < this.#followed.length - 1).map((list) => `no state of its stream: ${list}`)
    })
    return [...this.#faults, ...this.#followed.flatMap(({ copy }) => copy.faults), ...misfits]
  }

  /** The names of one node, as each stream told them. */
  namesOf(nodeId: string): (string | undefined)[][] {
    return this.#followed.map(({ copy }) => copy.names.get(nodeId) ?? [])
  }

  /** How many changes were told, and how many lists compared. */
  get counts(): { readonly changes: number; readonly lists: number } {
    const sum = (count: (following: Following) => number) => this.#followed.reduce((all, each) => all + count(each), 0)
    return { changes: sum(({ states }) => states.length), lists: sum(({ lists }) => lists.length) }
  }

  /** Whether the stream has told what the server shows now. */
  async isCaughtUp(): Promise<boolean> {
    const last = this.#followed.at(-1)
    return last !== undefined && this.#stream !== undefined && last.copy.text === textOf(await this.#list())
  }

  async close(): Promise<void> {
    this.#isOver = true
    this.#stream?.close()
    this.#stream?.end()
    await this.#done
  }

  async #follow(): Promise<void> {
    while (!this.#isOver) {
      try {
        await this.#followOnce()
      } catch {
        // It ended, as streams do when their server does.
        if (!this.#isOver) await new Promise((resolve) => setTimeout(resolve, AGAIN_MS))
      }
    }
  }

  async #followOnce(): Promise<void> {
    const stream = await this.#caller().stream('streamNodes', { metadataFilters: {}, serviceFilters: [] })
    const first: { initialResponse: { nodes: Node[] } } = await stream.next()
    const following = new Following(this.#shown(first.initialResponse.nodes))
    this.#followed.push(following)
    this.#stream = stream
    let hasEnded = false
    const listing = this.#listInto(following, () => hasEnded)
    try {
      for (;;) {
        const { updateResponse } = await stream.next()
        for (const [kind, node] of Object.entries(updateResponse as Record<string, Node | undefined>)) {
          if (node === undefined) continue
          const type = kind.slice(0, -'Node'.length) as ToldEvent['type']
          following.take({ type, node: this.#shown([node])[0] as ShownNode })
        }
      }
    } finally {
      hasEnded = true
      this.#stream = undefined
      stream.close()
      await listing
    }
  }

  async #listInto({ lists }: Following, hasEnded: () => boolean): Promise<void> {
    while (!hasEnded()) {
      try {
        const text = textOf(await this.#list())
        if (!hasEnded() && lists.at(-1) !== text) lists.push(text)
      } catch {
        // A server that does not answer shows nothing.
      }
      await new Promise((resolve) => setTimeout(resolve, LIST_MS))
    }
  }

  async #list(): Promise<ShownNode[]> {
    const request = { metadataFilters: {}, serviceFilters: [] }
    const { nodes } = await this.#caller().unary('getNodes', request, AbortSignal.timeout(LIST_PATIENCE_MS))
    return this.#shown(nodes)
  }

  #shown(nodes: readonly Node[]): ShownNode[] {
    for (const node of nodes) {
      const initial = this.#initialNameOf(node.id)
      if (!isWhole(node, initial))
        this.#faults.push(`a node with the metadata of another name: ${JSON.stringify(node)}`)
    }
    return nodes.map(({ id, name, online }) => ({ id, name, online }))
  }
}
