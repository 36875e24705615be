/** Loss whose probability changes in phases. */
import type { Random } from '../../engine/random.ts'
import { type LossModel, UniformLoss } from './loss-models.ts'
import { type Phase, Phases, type PhasesContext } from './phases.ts'

export interface LossPhase extends Phase {
  /** Loss probability of each packet. */
  readonly probability: number
}

/** `UniformLoss` with the probability of the phase that holds. */
export class PhasedLoss implements LossModel {
  private readonly phases: Phases<LossPhase>
  private readonly loss: UniformLoss

  /** As `Phases`. */
  constructor(context: PhasesContext, list: readonly LossPhase[], repeat: boolean, random: Random) {
    this.phases = new Phases(context, list, repeat)
    this.loss = new UniformLoss(list[0].probability, random)
  }

  spares(count: number): number {
    this.phases.follow()
    // Here alone: what is drawn of a seed follows from the packets, not from when somebody looks at the metrics.
    this.loss.probability = this.phases.present.probability
    return this.loss.spares(count)
  }

  /** Index of the phase that holds now. */
  get index(): number {
    this.phases.follow()
    return this.phases.index
  }

  /** As `Phases.change`. */
  change(list: readonly LossPhase[], repeat: boolean): void {
    this.phases.change(list, repeat)
  }
}
