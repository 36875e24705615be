/** Who is on which simulated network, over all runs: told by the runs as they come and go, and tells them of each other. */
import type { NetworkChange, NetworkMember } from './network.ts'
import { closeRing, unlockRing } from './network-ring.ts'

interface Entry {
  tell: (change: NetworkChange) => void
  /** Networks the run has ports on; null until it is running, and could have any. */
  networks: ReadonlySet<string> | null
  members: readonly NetworkMember[]
}

export class NetworkRegistry {
  private readonly runs = new Map<number, Entry>()
  private last = 0

  /**
   * A run that is about to start gets a number and learns, by `tell`, of all that changes from now on; `present` are the members so far.
   */
  enter(tell: (change: NetworkChange) => void): { run: number; present: NetworkMember[] } {
    const present = [...this.runs.values()].flatMap(({ members }) => members)
    this.last++
    this.runs.set(this.last, { tell, networks: null, members: [] })
    return { run: this.last, present }
  }

  /** The run is running, with ports on `networks` and these members that take packets. */
  join(run: number, networks: readonly string[], members: readonly NetworkMember[]): void {
    const entry = this.runs.get(run)
    if (!entry) return
    entry.networks = new Set(networks)
    entry.members = members
    for (const [other, { tell, networks: theirs }] of this.runs) {
      if (other === run) continue
      const joined = members.filter(({ network }) => theirs === null || theirs.has(network))
      if (joined.length > 0) tell({ joined, left: [] })
    }
  }

  /** The run has ended, its thread with it if that died: nothing is copied to it any more, and what it had locked is free. */
  leave(run: number): void {
    const entry = this.runs.get(run)
    if (!entry) return
    this.runs.delete(run)
    for (const { ring } of entry.members) closeRing(ring)
    for (const { tell, members, networks } of this.runs.values()) {
      for (const { ring } of members) unlockRing(ring, run)
      if (entry.members.some(({ network }) => networks === null || networks.has(network))) {
        tell({ joined: [], left: [run] })
      }
    }
  }
}
