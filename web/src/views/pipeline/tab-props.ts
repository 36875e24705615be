/** What the tabs of a pipeline are given. */
import type { Pipeline, Run } from '@penstock/client'
import type { Configuration } from '../../data/configuration.ts'

export interface TabProps {
  readonly nodeId: string
  readonly pipeline: Pipeline
  /** It was deleted; what is typed stays. */
  readonly isGone: boolean
  readonly configuration: Configuration
  /** The current run, or the last one; undefined: there was none. */
  readonly runId: string | undefined
  /** Those that this page has seen, newest first. */
  readonly runs: readonly Run[]
}
