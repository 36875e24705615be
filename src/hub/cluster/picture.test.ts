/** What is told of a hub that has lost the end of what it had: what is left is what there is. */
import { expect, test } from 'vitest'
import { recordOf } from '../../../test/harness/registries.ts'
import type { NodeEvent } from '../registry.ts'
import { encodeNodeEntry, encodePresence } from './entries.ts'
import { nodeKey, Picture } from './picture.ts'

const KEY = nodeKey('n')

test('presence whose end NATS has lost is what is left of it, and what is written over that counts', () => {
  const told: NodeEvent['type'][] = []
  const standing = new Set(['a', 'b'])
  const picture = new Picture({
    stands: (life) => standing.has(life),
    isServer: () => false,
    tell: ({ type }) => told.push(type),
    hubTime: () => 1_000,
  })
  const member = { key: new Uint8Array(32), record: recordOf('n'), joined: 1, admission: 1, joinedAt: 1 }
  const entry = encodeNodeEntry({ member: { ...member, lastSeen: new Date(1) }, requests: [], operations: [] })
  const present = (revision: number, life: string) =>
    picture.takePresence({ key: KEY, revision, value: encodePresence({ life, session: 's', joined: 1 }), at: revision })
  const read = () => {
    picture.takeMember({ key: KEY, revision: 1, value: entry, at: 1 })
    picture.endReading(new Set([KEY]), new Set([KEY]))
    return told.splice(0)
  }
  present(9, 'b')
  picture.refresh('n')
  expect(read()).toEqual(['authenticated', 'connected'])
  standing.delete('a')
  picture.beginReading()
  present(4, 'a')
  expect(picture.presence('n').revision).toBe(9)
  expect(read()).toEqual(['disconnected'])
  expect(picture.presence('n').revision).toBe(4)
  present(7, 'b')
  picture.refresh('n')
  expect(told).toEqual(['connected'])
})

test('a replica that has yet to catch up takes nothing away', () => {
  const picture = new Picture({ stands: () => true, isServer: () => false, tell: () => {}, hubTime: () => 1_000 })
  const present = (revision: number, session: string) =>
    picture.takePresence({ key: KEY, revision, value: encodePresence({ life: 'a', session, joined: 1 }), at: revision })
  present(9, 'newer')
  picture.beginReading()
  present(4, 'older')
  present(9, 'newer')
  picture.endReading(new Set(), new Set([KEY]))
  expect(picture.presence('n')).toMatchObject({ revision: 9, entry: { session: 'newer' } })
})
