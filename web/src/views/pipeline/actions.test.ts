import type { Pipeline, Run } from '@penstock/client'
import { expect, test } from 'vitest'
import { actionsOf } from './actions.ts'

const run = (state: Run['state']): Run => ({ id: 'r', state })
const pipeline = (started: boolean, currentRun?: Run): Pipeline => ({
  ...{ id: 'p', name: 'p', jsonConfig: '{}', defaultLoggingLevel: 'INFO', instructionsTimeout: 30 },
  ...{ performanceMode: false, started },
  ...(currentRun && { currentRun }),
})

test.each([
  ['never started', pipeline(false), ['start', 'delete']],
  ['stopped', pipeline(false, run('ENDED')), ['start', 'delete']],
  ['starting', pipeline(true, run('STARTING')), ['stop', 'delete']],
  ['running', pipeline(true, run('RUNNING')), ['stop', 'restart', 'delete']],
  ['stopping', pipeline(true, run('STOPPING')), ['delete']],
  ['waiting to restart', pipeline(true, run('ENDED')), ['stop', 'delete']],
])('%s', (_, of, actions) => {
  expect([...actionsOf(of)]).toEqual(actions)
})
