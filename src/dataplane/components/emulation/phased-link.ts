/** A link whose bandwidth changes in phases. */
import type { Batch } from '../../engine/batch.ts'
import type { Counter } from '../../engine/metrics.ts'
import type { Outlet } from '../../engine/outlet.ts'
import { type Phase, Phases } from './phases.ts'
import { SerialLink, type SerialLinkContext } from './serial-link.ts'

export interface LinkPhase extends Phase {
  /** Bandwidth, Mbit/s. */
  readonly mbit: number
  /** Most packets that wait; absent: as before. */
  readonly limit?: number
}

/** `SerialLink` with the bandwidth of the phase that holds, to the bit: what is on the link when it changes crosses at both rates. */
export class PhasedLink {
  readonly link: SerialLink
  private readonly phases: Phases<LinkPhase>

  /** As `Phases` and `SerialLink`; `limit` holds until a phase has one of its own. */
  constructor(
    context: SerialLinkContext,
    list: readonly LinkPhase[],
    repeat: boolean,
    outlets: readonly Outlet[],
    full: Counter,
    limit: number,
  ) {
    this.link = new SerialLink(context, outlets, full, list[0].mbit, list[0].limit ?? limit)
    this.phases = new Phases(context, list, repeat, () => this.enter())
  }

  private enter(): void {
    const { link, phases } = this
    const { mbit, limit } = phases.present
    link.setBandwidth(mbit, phases.since)
    if (limit !== undefined) link.limit = limit
    link.horizon = phases.end
  }

  /** Index of the phase that holds now. */
  get index(): number {
    return this.phases.index
  }

  /** Takes every packet of a batch, or drops it. */
  take(batch: Batch, flow: number): void {
    if (!this.link.releasing) this.phases.follow()
    this.link.take(batch, flow)
  }

  /** As `Phases.change`. */
  change(list: readonly LinkPhase[], repeat: boolean): void {
    this.phases.change(list, repeat)
  }
}
