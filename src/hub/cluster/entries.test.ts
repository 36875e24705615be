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
  joinedAt: 1_700_000_000_003,
  lastSeen: new Date(1_700_000_000_123),
}
const id = new Uint8Array(16).fill(9)

test('a member: what its writer could not know is the revision of the value', () => {
  const bytes = encodeNodeEntry({
    member,
    requests: [],
    operations: [
      { id, revision: 3 },
      { id, revision: 0 },
    ],
  })
  expect(decodeNodeEntry(bytes, 12, 0)).toEqual({
    member: { ...member, admission: 12 },
    requests: [],
    operations: [
      { id, revision: 3 },
      { id, revision: 12 },
    ],
  })
})

test('a member since when: what its writer could not know, or a server of an earlier version did not, is the time stamp of the value', () => {
  const bytes = encodeNodeEntry({ member: { ...member, joinedAt: 0 }, requests: [], operations: [] })
  const read = decodeNodeEntry(bytes, 12, 1_700_000_000_012)
  expect(read.member?.joinedAt).toBe(1_700_000_000_012)
  expect(decodeNodeEntry(encodeNodeEntry(read), 13, 1_700_000_000_013)).toEqual(read)
})

test('requests: what their writer could not know is the revision and the time stamp of the value', () => {
  const open = {
    revision: 0,
    key: member.key,
    record,
    network: '10.0.0.1',
    life: '00ff',
    waiter: 'aa',
    timeout: 300_000,
    raised: 0,
    decision: undefined,
  }
  const accepted = { verdict: 'accepted', revision: 0, at: 0, isNew: true } as const
  const rejected = { verdict: 'rejected', revision: 8, at: 1_700_000_000_008, isNew: false } as const
  const timedOut = { verdict: 'timedOut', revision: 9, at: 1_700_000_000_009, isNew: false } as const
  const known = { revision: 7, raised: 1_700_000_000_007 }
  const requests = [
    open,
    { ...open, ...known, decision: accepted },
    { ...open, ...known, decision: rejected },
    { ...open, ...known, decision: timedOut },
  ]
  const at = 1_700_000_000_012
  const read = decodeNodeEntry(encodeNodeEntry({ member: undefined, requests, operations: [] }), 12, at)
  expect(read.requests).toEqual([
    { ...open, revision: 12, raised: at },
    { ...open, ...known, decision: { ...accepted, revision: 12, at } },
    { ...open, ...known, decision: rejected },
    { ...open, ...known, decision: timedOut },
  ])
})

test('a node that is not on the hub', () => {
  const entry = { member: undefined, requests: [], operations: [{ id, revision: 5 }] }
  expect(decodeNodeEntry(encodeNodeEntry(entry), 9, 0)).toEqual(entry)
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
  expect(() => decodeNodeEntry(new Uint8Array([0xff, 0xff]), 1, 0)).toThrow()
})
