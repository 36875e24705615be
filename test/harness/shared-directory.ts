/** The servers of a hub in one process, each of which sees what the others publish. */
import type { ServerDirectory } from '../../src/hub/server-directory.ts'

interface Entry {
  details: Uint8Array
  isUp: boolean
  isInTouch: boolean
  readonly listeners: (() => void)[]
  readonly touched: (() => void)[]
  readonly removals: ((nodeId: string, revision: number) => void)[]
}

export class SharedDirectory {
  /** Removals that servers have heard of from others: the server that heard, the node, the revision. */
  readonly heard: [string, string, number][] = []
  readonly #entries = new Map<string, Entry>()

  /** As the server with this id has it; from now on it is up. */
  of(selfId: string): ServerDirectory {
    const entry: Entry = {
      details: new Uint8Array(0),
      isUp: true,
      isInTouch: true,
      listeners: [],
      touched: [],
      removals: [],
    }
    this.#entries.set(selfId, entry)
    return {
      selfId,
      servers: () => [...this.#entries].filter(([, { isUp }]) => isUp).map(([id, { details }]) => ({ id, details })),
      followServers: (listener) => entry.listeners.push(listener),
      publish: (details) => {
        entry.details = details
        this.#tell()
      },
      get isInTouch() {
        return entry.isInTouch
      },
      followTouch: (listener) => entry.touched.push(listener),
      followRemovals: (listener) => entry.removals.push(listener),
      removed: (nodeId, revision) => this.heard.push([selfId, nodeId, revision]),
    }
  }

  /** The server is gone. */
  leave(id: string): void {
    this.#entry(id).isUp = false
    this.#tell()
  }

  /** The server with this id has removed a member. */
  remove(id: string, nodeId: string, revision: number): void {
    for (const listener of this.#entry(id).removals) listener(nodeId, revision)
  }

  touch(id: string, isInTouch: boolean): void {
    const entry = this.#entry(id)
    entry.isInTouch = isInTouch
    for (const listener of entry.touched) listener()
  }

  #entry(id: string): Entry {
    const entry = this.#entries.get(id)
    if (entry === undefined) throw new Error(`no server ${id}`)
    return entry
  }

  #tell(): void {
    for (const { isUp, listeners } of this.#entries.values()) if (isUp) for (const listener of listeners) listener()
  }
}
