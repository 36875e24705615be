/** A hub's members as a file: what is written is read as it was, and a file with anything wrong is not taken. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { newIdentity } from '../link/identity.ts'
import { rawKey } from '../link/keys.ts'
import type { StoredNode } from '../store/nodes.ts'
import { type HubFile, HubFileError, hubFileText, readHubFile } from './hub-file.ts'

const identities = Array.from({ length: 5 }, newIdentity)
const [hub, server] = [newIdentity().nodeId, newIdentity().nodeId]

function member(i: number, more: Partial<StoredNode> = {}): StoredNode {
  const { nodeId: id, publicKey } = identities[i] as (typeof identities)[0]
  return { id, key: rawKey(publicKey), name: `n${i}`, metadata: {}, services: [], joinedAt: 1, lastSeen: 2, ...more }
}
const byId = (members: readonly StoredNode[]) => [...members].sort((a, b) => (a.id < b.id ? -1 : 1))
const file = (members: readonly StoredNode[], more: Partial<HubFile> = {}): HubFile => ({
  hubId: hub,
  server,
  requestIds: 257,
  pipelines: [{ id: 'p', name: 'a\nb' }],
  members: byId(members),
  ...more,
})

const item = fc.oneof(
  fc.string({ unit: 'grapheme' }).map((stringValue) => ({ stringValue })),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map((intValue) => ({ intValue })),
  fc.double().map((doubleValue) => ({ doubleValue })),
  fc.boolean().map((boolValue) => ({ boolValue })),
  fc.uint8Array({ maxLength: 64, size: 'max' }).map((bytesValue) => ({ bytesValue })),
)
const details = fc.record({
  name: fc.string({ unit: 'grapheme', maxLength: 50, size: 'max' }),
  metadata: fc.dictionary(
    fc.string({ maxLength: 20, size: 'max' }).filter((key) => key !== '__proto__'),
    item,
    { maxKeys: 5 },
  ),
  services: fc.subarray(['HUB_SERVER', 'PIPELINES'] as const).map((services) => [...services]),
  joinedAt: fc.nat(4e12 as never),
  lastSeen: fc.nat(4e12 as never),
})

test('what is written is read as it was', () => {
  fc.assert(
    fc.property(fc.array(details, { maxLength: 5 }), fc.nat(), (all, requestIds) => {
      const given = file(
        all.map((more, i) => member(i, more as Partial<StoredNode>)),
        { requestIds },
      )
      const read = readHubFile(hubFileText(given))
      const plain = ({ members, ...rest }: HubFile) => ({
        ...rest,
        members: members.map((each) => ({ ...each, key: [...each.key], metadata: plainItems(each.metadata) })),
      })
      expect(plain(read)).toEqual(plain(given))
    }),
  )
})

test('minus zero stays minus zero', () => {
  const given = file([member(0, { metadata: { a: { doubleValue: -0 } } })])
  expect(readHubFile(hubFileText(given)).members[0]?.metadata).toEqual({ a: { doubleValue: -0 } })
})

/** Bytes are bytes, whichever class holds them. */
function plainItems(items: StoredNode['metadata']) {
  return Object.fromEntries(
    Object.entries(items).map(([key, { bytesValue, ...rest }]) => [
      key,
      bytesValue === undefined ? rest : { bytes: [...bytesValue] },
    ]),
  )
}

describe('a file is not taken', () => {
  const whole = hubFileText(file([member(0), member(1)]))
  const [head, first, second] = whole.split('\n') as [string, string, string]
  const edited = (line: string, change: Record<string, unknown>) => JSON.stringify({ ...JSON.parse(line), ...change })
  const text = (...lines: string[]) => `${lines.join('\n')}\n`

  test.each<[string, string, string]>([
    ['that is empty', '', 'line 1: it must say that this is a hub'],
    ['of something else', '{"a":1}\n', 'line 1: format must be "penstock-hub"'],
    ['of a later version', text(edited(head, { version: 2 }), first, second), 'version 2 is not read here, only 1'],
    ['without the id of the hub', text(edited(head, { hubId: 'x' }), first, second), 'line 1: hubId'],
    ['with a count that is none', text(edited(head, { requestIds: -1 }), first, second), 'line 1: requestIds'],
    ['with pipelines that are none', text(edited(head, { pipelines: [1] }), first, second), 'line 1: pipelines'],
    ['cut off between lines', text(head, first), '1 members, where the first line says 2: the file is not whole'],
    ['cut off within a line', whole.slice(0, -20), 'the file is not whole'],
    ['with a line that is no JSON', text(head, first, '{'), 'line 3: it is no JSON'],
    ['with a line that is no object', text(head, first, '7'), 'line 3: it is no JSON object'],
    ['with a member twice', text(head, first, first), 'line 3: node'],
    [
      'with a key of another length',
      text(head, first, edited(second, { key: 'AAAA' })),
      'line 3: key must be 32 bytes',
    ],
    ['with an id of another key', text(head, first, edited(second, { id: JSON.parse(first).id })), 'line 3: id is not'],
    ['with a record that is none', text(head, first, edited(second, { record: { name: 1 } })), 'line 3: record: '],
    [
      'with a service that is none',
      text(head, first, edited(second, { record: { services: ['X'] } })),
      'line 3: record: ',
    ],
    [
      'with a record that is too long',
      text(head, first, edited(second, { record: { name: 'x'.repeat(9000) } })),
      'line 3: record: ',
    ],
    ['with a time that is none', text(head, edited(first, { joinedAt: 'then' }), second), 'line 2: joinedAt must be'],
    [
      'whose member has the key of the hub',
      text(edited(head, { hubId: JSON.parse(first).id }), first, second),
      'line 2: a member has the key of the hub',
    ],
  ])('%s', (_what, given, message) => {
    const read = () => readHubFile(given)
    expect(read).toThrow(HubFileError)
    expect(read).toThrow(message)
  })

  test('and everything that is wrong is told, up to twenty faults', () => {
    const lines = Array.from({ length: 30 }, () => '7')
    const read = () => readHubFile(text(edited(head, { members: 30 }), ...lines))
    expect(read).toThrow(/line 2: [\s\S]*line 21: [\s\S]*and 10 more/)
  })

  test('whatever the bytes', () => {
    fc.assert(
      fc.property(fc.string(), fc.nat(whole.length), (junk, at) => {
        const damaged = whole.slice(0, at) + junk + whole.slice(at + junk.length + 1)
        try {
          readHubFile(damaged)
        } catch (error) {
          expect(error).toBeInstanceOf(HubFileError)
        }
      }),
    )
  })
})
