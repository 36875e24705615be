/** The values of the buckets survive their encoding; a revision that is 0 is read as that of the value. */
import { expect, test } from 'vitest'
import {
  decodeHub,
  decodeLease,
  decodeNodeEntry,
  decodePresence,
  encodeHub,
  encodeLease,
  encodeNodeEntry,
  encodePresence,
} from './entries.ts'

const record = {
  name: 'north',
  metadata: { items: { region: { stringValue: 'eu' }, rack: { intValue: 4n } } },
  services: ['PIPELINES' as const],
}
const member = {
  key: new Uint8Array(32).fill(7),
  record,
  joined: 3,
  admission: 0,
  lastSeen: new Date(1_700_000_000_123),
}
const id = new Uint8Array(16).fill(9)

test('a member: what its writer could not know is the revision of the value', () => {
  const bytes = encodeNodeEntry({
    member,
    operations: [
      { id, revision: 3 },
      { id, revision: 0 },
    ],
  })
  expect(decodeNodeEntry(bytes, 12)).toEqual({
    member: { ...member, admission: 12 },
    operations: [
      { id, revision: 3 },
      { id, revision: 12 },
    ],
  })
})

test('a node that is not on the hub', () => {
  const entry = { member: undefined, operations: [{ id, revision: 5 }] }
  expect(decodeNodeEntry(encodeNodeEntry(entry), 9)).toEqual(entry)
})

test('hub, lease and presence', () => {
  const hub = { layout: 1, hubId: new Uint8Array(32).fill(1), requestBase: 77n }
  expect(decodeHub(encodeHub(hub))).toMatchObject({ layout: 1, requestBase: 77n })
  expect(Buffer.from(decodeHub(encodeHub(hub)).hubId)).toEqual(Buffer.from(hub.hubId))
  const lease = { server: 'a', renewal: 5n, details: new Uint8Array([1, 2]) }
  expect(decodeLease(encodeLease(lease))).toEqual(lease)
  const presence = { life: '00ff', session: 'aa', joined: 4 }
  expect(decodePresence(encodePresence(presence))).toEqual(presence)
})

test('bytes that are no entry are refused', () => {
  expect(() => decodeNodeEntry(new Uint8Array([0xff, 0xff]), 1)).toThrow()
})
