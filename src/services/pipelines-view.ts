/** A pipeline and its run as callers see them. */

import type { LogMessage, Pipeline, Run } from '../contract/types.ts'
import { unchanging } from '../contract/unchanging.ts'
import type { LogLine } from '../dataplane/engine/run.ts'
import type { PipelineRecord } from '../store/pipelines.ts'
import type { RunRecord } from '../store/runs.ts'

/** One pipeline as callers see it: the same object until something in it changes, so that it is encoded once for all of them. */
export class PipelineView {
  /** What was shown last, and what it was made of: none of that is ever changed in place. */
  #last: { record: PipelineRecord; started: boolean; run: RunRecord | null; shown: Pipeline } | undefined

  /** `run` as for `pipelineView`. */
  show(record: PipelineRecord, started: boolean, run: RunRecord | null): Pipeline {
    const last = this.#last
    if (last !== undefined && last.record === record && last.started === started && last.run === run) return last.shown
    const shown = unchanging(pipelineView(record, started, run))
    this.#last = { record, started, run, shown }
    return shown
  }
}

/** `run` is the current run, or the last one of a stopped pipeline, which tells how it ended. */
function pipelineView({ id, settings }: PipelineRecord, started: boolean, run: RunRecord | null): Pipeline {
  return { id, ...settings, started, ...(run === null ? {} : { currentRun: runView(run) }) }
}

export function runView({ id, state, startedAt, endedAt, cpu, outcome, error }: RunRecord): Run {
  return {
    id,
    state,
    startedAt: new Date(startedAt),
    ...(endedAt === undefined ? {} : { endedAt: new Date(endedAt) }),
    ...(cpu === undefined ? {} : { cpu }),
    ...(outcome === undefined ? {} : { outcome }),
    ...(error === undefined ? {} : { error }),
  }
}

export function logMessageView({ timestamp, level, component, message, fields }: LogLine): LogMessage {
  const texts = Object.entries(fields).map(([key, value]) => [key, String(value)])
  return { timestamp: new Date(timestamp), level, component, message, fields: Object.fromEntries(texts) }
}
