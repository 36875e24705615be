/** What is simulated, one code over one link at a time, and what came of it. */

import { ideal, type Outcome, simulated, type Traffic } from '../support/coded-link.ts'
import { Deliveries } from '../support/deliveries.ts'
import { type Candidate, OVERHEADS, ofDelay, ofOverhead, overheadFor, raft } from './candidates.ts'
import { LINKS, type LossyLink, lossesOf, lossOf } from './links.ts'
import { overRaft } from './raft-link.ts'

/** `overhead`: all codes at one overhead. `delay`: one overhead, short and long blocks and windows. `raft`: what adapts by itself, on a path with a delay. */
export type Comparison = 'overhead' | 'delay' | 'raft'

export interface Cell {
  comparison: Comparison
  link: LossyLink
  candidate: Candidate
}

export interface Figure extends Pick<Cell, 'comparison' | 'link'>, Pick<Candidate, 'code' | 'settings' | 'rate'> {
  /** Repair packets per source packet, as sent; for raft all that was sent beyond the packets themselves. */
  overhead: number
  /** Packets that never came. */
  lost: number
  /** In-order delay, ms. */
  p50: number
  p99: number
}

export const TRAFFIC: Traffic = { bytes: 1200, interval: 100_000, packets: 20_000, tail: 5_000 }
export const SEED = 1
/** How long the ideal code waits for a repair, ns: as long as rely_decoder by default. */
const PATIENCE = 200e6

export function allCells(): Cell[] {
  return LINKS.flatMap((link) => {
    const cellsOf = (comparison: Comparison, candidates: readonly Candidate[]): Cell[] =>
      candidates.map((candidate) => ({ comparison, link, candidate }))
    return [
      ...cellsOf('overhead', OVERHEADS.flatMap(ofOverhead)),
      ...cellsOf('delay', ofDelay(overheadFor(link.loss))),
      ...cellsOf('raft', [raft]),
    ]
  })
}

function outcomeOf({ link, candidate }: Cell): Outcome {
  const { code, rate, encoder, decoder } = candidate
  if (code === 'ideal') return ideal(TRAFFIC, rate, PATIENCE, lossesOf(link, SEED))
  if (encoder && decoder) return simulated(TRAFFIC, encoder, lossOf(link, SEED), decoder, SEED)
  return overRaft(TRAFFIC, link, SEED)
}

/** Simulates one cell: the same cell always gives the same figure. */
export function figureOf(cell: Cell): Figure {
  const { comparison, link, candidate } = cell
  const { code, settings, rate } = candidate
  const { lost, delays, overhead } = outcomeOf(cell)
  const [p50, p99] = Deliveries.quantiles(delays, [0.5, 0.99]).map((ns) => Number((ns / 1e6).toFixed(3)))
  return { comparison, link, code, settings, rate, overhead: Number(overhead.toFixed(4)), lost, p50, p99 }
}
