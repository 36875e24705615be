/** The hub's view of one node: every transition, and what the list's subscribers are told of it. */
import { expect, test } from 'vitest'
import { createActor } from 'xstate'
import { settle } from '../../test/harness/waiting.ts'
import { type NodeConnectionEvent, type NodeLink, nodeConnection } from './node-connection.ts'

function rig() {
  let time = 1_000
  const closed: string[] = []
  const link = (name: string): NodeLink => ({ close: (reason) => void closed.push(`${name} ${reason}`) })
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

// In a state, reached by these events, an event leads to a state, these changes told, these links closed, these details.
const table: [string, string, Step[], Step, string, string[], string[], string][] = [
  ['listed, offline: its link comes up', 'offline', [], connected, 'online', ['connected'], [], 'told'],
  ['listed, offline: removeNode', 'offline', [], remove, 'removed', ['deauthenticated'], [], 'given'],
  ['listed, offline: accepted by a new request', 'offline', [], admitted, 'offline', ['authenticated'], [], 'joined'],
  ['listed, offline: an old link closes', 'offline', [], closed, 'offline', [], [], 'given'],
  ['listed, offline: details over an old link', 'offline', [], details, 'offline', [], [], 'given'],
  ['listed, online: its link goes down', 'online', [connected], closed, 'offline', ['disconnected'], [], 'told'],
  ['listed, online: details change', 'online', [connected], details, 'online', ['updated'], [], 'changed'],
  ['listed, online: details over another link', 'online', [connected], staleDetails, 'online', [], [], 'told'],
  ['listed, online: another link closes', 'online', [connected], staleClosed, 'online', [], [], 'told'],
  [
    'listed, online: a newer link',
    'online',
    [connected],
    reconnected,
    'online',
    ['disconnected', 'connected'],
    ['first REPLACED'],
    'again',
  ],
  ['listed, online: the replaced link closes', 'online', [connected, reconnected], closed, 'online', [], [], 'again'],
  [
    'listed, online: removeNode',
    'online',
    [connected],
    remove,
    'removed',
    ['deauthenticated'],
    ['first REMOVED'],
    'told',
  ],
  ['listed, online: the node leaves', 'online', [connected], leave, 'removed', ['deauthenticated'], [], 'told'],
  [
    'listed, online: accepted by a new request',
    'online',
    [connected],
    admitted,
    'online',
    ['authenticated'],
    [],
    'joined',
  ],
]

test.each(table)('%s', (_row, from, before, step, to, told, cut, told_details) => {
  const machine = rig()
  for (const earlier of before) machine.take(earlier(machine))
  expect(machine.actor.getSnapshot().value).toBe(from)
  machine.told.length = 0
  machine.closed.length = 0
  const seen = machine.actor.getSnapshot().context.lastSeen
  machine.take(step(machine))
  const { value, context } = machine.actor.getSnapshot()
  expect(value).toBe(to)
  expect(machine.told).toEqual(told)
  expect(machine.closed).toEqual(cut)
  expect(context.details).toBe(told_details)
  expect(context.link === null).toBe(to !== 'online')
  expect(context.lastSeen).toBe(told.length > 0 ? machine.now() : seen)
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
