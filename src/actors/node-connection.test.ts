/** The hub's view of one node: every transition, and what the list's subscribers are told of it. */
import { expect, test } from 'vitest'
import { createActor } from 'xstate'
import { settle } from '../../test/harness/waiting.ts'
import { type NodeConnectionEvent, type NodeLink, nodeConnection, seenAt } from './node-connection.ts'

/** Since each link was heard on. */
const SILENCE_MS = 300

function rig() {
  let time = 1_000
  const closed: string[] = []
  const link = (name: string): NodeLink => ({
    silence: SILENCE_MS,
    close: (reason) => void closed.push(`${name} ${reason}`),
  })
  const actor = createActor(nodeConnection, { input: { details: 'given', lastSeen: 7, now: () => time } })
  const told: string[] = []
  for (const type of ['authenticated', 'deauthenticated', 'connected', 'disconnected', 'updated'] as const) {
    actor.on(type, () => told.push(type))
  }
  actor.start()
  const take = (event: NodeConnectionEvent) => {
    time += 1_000
    actor.send(event)
  }
  return { actor, take, told, closed, now: () => time, first: link('first'), second: link('second') }
}

type Rig = ReturnType<typeof rig>
type Step = (links: Rig) => NodeConnectionEvent
const connected: Step = ({ first }) => ({ type: 'CONNECTED', link: first, details: 'told' })
const reconnected: Step = ({ second }) => ({ type: 'CONNECTED', link: second, details: 'again' })
const closed: Step = ({ first }) => ({ type: 'CLOSED', link: first })
const details: Step = ({ first }) => ({ type: 'DETAILS', link: first, details: 'changed' })
const staleDetails: Step = ({ second }) => ({ type: 'DETAILS', link: second, details: 'stale' })
const staleClosed: Step = ({ second }) => ({ type: 'CLOSED', link: second })
const remove: Step = () => ({ type: 'REMOVE', answerFirst: false })
const leave: Step = () => ({ type: 'LEAVE' })
const admitted: Step = () => ({ type: 'ADMITTED', details: 'joined' })

const steps = {
  'its link comes up': connected,
  'another link comes up': reconnected,
  'the first link closes': closed,
  'the second link closes': staleClosed,
  'details over the first link': details,
  'details over the second link': staleDetails,
  removeNode: remove,
  'the node leaves': leave,
  'accepted by a new request': admitted,
} as const
type Name = keyof typeof steps
interface Lead {
  to: string
  told: string[]
  cut?: string[]
  details: string
}

const gone = (details: string, cut: string[] = []): Lead => ({ to: 'removed', told: ['deauthenticated'], cut, details })
const back = (details: string): Lead => ({ to: 'online', told: ['connected'], details })
// A state, the events that lead to it, and what is not ignored there: the state after it, what is told, which links are cut, the details then.
const table: [string, string, Step[], Partial<Record<Name, Lead>>][] = [
  [
    'listed, offline',
    'offline',
    [],
    {
      'its link comes up': back('told'),
      'another link comes up': back('again'),
      removeNode: gone('given'),
      'the node leaves': gone('given'),
      'accepted by a new request': { to: 'offline', told: ['authenticated'], details: 'joined' },
    },
  ],
  [
    'listed, online',
    'online',
    [connected],
    {
      'its link comes up': {
        to: 'online',
        told: ['disconnected', 'connected'],
        cut: ['first REPLACED'],
        details: 'told',
      },
      'another link comes up': {
        to: 'online',
        told: ['disconnected', 'connected'],
        cut: ['first REPLACED'],
        details: 'again',
      },
      'the first link closes': { to: 'offline', told: ['disconnected'], details: 'told' },
      'details over the first link': { to: 'online', told: ['updated'], details: 'changed' },
      removeNode: gone('told', ['first REMOVED']),
      'the node leaves': gone('told'),
      'accepted by a new request': { to: 'online', told: ['authenticated'], details: 'joined' },
    },
  ],
  [
    'listed, online by its second link',
    'online',
    [connected, reconnected],
    {
      'its link comes up': {
        to: 'online',
        told: ['disconnected', 'connected'],
        cut: ['second REPLACED'],
        details: 'told',
      },
      'another link comes up': {
        to: 'online',
        told: ['disconnected', 'connected'],
        cut: ['second REPLACED'],
        details: 'again',
      },
      'the second link closes': { to: 'offline', told: ['disconnected'], details: 'again' },
      'details over the second link': { to: 'online', told: ['updated'], details: 'stale' },
      removeNode: gone('again', ['second REMOVED']),
      'the node leaves': gone('again'),
      'accepted by a new request': { to: 'online', told: ['authenticated'], details: 'joined' },
    },
  ],
  ['removed', 'removed', [remove], {}],
]
const rows = table.flatMap(([row, from, before, leads]) =>
  (Object.keys(steps) as Name[]).map((name) => [row, name, from, before, leads[name]] as const),
)

test.each(rows)('%s: %s', (_row, name, from, before, lead) => {
  const machine = rig()
  for (const earlier of before) machine.take(earlier(machine))
  expect(machine.actor.getSnapshot().value).toBe(from)
  machine.told.length = 0
  machine.closed.length = 0
  const earlier = machine.actor.getSnapshot().context
  if (machine.actor.getSnapshot().status === 'active') machine.take(steps[name](machine))
  const { value, context } = machine.actor.getSnapshot()
  const { to, told, cut = [], details } = lead ?? { to: from, told: [], details: earlier.details }
  expect(value).toBe(to)
  expect(machine.told).toEqual(told)
  expect(machine.closed).toEqual(cut)
  expect(context.details).toBe(details)
  expect(context.link === null).toBe(to !== 'online')
  // What ends a link, and what is done without the node, is no word of it.
  const heard = told.some((kind) => ['authenticated', 'connected', 'updated'].includes(kind))
  const hasLost = earlier.link !== null && context.link === null
  const otherwise = hasLost ? machine.now() - SILENCE_MS : earlier.lastSeen
  expect(context.lastSeen).toBe(heard ? machine.now() : otherwise)
  expect(seenAt(context)).toBe(context.link === null ? context.lastSeen : machine.now() - SILENCE_MS)
})

test('what is told is already true', () => {
  const machine = rig()
  const seen: unknown[] = []
  machine.actor.on('connected', () => seen.push(machine.actor.getSnapshot().value))
  machine.actor.on('deauthenticated', () => seen.push(machine.actor.getSnapshot().value))
  machine.take(connected(machine))
  machine.take(remove(machine))
  expect(seen).toEqual(['online', 'removed'])
})

test('a node that removes itself is answered before its link is cut', async () => {
  const machine = rig()
  machine.take(connected(machine))
  machine.take({ type: 'REMOVE', answerFirst: true })
  expect(machine.closed).toEqual([])
  await settle(1)
  expect(machine.closed).toEqual(['first REMOVED'])
})
