/** The links that codes are compared over: what share of the packets is lost, one by one or in bursts. */
import { GilbertElliott, UniformLoss } from '../../src/dataplane/components/emulation/loss-models.ts'
import { Random } from '../../src/dataplane/engine/random.ts'
import type { Keyed } from '../support/coded-link.ts'

export const LOSSES = [0.01, 0.05, 0.1, 0.2] as const
export const PATTERNS = ['uniform', 'bursty'] as const
/** Packets lost in a row on a bursty link, on average. */
export const MEAN_BURST = 3

export interface LossyLink {
  /** `uniform`: each packet by itself. `bursty`: geometrically distributed bursts of `MEAN_BURST` on average. */
  pattern: (typeof PATTERNS)[number]
  /** Share of the packets lost, in the long run. */
  loss: number
}

export const LINKS: readonly LossyLink[] = PATTERNS.flatMap((pattern) => LOSSES.map((loss) => ({ pattern, loss })))

/** Chances, per packet, of a burst's begin and of its end. */
function burstsOf(loss: number): { begin: number; end: number } {
  const end = 1 / MEAN_BURST
  return { begin: (end * loss) / (1 - loss), end }
}

/** The link as a component of the catalogue, which draws from `seed`. */
export function lossOf({ pattern, loss }: LossyLink, seed: number): Keyed {
  if (pattern === 'uniform') return { uniform_loss: { loss_prob: loss, seed } }
  const { begin, end } = burstsOf(loss)
  const chances = { good_loss_prob: 0, bad_loss_prob: 1, good_to_bad_prob: begin, bad_to_good_prob: end }
  return { gilbert_elliot_loss: { ...chances, seed } }
}

/** The losses of `lossOf`'s component with the same seed, packet by packet. */
export function lossesOf({ pattern, loss }: LossyLink, seed: number): () => boolean {
  const random = new Random(seed)
  const { begin, end } = burstsOf(loss)
  const model =
    pattern === 'uniform'
      ? new UniformLoss(loss, random)
      : new GilbertElliott({ goodLoss: 0, badLoss: 1, goodToBad: begin, badToGood: end }, random)
  return () => model.spares(1) === 0
}

/**
 * Least share of the packets that any code leaves lost when it sends `overhead` repairs per packet: what arrives of a packet and its repairs is
 * (1 + overhead)(1 - loss), the capacity of an erasure channel (Elias, 1955), and no code gets more out of it.
 */
export function leastLoss(loss: number, overhead: number): number {
  return Math.max(0, 1 - (1 + overhead) * (1 - loss))
}

/** Overhead below which `leastLoss` is above 0. */
export function leastOverhead(loss: number): number {
  return loss / (1 - loss)
}
