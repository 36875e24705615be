/** Models of packet loss and the loop that applies one to a batch. */
import type { Batch } from '../../engine/batch.ts'
import type { Counter } from '../../engine/metrics.ts'
import type { Random } from '../../engine/random.ts'

/** No gap is less than 0. */
const UNDRAWN = -1

export interface LossModel {
  /**
   * How many of the next `count` packets come through before the first loss. The model moves on past them, and past the
   * packet that is lost when there are fewer than `count`.
   */
  spares(count: number): number
}

/**
 * Every packet with the same probability, independent of all others. The packets between two losses are drawn at once: their
 * number is geometrically distributed, floor(ln U / ln(1 - p)) (Devroye, "Non-Uniform Random Variate Generation", X.2).
 */
export class UniformLoss implements LossModel {
  private readonly random: Random
  private p: number
  /** Packets before the next loss; drawn when the next packet comes, so that a change before it draws nothing. */
  private gap = UNDRAWN

  constructor(probability: number, random: Random) {
    this.random = random
    this.p = probability
  }

  /** 0..1; may change at any time. */
  get probability(): number {
    return this.p
  }

  set probability(p: number) {
    if (p !== this.p) this.gap = UNDRAWN
    this.p = p
  }

  private draw(): number {
    if (this.p <= 0) return Number.POSITIVE_INFINITY
    if (this.p >= 1) return 0
    return Math.floor(Math.log(this.random.float() + 2 ** -33) / Math.log1p(-this.p))
  }

  spares(count: number): number {
    if (count === 0) return 0
    const gap = this.gap === UNDRAWN ? this.draw() : this.gap
    if (gap >= count) {
      this.gap = gap - count
      return count
    }
    this.gap = UNDRAWN
    return gap
  }
}

/** Of every `interval + burst` packets the last `burst` are lost. */
export class PeriodicBursts implements LossModel {
  /** Packets that come through between two bursts, at least 1; may change at any time. */
  interval: number
  /** Packets lost in a row; 0: none. May change at any time. */
  burst: number
  private passed = 0
  /** Packets lost of the present burst; 0 before it. */
  private lost = 0

  constructor(interval: number, burst: number) {
    this.interval = interval
    this.burst = burst
  }

  spares(count: number): number {
    const { interval, burst } = this
    if (count === 0) return 0
    if (burst === 0) {
      if (this.lost > 0) this.lost = this.passed = 0
      return count
    }
    if (this.lost > 0 && this.lost < burst) {
      this.lost++
      return 0
    }
    if (this.lost > 0) this.lost = this.passed = 0
    const spared = Math.max(0, interval - this.passed)
    if (spared >= count) {
      this.passed += count
      return count
    }
    this.lost = 1
    return spared
  }
}

/**
 * Bursts of `burst` lost packets that start at random: each packet outside a burst is the first of one with the same probability p.
 * The share lost is p burst / (1 - p + p burst).
 */
export class RandomBursts implements LossModel {
  /** Packets lost in a row; 0: none. May change at any time. */
  burst: number
  private readonly starts: UniformLoss
  /** Packets lost of the present burst; 0 outside. */
  private lost = 0

  constructor(probability: number, burst: number, random: Random) {
    this.starts = new UniformLoss(probability, random)
    this.burst = burst
  }

  /** Of each packet outside a burst, 0..1; may change at any time. */
  set probability(p: number) {
    this.starts.probability = p
  }

  spares(count: number): number {
    const { burst } = this
    if (count === 0) return 0
    if (burst === 0) {
      this.lost = 0
      return count
    }
    if (this.lost > 0 && this.lost < burst) {
      this.lost++
      return 0
    }
    const spared = this.starts.spares(count)
    this.lost = spared === count ? 0 : 1
    return spared
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

  spares(count: number): number {
    for (let i = 0; i < count; i++) if (this.loses()) return i
    return count
  }

  private loses(): boolean {
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
  const { handles, length } = batch
  let kept = model.spares(length)
  if (kept === length) return
  batch.discard(handles[kept])
  for (let i = kept + 1; i < length; ) {
    const end = i + model.spares(length - i)
    while (i < end) handles[kept++] = handles[i++]
    if (i < length) batch.discard(handles[i++])
  }
  lost.add(length - kept)
  batch.length = kept
}
