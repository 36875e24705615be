/** What a pipeline does now, in a word. */
import type { Pipeline } from '@penstock/client'
import type { Tone } from './badge.tsx'

export function stateOf({ started, currentRun, restarts }: Pipeline): readonly [tone: Tone, text: string] {
  if (!started) {
    if (currentRun === undefined) return ['idle', 'never started']
    if (currentRun.outcome === 'FAILED') return ['bad', 'failed']
    return currentRun.outcome === 'COMPLETED' ? ['idle', 'completed'] : ['idle', 'stopped']
  }
  switch (currentRun?.state) {
    case 'RUNNING':
      return ['good', 'running']
    case 'STARTING':
      return ['busy', 'starting']
    case 'STOPPING':
      return ['busy', 'stopping']
    default:
      return restarts?.nextAt === undefined ? ['busy', 'starting'] : ['warn', 'waiting to restart']
  }
}
