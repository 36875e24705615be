/** The pipelines of the node on disk: the settings as they were last answered, nothing about runs. */
import type { RootDatabase } from 'lmdb'
import type { Pipeline, RestartPolicy, StartupPolicy } from '../contract/types.ts'
import { OrderedCollection } from './ordered-collection.ts'

/** Everything a caller sets on a pipeline, defaults filled in: what callers are shown of it, without what the node adds. */
export type PipelineSettings = Omit<
  Pipeline,
  'id' | 'started' | 'currentRun' | 'restarts' | 'restartPolicy' | 'startupPolicy'
> & {
  restartPolicy: RestartPolicy
  startupPolicy: StartupPolicy
}

export interface PipelineRecord {
  id: string
  settings: PipelineSettings
  /** Id of the node on which they were set; absent: this one. */
  author?: string
  /** Id of the hub that that node served then; absent: none that this node was on. */
  authorHub?: string
  /** Milliseconds since the epoch. */
  createdAt: number
}

export class PipelineCollection extends OrderedCollection<PipelineRecord> {
  constructor(root: RootDatabase) {
    super(root, {
      name: 'pipelines',
      keyOf: ({ id }) => id,
      timeOf: ({ createdAt }) => createdAt,
      bytesOf: ({ settings }) => Buffer.byteLength(settings.jsonConfig),
    })
  }
}
