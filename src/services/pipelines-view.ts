/** A pipeline and its run as callers see them. */

import type { LogMessage, Pipeline, Run } from '../contract/types.ts'
import type { LogLine } from '../dataplane/engine/run.ts'
import type { PipelineRecord } from '../store/pipelines.ts'
import type { RunRecord } from '../store/runs.ts'

/** `run` is the current run, or the last one of a stopped pipeline, which tells how it ended. */
export function pipelineView({ id, settings }: PipelineRecord, started: boolean, run: RunRecord | null): Pipeline {
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
