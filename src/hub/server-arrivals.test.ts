/** Which servers of a hub come and go, told once each. */
import { expect, test } from 'vitest'
import { SharedDirectory } from '../../test/harness/shared-directory.ts'
import { tellArrivals } from './server-arrivals.ts'

test('servers that are there, come, change what they publish, and go', () => {
  const shared = new SharedDirectory()
  shared.of('b')
  const a = shared.of('a')
  const told: string[] = []
  tellArrivals(a, ({ kind, server }) => told.push(`${kind} ${server}`))
  expect(told.splice(0)).toEqual(['server up b'])
  const c = shared.of('c')
  c.publish(new Uint8Array([1]))
  c.publish(new Uint8Array([2]))
  expect(told.splice(0)).toEqual(['server up c'])
  shared.leave('b')
  expect(told).toEqual(['server gone b'])
})
