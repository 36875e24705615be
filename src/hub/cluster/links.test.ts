/** Links of this server, told by hand what is seen of the hub: what a node said of itself is written for as long as it is here. */
import { expect, test } from 'vitest'
import { recordOf } from '../../../test/harness/registries.ts'
import type { LinkSession, NodeRecord } from '../../link/link.ts'
import { sameFacts } from '../node-records.ts'
import type { PresenceEntry } from './entries.ts'
import { ClaimOvertaken, Links } from './links.ts'
import type { PresenceWriter } from './presence-writer.ts'

const awaited = new AbortController().signal

/** A node that is here and has said something new of itself, which has yet to be written: `attempt` is what an attempt at it writes. */
async function saying(name: string) {
  const joined = 1
  const seen: { entry: PresenceEntry | undefined; revision: number } = { entry: undefined, revision: 2 }
  const stored = {
    key: new Uint8Array(32),
    record: recordOf('before'),
    joined,
    admission: 1,
    joinedAt: 1,
    lastSeen: new Date(),
  }
  const attempts: { record: () => NodeRecord; holds: () => Promise<boolean> }[] = []
  const writer = {
    put: async (_nodeId: string, entry: PresenceEntry) => {
      seen.entry = entry
      return 2
    },
    delete: async () => {},
    holds: async (_nodeId: string, session: string) => seen.entry?.session === session,
  } as unknown as PresenceWriter
  const links = new Links({
    picture: {
      presentIn: () => [],
      presence: () => ({ entry: seen.entry, revision: seen.revision, at: 0 }),
      versioned: () => ({ entry: { member: stored, requests: [], operations: [] }, revision: 1, at: 0 }),
    },
    writer,
    life: () => 'own',
    isOwn: (life) => life === 'own',
    stands: () => true,
    leave: async () => {},
    noteRecord: async (_nodeId, record, holds) => {
      if (!sameFacts(stored.record, record())) attempts.push({ record, holds })
      return await holds()
    },
    onError: (message, error) => {
      throw new Error(message, { cause: error })
    },
  })
  const connect = async (record: NodeRecord) => {
    let close = () => {}
    const closed = new Promise<void>((resolve) => {
      close = resolve
    })
    const session = { peerId: 'n', closed, close, onLeave: () => {} } as unknown as LinkSession
    links.add(session, record, (await links.claim('n', stored, record, awaited)).claim)
    return session
  }
  const session = await connect(stored.record)
  links.change(session, recordOf(name))
  const attempt = async () => {
    const [first] = attempts
    return (await first?.holds()) === true ? first?.record() : undefined
  }
  return { links, writer, stored, seen, connect, session, attempts, attempt }
}

test('until its link closes', async () => {
  const { session, attempt } = await saying('now')
  expect(await attempt()).toEqual(recordOf('now'))
  session.close('SHUTDOWN', '')
  await session.closed
  expect(await attempt()).toBeUndefined()
})

test('until it has a newer link here', async () => {
  const { connect, attempt } = await saying('now')
  await connect(recordOf('newer'))
  expect(await attempt()).toBeUndefined()
})

test('until it is at another server', async () => {
  const { seen, attempt } = await saying('now')
  seen.entry = { life: 'other', session: 'other', joined: 1 }
  expect(await attempt()).toBeUndefined()
})

test('as long as what is seen is older than its link: the server that it came from has yet to be seen to have lost it', async () => {
  const { links, seen, session } = await saying('now')
  const own = seen.entry
  let isOver = false
  void session.closed.then(() => {
    isOver = true
  })
  seen.entry = { life: 'other', session: 'before', joined: 1 }
  seen.revision = 1
  links.settle('n')
  await Promise.resolve()
  expect(isOver).toBe(false)
  seen.entry = own
  seen.revision = 2
  links.settle('n')
  // Revisions of presence that was lost begin anew.
  links.presenceLost()
  seen.entry = { life: 'other', session: 'newer', joined: 1 }
  seen.revision = 1
  links.settle('n')
  await session.closed
})

test('not at all where it is at another server before it is written', async () => {
  const { writer, connect } = await saying('now')
  writer.holds = async () => false
  await expect(connect(recordOf('newer'))).rejects.toBeInstanceOf(ClaimOvertaken)
})

test('again where something else stands that it said before, but not over what a later admission brought', async () => {
  const { links, stored, attempts } = await saying('now')
  stored.record = recordOf('now')
  links.settle('n')
  await links.catchUp()
  expect(attempts).toHaveLength(1)
  stored.record = recordOf('before')
  links.settle('n')
  await links.catchUp()
  expect(attempts).toHaveLength(2)
  stored.admission = 2
  links.settle('n')
  await links.catchUp()
  expect(attempts).toHaveLength(2)
})

test('where its node is, is written again once NATS has lost that, over what is left of before', async () => {
  const { links, seen } = await saying('after')
  const own = seen.entry?.session
  seen.entry = { life: 'own', session: 'before', joined: 1 }
  seen.revision = 1
  links.settle('n')
  await links.catchUp()
  expect(seen.entry.session).toBe(own)
})

test('where its node is, is not written over what a newer link of it here has written', async () => {
  const { links, writer, seen, connect } = await saying('now')
  seen.entry = undefined
  links.settle('n')
  const { put } = writer
  let tryAgain = () => {}
  writer.put = (nodeId, entry, before, isWanted) =>
    new Promise((resolve) => {
      tryAgain = () => resolve(isWanted?.(seen.entry) === true ? put(nodeId, entry, before) : undefined)
    })
  const caughtUp = links.catchUp()
  writer.put = put
  await connect(recordOf('newer'))
  const newer = seen.entry
  tryAgain()
  await caughtUp
  expect(seen.entry).toBe(newer)
})
