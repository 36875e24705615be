/** Which code to take: the trials in order, the best checked once more with fresh seeds, and what would help where none is good enough. */
import { type Candidate, candidatesFor, type Link } from './fec-codes.ts'
import { type Effort, RUNS } from './fec-effort.ts'
import { measure, type Trial } from './fec-trials.ts'
import type { SimulationPool } from './simulate-pool.ts'

export interface Aim {
  /** Most residual loss. */
  readonly residual: number
  /** The least overhead that reaches it is wanted, rather than the least residual within the overhead. */
  readonly isCheapest: boolean
}

/** More overhead or a longer budget, and a code that reaches the aim with it. */
export interface Remedy {
  readonly link: Link
  readonly trial: Trial
  /** It does; else it may, measured as a check is, of which too few packets were sent to be believed. */
  readonly isSure: boolean
}

export interface Advice {
  /** The bare link, then all that was tried, the best first. */
  readonly trials: readonly Trial[]
  /** The one to take, as it was measured with fresh seeds; undefined: none reaches the aim. */
  readonly best?: Trial
  /** Where none does: what had, with fresh seeds, too few losses to be refused and too few packets to be believed. */
  readonly unsure?: Trial
  readonly moreOverhead?: Remedy
  readonly moreBudget?: Remedy
}

/** The best is measured with so many times the packets of a trial. */
export const CHECK_FACTOR = 4
/** So many are checked in their order; those after them only where they seem surer than most. */
const FIRST_CHECKS = 3
const MORE_OVERHEAD = [1.5, 2, 3, 4, 6, 10]
const MAX_OVERHEAD = 4
const MORE_BUDGET = [1.5, 2, 3, 4, 8, 16]

const reaches = ({ upper, overhead }: Trial, link: Link, aim: Aim): boolean =>
  upper <= aim.residual && overhead <= link.overhead

/** Nothing speaks against it but that too few packets were sent to be sure. */
const mayReach = ({ residual, overhead }: Trial, link: Link, aim: Aim): boolean =>
  residual <= aim.residual && overhead <= link.overhead

function sorted(trials: readonly Trial[], link: Link, aim: Aim): Trial[] {
  const rank = (trial: Trial) => (reaches(trial, link, aim) ? 0 : mayReach(trial, link, aim) ? 1 : 2)
  const byResidual = (a: Trial, b: Trial) => a.residual - b.residual || a.overhead - b.overhead || a.p99 - b.p99
  const byOverhead = (a: Trial, b: Trial) => a.overhead - b.overhead || byResidual(a, b)
  return [...trials].sort((a, b) => {
    const [first, second] = [rank(a), rank(b)]
    return first - second || (aim.isCheapest && first === 0 ? byOverhead(a, b) : byResidual(a, b))
  })
}

/**
 * What is checked of `promising`, in their order. The first may all be close to the aim and fail: of the others that reach it the half with the
 * lowest upper limits has its turn too. To check every one would let one that is not good enough pass by luck.
 */
function toCheck(promising: readonly Trial[], link: Link, aim: Aim): Trial[] {
  const others = promising.slice(FIRST_CHECKS).filter((trial) => reaches(trial, link, aim))
  const surest = others.toSorted((a, b) => a.upper - b.upper).slice(0, Math.ceil(others.length / 2))
  return promising.filter((trial, i) => i < FIRST_CHECKS || surest.includes(trial))
}

/** Measures `candidates` with fresh seeds and more packets, one by one, up to the first that reaches the aim. */
async function checked(
  pool: SimulationPool,
  link: Link,
  aim: Aim,
  candidates: readonly Candidate[],
  { packets, seed }: Effort,
): Promise<Trial[]> {
  const effort = { packets: packets * CHECK_FACTOR, seed: seed + RUNS }
  const trials: Trial[] = []
  for (const candidate of candidates) {
    const [trial] = (await measure(pool, link, [candidate], effort)) ?? []
    if (trial === undefined) break
    trials.push(trial)
    if (reaches(trial, link, aim)) break
  }
  return trials
}

/**
 * How many times the packets would bring the upper limit of `trial` down to the aim, if it goes on losing as much: without losses the limit
 * falls with the packets, else its distance from the residual falls with their square root.
 */
export function timesThePackets({ residual, upper }: Trial, aim: Aim): number {
  const times = (upper - residual) / (aim.residual - residual)
  return residual === 0 ? times : times ** 2
}

/**
 * Of `links`, each with more than the one before, the first on which a code reaches the aim. Where none is sure to, what needs the fewest packets to be
 * believed is checked, in this order: nothing lost of few packets is no proof that all of this is not enough.
 */
async function remedyOf(
  pool: SimulationPool,
  links: readonly Link[],
  aim: Aim,
  effort: Effort,
): Promise<Remedy | undefined> {
  const unsure: { link: Link; candidate: Candidate; times: number }[] = []
  for (const link of links) {
    // The strongest of each kind: the question is whether there is one.
    const codes = candidatesFor(link)
    const strongest = ['reed_solomon', 'rely', 'parity_2d', 'replication'].flatMap((code) =>
      codes.filter((candidate) => candidate.code === code).slice(0, 1),
    )
    if (strongest.length === 0) continue
    const trials = await measure(pool, link, strongest, effort)
    if (trials === undefined) return undefined
    const [trial] = sorted(trials, link, aim)
    if (trial?.candidate === undefined || !mayReach(trial, link, aim)) continue
    if (reaches(trial, link, aim)) return { link, trial, isSure: true }
    unsure.push({ link, candidate: trial.candidate, times: timesThePackets(trial, aim) })
  }
  for (const { link, candidate } of unsure.sort((a, b) => a.times - b.times)) {
    const [trial] = await checked(pool, link, aim, [candidate], effort)
    if (trial !== undefined && mayReach(trial, link, aim)) return { link, trial, isSure: reaches(trial, link, aim) }
  }
  return undefined
}

/** Tries all that fits; undefined when the pool was told to stop. */
export async function advise(pool: SimulationPool, link: Link, aim: Aim, effort: Effort): Promise<Advice | undefined> {
  const measured = await measure(pool, link, [undefined, ...candidatesFor(link)], effort)
  const [bare, ...coded] = measured ?? []
  if (bare === undefined) return undefined
  const ranked = sorted(coded, link, aim)
  const trials = [bare, ...ranked]
  const promising = ranked.filter((trial) => mayReach(trial, link, aim))
  const chosen = toCheck(promising, link, aim).flatMap(({ candidate }) => candidate ?? [])
  const checks = await checked(pool, link, aim, chosen, effort)
  const best = checks.find((trial) => reaches(trial, link, aim))
  if (best !== undefined) return { trials, best }
  const [unsure] = checks
    .filter((trial) => mayReach(trial, link, aim))
    .sort((a, b) => timesThePackets(a, aim) - timesThePackets(b, aim))
  const overheads = MORE_OVERHEAD.map((factor) => Math.max(link.overhead, 0.01) * factor)
  const more = overheads.filter((overhead) => overhead <= MAX_OVERHEAD).map((overhead) => ({ ...link, overhead }))
  const longer = MORE_BUDGET.map((factor) => ({ ...link, budget: Math.ceil(link.budget * factor) }))
  const moreOverhead = await remedyOf(pool, more, aim, effort)
  const moreBudget = await remedyOf(pool, longer, aim, effort)
  return {
    trials,
    ...(unsure && { unsure }),
    ...(moreOverhead && { moreOverhead }),
    ...(moreBudget && { moreBudget }),
  }
}
