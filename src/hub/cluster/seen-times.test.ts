/** What is written of when nodes were seen last: all of it in turn, whatever fails, and what fails is told once. */
import { expect, test } from 'vitest'
import { SeenTimes } from './seen-times.ts'

const MINUTE = 60_000

function rig(nodes: number, fails: (nodeId: string) => string | undefined) {
  let time = 100 * MINUTE
  let isInTouch = true
  const due = new Map(Array.from({ length: nodes }, (_, i) => [`n${String(i).padStart(5, '0')}`, 0]))
  const told: string[] = []
  const times = new SeenTimes({
    picture: { seenLater: () => [...due].map(([nodeId, lastSeen]) => ({ nodeId, lastSeen })) },
    members: {
      sawLast: async (nodeId) => {
        const failure = fails(nodeId)
        if (failure !== undefined) throw new Error(failure)
        due.delete(nodeId)
      },
    },
    isFirst: () => true,
    hubTime: () => time,
    onLater: (error) => {
      if (isInTouch) told.push((error as Error).message)
      return isInTouch
    },
  })
  return {
    told,
    due,
    add: (nodeId: string) => due.set(nodeId, 0),
    touch: (isNow: boolean) => {
      isInTouch = isNow
    },
    look: async () => {
      time += MINUTE
      await times.look()
    },
  }
}

test('it fails each minute: told once, again when it fails of something else, and again after it has worked', async () => {
  let cause: string | undefined = 'no space'
  const { look, told, add } = rig(1, () => cause)
  for (let minute = 0; minute < 60; minute++) await look()
  expect(told).toEqual(['no space'])
  cause = 'not allowed'
  for (let minute = 0; minute < 3; minute++) await look()
  expect(told).toEqual(['no space', 'not allowed'])
  cause = undefined
  await look()
  cause = 'not allowed'
  add('n1')
  await look()
  expect(told).toEqual(['no space', 'not allowed', 'not allowed'])
})

test('it fails while the server is not in touch, which is not told: told once it is in touch', async () => {
  const { look, told, touch } = rig(1, () => 'no answer')
  touch(false)
  await look()
  touch(true)
  await look()
  await look()
  expect(told).toEqual(['no answer'])
})

test('more than a look takes fail each time: the others have their turn', async () => {
  const isBad = (nodeId: string) => nodeId < 'n02500'
  const { look, due } = rig(3_000, (nodeId) => (isBad(nodeId) ? 'no space' : undefined))
  for (let minute = 0; minute < 3; minute++) await look()
  expect([...due.keys()].filter((nodeId) => !isBad(nodeId))).toEqual([])
  expect(due.size).toBe(2_500)
})
