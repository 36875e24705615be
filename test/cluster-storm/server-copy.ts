/** What one server has told of the hub's nodes: a copy made of its first picture and its events, which has to be what it shows, at all times. */
import type { NodeEvent } from '../../src/hub/registry.ts'

export interface ShownNode {
  readonly id: string
  readonly name: string
  readonly online: boolean
}

export interface ToldEvent {
  readonly type: NodeEvent['type']
  readonly node: ShownNode
}

interface Copied {
  name: string
  online: boolean
  isConnected: boolean
}

const byId = (a: ShownNode, b: ShownNode) => (a.id < b.id ? -1 : 1)
/** Nodes as text, the same for equal ones in any order. */
export const textOf = (nodes: Iterable<ShownNode>) =>
  JSON.stringify([...nodes].map(({ id, name, online }) => ({ id, name, online })).sort(byId))

export class ServerCopy {
  readonly #nodes = new Map<string, Copied>()
  /** What each node's record said, as it was told, one after the other; undefined: no member. */
  readonly names = new Map<string, (string | undefined)[]>()
  /** What was told and cannot follow what was told before. */
  readonly faults: string[] = []
  readonly #isAdmittedAgain: boolean

  /** `isAdmittedAgain`: members are let in once more without a change of their names. */
  constructor(first: readonly ShownNode[], { isAdmittedAgain = false } = {}) {
    this.#isAdmittedAgain = isAdmittedAgain
    for (const { id, name, online } of first) {
      this.#nodes.set(id, { name, online, isConnected: online })
      this.#noteName(id, name)
    }
  }

  take({ type, node }: ToldEvent): void {
    const fault = this.#apply(type, node)
    if (fault !== undefined) this.faults.push(`${type} of ${node.name} (${node.id}): ${fault}`)
    const after = this.#nodes.get(node.id)
    if (after !== undefined && after.name !== node.name) this.faults.push(`${type} of ${node.id}: changed its name`)
    if (type !== 'deauthenticated') this.#noteName(node.id, node.name)
    else this.#noteName(node.id, undefined)
  }

  /** All nodes, as `textOf` gives it. */
  get text(): string {
    return textOf(Array.from(this.#nodes, ([id, { name, online }]) => ({ id, name, online })))
  }

  /** Compares with what the server shows when all that it has told so far has been taken. */
  compare(shown: readonly ShownNode[]): void {
    const { text } = this
    if (text !== textOf(shown)) this.faults.push(`its events give ${text}, it shows ${textOf(shown)}`)
  }

  /** What is wrong about the event, if anything is. */
  #apply(type: NodeEvent['type'], { id, name, online }: ShownNode): string | undefined {
    const known = this.#nodes.get(id)
    if (type === 'authenticated') {
      this.#nodes.set(id, { name, online, isConnected: known?.isConnected ?? false })
      return known?.name === name && !this.#isAdmittedAgain ? 'twice' : undefined
    }
    if (known === undefined) return 'no member'
    switch (type) {
      case 'deauthenticated':
        this.#nodes.delete(id)
        return undefined
      case 'updated': {
        const isSame = known.name === name
        known.name = name
        known.online = online
        return isSame ? 'twice' : undefined
      }
      case 'connected':
      case 'disconnected': {
        const isConnected = type === 'connected'
        const isSame = known.isConnected === isConnected
        known.isConnected = isConnected
        known.online = online
        return isSame || online !== isConnected ? 'twice, or with the other state' : undefined
      }
    }
  }

  #noteName(id: string, name: string | undefined): void {
    const names = this.names.get(id)
    if (names === undefined) this.names.set(id, [name])
    else if (names.at(-1) !== name) names.push(name)
  }
}

/**
 * What contradicts itself in the orders in which servers have shown the names of one node: each name is given once, so that none comes back
 * on a server once another has followed, and no two servers have two of them in different orders.
 */
export function contradiction(orders: readonly (readonly (string | undefined)[])[]): string | undefined {
  const follows = new Map<string, Set<string>>()
  for (const order of orders) {
    const names = order.filter((name) => name !== undefined)
    for (const [i, name] of names.entries()) {
      for (const later of names.slice(i + 1)) {
        if (later === name) return `${name} came back`
        if (follows.get(later)?.has(name)) return `${name} before ${later}, and after it`
        follows.set(name, (follows.get(name) ?? new Set()).add(later))
      }
    }
  }
  return undefined
}
