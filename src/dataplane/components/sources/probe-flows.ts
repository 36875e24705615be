/** The sources that a sink tells apart: each has a flow while there is room, and goes on where it was when it comes back. */
import { ProbeFlow } from './probe-flow.ts'

/** Flows told apart at once; one more takes the place of the one that was silent longest. */
export const MAX_FLOWS = 256
/** Sources remembered that gave their place to others. */
export const MAX_FORMER_FLOWS = 4096

export class ProbeFlows {
  /** Missing packets of flows that gave their place to others. */
  private lostBefore = 0
  private readonly flows = new Map<number, ProbeFlow>()
  /** Of sources without a place: the sequence after the newest that has come. The last to give its place is at the end. */
  private readonly former = new Map<number, number>()
  /** Some of those are not known any more: whoever comes may have been here. */
  private isForgetful = false

  /** How many there are. */
  get size(): number {
    return this.flows.size
  }

  /** The flows there are, by source. */
  get entries(): Iterable<[source: number, flow: ProbeFlow]> {
    return this.flows
  }

  /** Packets that are missing of all flows, former ones included. */
  get lost(): number {
    let lost = this.lostBefore
    for (const flow of this.flows.values()) lost += flow.lost
    return lost
  }

  /** The flow of `source`, of which the packet `sequence` has come. */
  of(source: number, sequence: number): ProbeFlow {
    return this.flows.get(source) ?? this.open(source, sequence)
  }

  private open(source: number, sequence: number): ProbeFlow {
    const { flows, former } = this
    const next = former.get(source) ?? (this.isForgetful ? sequence : 0)
    former.delete(source)
    const flow = flows.size < MAX_FLOWS ? new ProbeFlow() : this.giveUpOldest()
    flow.begin(next)
    flows.set(source, flow)
    return flow
  }

  /** Takes the place of the flow that was silent longest. */
  private giveUpOldest(): ProbeFlow {
    const { flows, former } = this
    let oldest = -1
    let last = Number.POSITIVE_INFINITY
    for (const [source, flow] of flows) {
      if (flow.last >= last) continue
      last = flow.last
      oldest = source
    }
    const flow = flows.get(oldest) as ProbeFlow
    flows.delete(oldest)
    this.lostBefore += flow.lost
    if (former.size === MAX_FORMER_FLOWS) {
      for (const [source] of former) {
        former.delete(source)
        break
      }
      this.isForgetful = true
    }
    former.set(oldest, flow.next)
    return flow
  }
}
