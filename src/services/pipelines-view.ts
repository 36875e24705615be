/** A pipeline and its run as callers see them. */

import type { LogMessage, Pipeline, Run } from '../contract/types.ts'
import { unchanging } from '../contract/unchanging.ts'
import type { LogLine } from '../dataplane/engine/run.ts'
import type { PipelineRecord } from '../store/pipelines.ts'
import type { RunRecord } from '../store/runs.ts'

/** What a pipeline is shown by; none of it is ever changed in place. */
interface Shown {
  readonly record: PipelineRecord
  readonly started: boolean
  /** The current run, or the last one of a stopped pipeline, which tells how it ended. */
  readonly run: RunRecord | null
  /** Restarts in a row, and when the next one is due, in milliseconds since the epoch. */
  readonly restarts: number
  readonly nextAt: number | undefined
}

/** A pipeline as the whole of an answer, of which the same holds as of the pipeline. */
export interface PipelineAnswer {
  readonly pipeline: Pipeline
}

/** One pipeline as callers see it: the same object until something in it changes, so that it is encoded once for all of them. */
export class PipelineView {
  #last: { record: PipelineRecord; state: object; of: Shown; answer: PipelineAnswer } | undefined

  /** `shown` tells what there is to see, and nothing else as long as `record` and `state` are the same objects. */
  show(record: PipelineRecord, state: object, shown: () => Shown): PipelineAnswer {
    const last = this.#last
    if (last?.record === record && last.state === state) return last.answer
    const of = shown()
    const isSame = last !== undefined && (Object.keys(of) as (keyof Shown)[]).every((key) => last.of[key] === of[key])
    const answer = isSame ? last.answer : unchanging({ pipeline: unchanging(pipelineView(of)) })
    this.#last = { record, state, of, answer }
    return answer
  }
}

function pipelineView({ record: { id, settings }, started, run, restarts: count, nextAt }: Shown): Pipeline {
  return {
    id,
    ...settings,
    started,
    ...(run === null ? {} : { currentRun: runView(run) }),
    ...(count === 0 && nextAt === undefined
      ? {}
      : { restarts: { count, ...(nextAt === undefined ? {} : { nextAt: new Date(nextAt) }) } }),
  }
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
