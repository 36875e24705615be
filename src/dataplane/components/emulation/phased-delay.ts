/** Delay lines whose delay changes in phases. */
import type { Batch } from '../../engine/batch.ts'
import type { Notification } from '../../engine/flow.ts'
import type { Outlet } from '../../engine/outlet.ts'
import { type DelayLineContext, type DelayLineOptions, DelayLines, type DelayModel } from './delay-line.ts'
import { type Phase, Phases } from './phases.ts'

/** Delay and jitter in ns. */
export interface DelayPhase extends Phase, Readonly<DelayModel> {}

/** `DelayLines` under the delay of the phase that holds when a packet comes. */
export class PhasedDelay {
  readonly lines: DelayLines
  private readonly phases: Phases<DelayPhase>
  private readonly model: DelayModel

  /** As `Phases` and `DelayLines`. */
  constructor(
    context: DelayLineContext,
    list: readonly DelayPhase[],
    repeat: boolean,
    outlets: readonly Outlet[],
    options: DelayLineOptions,
  ) {
    this.phases = new Phases(context, list, repeat)
    this.model = { delay: list[0].delay, jitter: list[0].jitter }
    this.lines = new DelayLines(context, this.model, outlets, options)
  }

  private follow(): void {
    this.phases.follow()
    const { delay, jitter } = this.phases.present
    this.model.delay = delay
    this.model.jitter = jitter
  }

  /** Index of the phase that holds now. */
  get index(): number {
    this.phases.follow()
    return this.phases.index
  }

  /** Takes every packet of a batch. */
  take(batch: Batch, flow: number): void {
    this.follow()
    this.lines.take(batch, flow)
  }

  /** A notification keeps its place among the packets of its flow. */
  notify(notification: Notification, flow: number): void {
    this.follow()
    this.lines.notify(notification, flow)
  }

  /** As `Phases.change`. */
  change(list: readonly DelayPhase[], repeat: boolean): void {
    this.phases.change(list, repeat)
  }
}
