import { expect, test } from 'vitest'
import { settle } from '../../test/harness/waiting.ts'
import { SerialQueue } from './serial-queue.ts'

test('steps follow each other, whatever becomes of them', async () => {
  const queue = new SerialQueue()
  const log: string[] = []
  expect(queue.isIdle).toBe(true)
  const step = (name: string, fails = false) =>
    queue.run(async () => {
      log.push(`${name} begins`)
      await settle(1)
      log.push(`${name} ends`)
      if (fails) throw new Error(name)
      return name
    })
  const outcomes = Promise.allSettled([step('a'), step('b', true), step('c')])
  expect(queue.isIdle).toBe(false)
  expect((await outcomes).map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  expect(log).toEqual(['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends'])
  expect(queue.isIdle).toBe(true)
})
