/** What is begun of a pipeline's writes, and what is held of them. */
import { expect, test } from 'vitest'
import { collectGarbage } from '../dataplane/engine/garbage.ts'
import { PipelinePersistence } from './pipeline-persistence.ts'

test('nothing is held of what is on disk, however much a pipeline changes and runs', async () => {
  const outcomes: WeakRef<object>[] = []
  const write = async () => {
    const outcome = {}
    outcomes.push(new WeakRef(outcome))
    return outcome
  }
  const store = { pipelines: { put: write }, runs: { remove: write } }
  const persistence = new PipelinePersistence(store as never, (error) => expect(error).toBeUndefined())
  for (let i = 0; i < 10; i++) {
    await persistence.putSettings({} as never)
    persistence.forgetRuns(['run'])
    await persistence.written()
  }
  await new Promise((resolve) => setImmediate(resolve)) // what a WeakRef was made of stays until then
  collectGarbage()
  expect(outcomes).toHaveLength(20)
  expect(outcomes.filter((outcome) => outcome.deref() !== undefined)).toHaveLength(0)
  expect(persistence.isAwaited).toBe(false)
})
