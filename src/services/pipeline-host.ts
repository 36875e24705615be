/** What a hosted pipeline needs of its node. */
import type { pipeline as pipelineMachine } from '../actors/pipeline.ts'
import type { Timers } from '../contract/clock.ts'
import type { Pipeline } from '../contract/types.ts'
import type { Store } from '../store/store.ts'
import type { ProcessMeter } from '../telemetry/process-meter.ts'
import type { RunLogs } from '../telemetry/run-logs.ts'
import type { HostedRun } from './hosted-run.ts'
import type { PipelineFact } from './pipeline-facts.ts'
import type { SettingsRules } from './pipelines-settings.ts'

export interface PipelineHost extends SettingsRules {
  readonly store: Store
  /** The machine, its run actor provided. */
  readonly machine: typeof pipelineMachine
  readonly clock: Timers
  readonly runLogs: RunLogs
  newId(): string
  /** Milliseconds. */
  readonly telemetryInterval: number
  readonly processMeter: ProcessMeter
  /** Those of `cpus` that a run can be pinned to now. */
  usableCpus(): readonly number[]
  /** The one of `usable` for a run of this pipeline, which names none; undefined where there is none. The run whose place it takes counts no more. */
  leastLoadedCpu(pipelineId: string, usable: readonly number[]): number | undefined
  /** Why no run can be started at the moment, if none can. */
  noThread(): string | undefined
  /** Keeps the place of a run for the one that follows it; gives it back once the function returned is called. */
  keepPlace(runId: string): () => void
  /** A pipeline has changed: as it was, or is, since. */
  changed(pipeline: Pipeline): void
  runPlanned(run: HostedRun): void
  runForgotten(runId: string): void
  /** The disk did not do what nobody waits for; `message` says what. */
  failed(message: string, error: unknown): void
  /** Something happened to a pipeline that a log should have. */
  readonly noted: (fact: PipelineFact) => void
}
