/** The runs of the node's pipelines on disk: how each began and ended, and which pipeline it belongs to. */
import type { RootDatabase } from 'lmdb'
import type { RunOutcome, RunState } from '../contract/types.ts'
import { OrderedCollection } from './ordered-collection.ts'

export interface RunRecord {
  id: string
  pipelineId: string
  state: RunState
  /** Milliseconds since the epoch. */
  startedAt: number
  /** Milliseconds since the epoch. */
  endedAt?: number
  /** CPU thread the run is pinned to. */
  cpu?: number
  /** How it ended. */
  outcome?: RunOutcome
  /** Why it failed. */
  error?: string
}

export class RunCollection extends OrderedCollection<RunRecord> {
  constructor(root: RootDatabase) {
    super(root, { name: 'runs', keyOf: ({ id }) => id, timeOf: ({ startedAt }) => startedAt })
  }
}
