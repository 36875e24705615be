/** What one server lists, looked at again and again: nobody who is gone comes back, nobody goes by itself, and no time at which a node was seen goes back. */
import type { Node } from '../../src/contract/types.ts'
import type { Member } from './node-party.ts'
import type { ServerParty } from './server-party.ts'

const LOOK_MS = 100
export const PATIENCE_MS = 4_000
/** Two time stamps of the engine's clock, each cut to milliseconds, and the estimate of it in between. */
const SLACK_MS = 5

/** Throws what the call fails with. */
export async function listOf({ caller }: ServerParty): Promise<Node[]> {
  const request = { metadataFilters: {}, serviceFilters: [] }
  return (await caller.unary('getNodes', request, AbortSignal.timeout(PATIENCE_MS))).nodes
}

const seenAt = ({ lastSeen }: Node): number => lastSeen?.getTime() ?? 0

export class Lists {
  readonly faults: string[] = []
  readonly #server: ServerParty
  readonly #members: readonly Member[]
  #life: number | undefined
  #seen = new Map<string, Node>()
  #gone = new Set<string>()

  constructor(server: ServerParty, members: readonly Member[]) {
    this.#server = server
    this.#members = members
  }

  async follow(isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
      const { life } = this.#server
      // A server that does not answer shows nothing.
      const nodes = life === undefined ? undefined : await listOf(this.#server).catch(() => undefined)
      if (nodes !== undefined && this.#server.life === life) this.#look(life as number, nodes)
    }
  }

  #look(life: number, nodes: readonly Node[]): void {
    if (life !== this.#life) {
      this.#life = life
      this.#seen = new Map()
      this.#gone = new Set()
    }
    for (const node of nodes) {
      const before = this.#seen.get(node.id)
      const back = before === undefined ? 0 : seenAt(before) - seenAt(node)
      if (back > SLACK_MS) this.#fault(`${node.name} was seen ${back} ms earlier than before`)
      if (this.#gone.has(node.id)) this.#fault(`${node.name} has come back`)
      this.#seen.set(node.id, node)
    }
    for (const [id, { name }] of this.#seen) {
      if (nodes.some((node) => node.id === id)) continue
      this.#seen.delete(id)
      this.#gone.add(id)
      const member = this.#members.find((each) => each.id === id)
      if (member?.isMember !== false && member?.isMember !== undefined) this.#fault(`${name} is gone`)
    }
  }

  #fault(what: string): void {
    this.faults.push(`${this.#server.name}: ${what}`)
  }
}
