/** What happens to a pipeline without anybody having asked at that moment, told as facts with fields for whoever keeps a log. */
import type { ActorRefFrom } from 'xstate'
import type { pipeline } from '../actors/pipeline.ts'
import type { Outcome } from '../dataplane/engine/run.ts'
import type { RunRecord } from '../store/runs.ts'

/** Something in the life of a pipeline. `runId` is the run it is about. */
export type PipelineFact = { readonly pipelineId: string; readonly name: string; readonly runId: string } & (
  | {
      /** Packets flow; `attempt`: which restart in a row this is, absent for a first run. */
      readonly kind: 'started'
      readonly cpu: number | undefined
      readonly attempt: number | undefined
    }
  | { readonly kind: 'ended'; readonly outcome: Outcome; readonly error: string | undefined }
  | {
      /** The restart policy makes another run in `delayMs`: number `attempt` of a row of at most `most` (0: no limit). */
      readonly kind: 'restart planned'
      readonly attempt: number
      readonly most: number
      readonly delayMs: number
    }
  /** The restart policy has no restart left after `restarts` in a row. */
  | { readonly kind: 'given up'; readonly restarts: number; readonly error: string | undefined }
  /** While its next run was waited for it was stopped, or got settings whose restart policy wants none. */
  | { readonly kind: 'restart cancelled'; readonly by: 'stop' | 'settings' }
  /** A file of one of its log filters does not take lines; told once until it does again. */
  | { readonly kind: 'lines lost'; readonly file: string; readonly lines: number; readonly error: string }
  /** The file that its metrics are shared in does not take them; told once until it does again. */
  | { readonly kind: 'metrics not shared'; readonly file: string; readonly error: string }
)

type About = Pick<PipelineFact, 'pipelineId' | 'name' | 'runId'>

/** Tells `noted` of each start, end, restart and giving up; `about` says which pipeline a run is of, and what it is called now. */
export function tellFacts(
  actor: ActorRefFrom<typeof pipeline>,
  about: (run: RunRecord) => About,
  noted: (fact: PipelineFact) => void,
): void {
  actor.on('runStarted', ({ record, restarts }) =>
    noted({ ...about(record), kind: 'started', cpu: record.cpu, attempt: restarts > 0 ? restarts : undefined }),
  )
  actor.on('runEnded', ({ record }) =>
    noted({ ...about(record), kind: 'ended', outcome: record.outcome ?? 'FAILED', error: record.error }),
  )
  actor.on('restartPlanned', ({ record, attempt, most, delay }) =>
    noted({ ...about(record), kind: 'restart planned', attempt, most, delayMs: delay }),
  )
  actor.on('gaveUp', ({ record, restarts }) =>
    noted({ ...about(record), kind: 'given up', restarts, error: record.error }),
  )
  actor.on('restartCancelled', ({ record, by }) => noted({ ...about(record), kind: 'restart cancelled', by }))
}
