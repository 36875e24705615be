/** Models of packet loss, each drawn once per packet, and the loop that applies one to a batch. */
import type { Batch } from '../../engine/batch.ts'
import type { Counter } from '../../engine/metrics.ts'
import type { Random } from '../../engine/random.ts'

export interface LossModel {
  /** Whether the next packet is lost; moves the model on by one packet. */
  loses(): boolean
}

/** Every packet with the same probability, independent of all others. */
export class UniformLoss implements LossModel {
  /** 0..1; may change at any time. */
  probability: number
  private readonly random: Random

  constructor(probability: number, random: Random) {
    this.probability = probability
    this.random = random
  }

  loses(): boolean {
    return this.random.chance(this.probability)
  }
}

export interface GilbertElliottParameters {
  /** Loss probability of a packet in the good state. */
  goodLoss: number
  /** Loss probability of a packet in the bad state. */
  badLoss: number
  /** Chance, per packet, of turning bad. */
  goodToBad: number
  /** Chance, per packet, of turning good again. */
  badToGood: number
}

/**
 * A two-state Markov chain, one step a packet (Gilbert, "Capacity of a burst-noise channel", 1960; Elliott, "Estimates of
 * error rates for codes on burst-noise channels", 1963). A packet is lost by its state's probability, then the state
 * moves. It starts good. In the long run a share goodToBad / (goodToBad + badToGood) of packets meets the bad state,
 * 1 / badToGood packets in a row.
 */
export class GilbertElliott implements LossModel {
  /** May change at any time; the state stays. */
  parameters: GilbertElliottParameters
  bad = false
  private readonly random: Random

  constructor(parameters: GilbertElliottParameters, random: Random) {
    this.parameters = parameters
    this.random = random
  }

  loses(): boolean {
    const { parameters, random } = this
    if (this.bad) {
      const lost = random.chance(parameters.badLoss)
      if (random.chance(parameters.badToGood)) this.bad = false
      return lost
    }
    const lost = random.chance(parameters.goodLoss)
    if (random.chance(parameters.goodToBad)) this.bad = true
    return lost
  }
}

/** Keeps in `batch` what `model` does not lose, in order; the rest is released and counted. */
export function applyLoss(batch: Batch, model: LossModel, lost: Counter): void {
  const { handles, length, packets } = batch
  let kept = 0
  for (let i = 0; i < length; i++) {
    const packet = handles[i]
    if (model.loses()) packets.release(packet)
    else handles[kept++] = packet
  }
  if (kept !== length) lost.add(length - kept)
  batch.length = kept
}
