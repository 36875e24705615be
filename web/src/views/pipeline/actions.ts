/** What can be done with a pipeline in the state that it is in. */
import type { Pipeline } from '@penstock/client'

type Action = 'start' | 'stop' | 'restart' | 'delete'

/** One that waits to be restarted by its policy can be stopped; one that stops can only be deleted. */
export function actionsOf({ started, currentRun }: Pipeline): ReadonlySet<Action> {
  if (!started) return new Set(['start', 'delete'])
  switch (currentRun?.state) {
    case 'RUNNING':
      return new Set(['stop', 'restart', 'delete'])
    case 'STOPPING':
      return new Set(['delete'])
    default:
      return new Set(['stop', 'delete'])
  }
}
