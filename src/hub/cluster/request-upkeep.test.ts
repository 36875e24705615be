/** What nobody else sees to of requests to join: that it cannot be changed is told once, though it is tried each second. */
import { expect, test } from 'vitest'
import { recordOf } from '../../../test/harness/registries.ts'
import type { RequestEntry } from './entries.ts'
import { RequestUpkeep, type RequestUpkeepOptions } from './request-upkeep.ts'

const request: RequestEntry = {
  ...{ revision: 1, key: new Uint8Array(32), record: recordOf('n'), network: '10.0.0.1', life: 'gone', waiter: 'w' },
  ...{ timeout: 1_000, raised: 1_000, decision: undefined },
}

test('a change that fails each second is told once, until it has worked or nothing is to be changed', async () => {
  let isFailing = true
  let known: [string, RequestEntry[]][] = [['n', [request]]]
  const told: unknown[] = []
  const upkeep = new RequestUpkeep({
    requests: { known: () => known, hasWaiter: () => false } as unknown as RequestUpkeepOptions['requests'],
    members: {
      change: async () => {
        if (isFailing) throw new Error('no space')
      },
    } as unknown as RequestUpkeepOptions['members'],
    places: { isOwn: () => false, isElsewhere: () => false, life: () => 'own' },
    isInTouch: () => true,
    isFirst: () => true,
    engineTime: () => 60_000,
    hubTime: () => 60_000,
    onLater: (error) => told.push(error) > 0,
  })
  const ticks = async (times: number) => {
    for (let tick = 0; tick < times; tick++) await upkeep.tick()
    return told.length
  }
  expect(await ticks(10)).toBe(1)
  isFailing = false
  await ticks(1)
  isFailing = true
  expect(await ticks(10)).toBe(2)
  known = []
  await ticks(1)
  known = [['n', [request]]]
  expect(await ticks(10)).toBe(3)
})
