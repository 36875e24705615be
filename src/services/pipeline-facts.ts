/** What a log is to have of a pipeline's life, from what its machine tells. */
import type { ActorRefFrom } from 'xstate'
import type { pipeline } from '../actors/pipeline.ts'
import type { PipelineFact } from '../hub/facts.ts'
import type { RunRecord } from '../store/runs.ts'

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
  actor.on('restartCancelled', ({ record }) => noted({ ...about(record), kind: 'restart cancelled' }))
}
