import { expect, it } from 'vitest'
import { collectGarbage } from './garbage.ts'

const turn = () => new Promise((resolve) => setImmediate(resolve))

it('collects what nobody holds, and leaves the flags of V8 as they were', async () => {
  const held = { bytes: new Array(1_000).fill(0) }
  const holds = new WeakRef(held)
  const lost = (() => new WeakRef({ bytes: new Array(1_000).fill(0) }))()
  await turn() // what a WeakRef was made of stays until then
  collectGarbage()
  expect(lost.deref()).toBeUndefined()
  expect(holds.deref()).toBe(held)
  expect(globalThis.gc).toBeUndefined()
})
