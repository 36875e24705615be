/** What clients of a storm know of a node that may be down. */
import type { Caller } from '../hub/callers.ts'

export interface Place {
  readonly id: string
  readonly caller: Caller
  /** How often it was killed: what was under way then may have happened. */
  readonly kills: number
}
