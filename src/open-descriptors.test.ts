import { expect, test } from 'vitest'
import { OpenDescriptors } from './open-descriptors.ts'

test('an eighth of a low limit is kept from newcomers, 64 of a high one', () => {
  const shortFrom = (limit: number): number => {
    for (let open = 0; ; open++) if (new OpenDescriptors(limit, () => open).areShort) return limit - open
  }
  expect([shortFrom(80), shortFrom(256), shortFrom(1024), shortFrom(65_536)]).toEqual([9, 31, 63, 63])
})

test('what comes between two readings counts, and where none is left to read with all are in use', () => {
  let reads = 0
  const slowly = new OpenDescriptors(100, () => {
    // Slow enough for the next one to be far off.
    for (const end = performance.now() + 20; performance.now() < end; );
    reads++
    return 80
  })
  expect([slowly.count, slowly.areShort]).toEqual([80, false])
  slowly.changed(10)
  expect([slowly.count, slowly.areShort, slowly.left, reads]).toEqual([90, true, 10, 1])
  const none = new OpenDescriptors(100, () => {
    throw new Error('EMFILE')
  })
  expect([none.count, none.left]).toEqual([100, 0])
})

test('a limit that is unknown is never reached', () => {
  const unknown = new OpenDescriptors(Number.POSITIVE_INFINITY, () => {
    throw new Error('ENOENT')
  })
  expect([unknown.areShort, unknown.left]).toEqual([false, Number.POSITIVE_INFINITY])
})
