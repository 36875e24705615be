/** The runs of pipelines that this page has seen: a node tells the current one only. */
import type { Pipeline, Run } from '@penstock/client'

/** Runs remembered of a pipeline: as many as a node keeps logs of, unless told otherwise. */
const MAX_RUNS = 20
const runs = new Map<string, readonly Run[]>()

/** The runs of the pipeline that were seen, newest first, its current or last one included. */
export function seenRuns({ id, currentRun }: Pipeline): readonly Run[] {
  const known = runs.get(id) ?? []
  if (currentRun === undefined) return known
  const next = [currentRun, ...known.filter((run) => run.id !== currentRun.id)].slice(0, MAX_RUNS)
  runs.set(id, next)
  return next
}
