/** What a storm checks with, on what is right and on what is wrong. */
import { describe, expect, test } from 'vitest'
import type { Node } from '../../src/contract/types.ts'
import { Random } from '../../src/dataplane/engine/random.ts'
import { checkLinearizable } from '../harness/linearizable.ts'
import { Following } from './following.ts'
import { type Answer, type Input, linkedNode, type NodeOperation, type Place, unlinkedNode } from './history.ts'
import { isWhole, metadataOf } from './hub-client.ts'
import { type MembershipInput, membership, type NameInput, naming } from './hub-history.ts'
import { contradiction, ServerCopy, type ToldEvent, textOf } from './server-copy.ts'
import { weatherOf, weatherText } from './weather.ts'

/** Operations that follow one another. */
function inTurn(...operations: [Input, Answer | undefined][]): NodeOperation[] {
  return operations.map(([input, answer], i) => ({
    input,
    called: 2 * i,
    answered: answer === undefined ? undefined : { at: 2 * i + 1, answer },
    server: 'h1',
  }))
}

const admit = (name: string): Input => ({ kind: 'admit', name })
const update = (name: string): Input => ({ kind: 'update', name })
const place = (admission: number, isNew: boolean): Place => ({ nodeId: 'n', isNew, admission })
const expel = (admission: number): Input => ({ kind: 'expel', place: place(admission, true) })
const connect: Input = { kind: 'connect', name: 'link' }
const remove: Input = { kind: 'remove' }
const read: Input = { kind: 'read' }
const done = { done: true }
const not = { done: false }
const named = (name?: string): Answer => ({ name })

test.each<[string, [Input, Answer | undefined][]]>([
  [
    'admitted, changed, read, removed',
    [
      [admit('a'), place(3, true)],
      [update('b'), done],
      [read, named('b')],
      [remove, done],
    ],
  ],
  [
    'admitted again: no new place, the older one is not given back',
    [
      [admit('a'), place(3, true)],
      [admit('b'), place(5, false)],
      [expel(3), not],
      [expel(5), done],
      [read, named()],
    ],
  ],
  [
    'nobody there',
    [
      [read, named()],
      [remove, not],
      [update('a'), not],
      [connect, not],
      [expel(3), not],
    ],
  ],
  [
    'removed after the server has seen it',
    [
      [admit('a'), place(3, true)],
      [remove, done],
      [update('b'), done],
      [read, named()],
    ],
  ],
  [
    'an admission whose answer never came',
    [
      [admit('a'), undefined],
      [read, named('a')],
      [admit('b'), place(9, false)],
    ],
  ],
])('a registry may answer so: %s', (_, operations) => {
  expect(checkLinearizable(unlinkedNode, inTurn(...operations)).kind).toBe('linearizable')
})

test.each<[string, [Input, Answer | undefined][]]>([
  [
    'an admission lost',
    [
      [admit('a'), place(3, true)],
      [read, named()],
    ],
  ],
  [
    'a change lost',
    [
      [admit('a'), place(3, true)],
      [update('b'), done],
      [read, named('a')],
    ],
  ],
  [
    'a removal lost',
    [
      [admit('a'), place(3, true)],
      [remove, done],
      [read, named('a')],
    ],
  ],
  [
    'two new places',
    [
      [admit('a'), place(3, true)],
      [admit('b'), place(5, true)],
    ],
  ],
  [
    'revisions that fall',
    [
      [admit('a'), place(5, true)],
      [admit('b'), place(3, false)],
    ],
  ],
  [
    'a member that is refused',
    [
      [admit('a'), place(3, true)],
      [connect, not],
    ],
  ],
  [
    'a place that is not given back',
    [
      [admit('a'), place(3, true)],
      [expel(3), not],
    ],
  ],
  [
    'the place of another given back',
    [
      [admit('a'), place(3, true)],
      [admit('b'), place(5, false)],
      [expel(3), done],
    ],
  ],
])('it may not: %s', (_, operations) => {
  expect(checkLinearizable(unlinkedNode, inTurn(...operations)).kind).toBe('not linearizable')
})

test('of a node with links only who is a member counts', () => {
  const kindOf = (...operations: [Input, Answer][]) => checkLinearizable(linkedNode, inTurn(...operations)).kind
  expect(kindOf([admit('a'), place(3, true)], [read, named('other')])).toBe('linearizable')
  expect(kindOf([admit('a'), place(3, true)], [read, named()])).toBe('not linearizable')
})

describe('of a node that is asked through the API', () => {
  const joined = [{ kind: 'join' }, true] as const
  const joining = [{ kind: 'join' }, undefined] as const
  const removed = [{ kind: 'remove' }, true] as const
  const noMember = [{ kind: 'remove' }, false] as const
  const left = [{ kind: 'leave' }, undefined] as const
  const shown = (isMember: boolean) => [{ kind: 'look' }, isMember] as const
  type Step = readonly [MembershipInput, boolean | undefined]
  const kindOf = (...steps: Step[]) => checkLinearizable(membership, inOrder(steps)).kind

  test.each<[string, Step[]]>([
    ['let in, removed, let in again', [joined, shown(true), removed, noMember, joined, shown(true)]],
    ['left, and removed by somebody', [joined, left, removed, shown(false)]],
    ['left, of which nobody heard', [joined, left, shown(true)]],
    ['let in without hearing of it, and taken back', [joining, removed, shown(false)]],
    ['never let in', [joining, noMember, shown(false)]],
    ['let in twice, the first time unheard', [[{ kind: 'accepted unheard' }, false], removed, joined, shown(true)]],
  ])('its membership may be so: %s', (_, steps) => {
    expect(kindOf(...steps)).toBe('linearizable')
  })

  test.each<[string, Step[]]>([
    ['a removal lost', [joined, removed, shown(true)]],
    ['a member lost', [joined, shown(false)]],
    ['a member lost that had been let in unheard before', [joining, joined, shown(false)]],
    ['removed twice', [joined, removed, removed]],
    ['a member that is none', [joined, noMember]],
    ['nobody, who is a member', [shown(true)]],
  ])('it may not: %s', (_, steps) => {
    expect(kindOf(...steps)).toBe('not linearizable')
  })

  test('its name is the one that was set last', () => {
    const set = (name: string, answer: string | undefined = name) => [{ kind: 'set', name }, answer] as const
    const get = (name: string) => [{ kind: 'get' }, name] as const
    const kindOf = (...steps: (readonly [NameInput, string | undefined])[]) =>
      checkLinearizable(naming('a'), inOrder(steps)).kind
    expect(kindOf(get('a'), set('b'), get('b'), [{ kind: 'set', name: 'c' }, undefined], get('b'), get('c'))).toBe(
      'linearizable',
    )
    expect(kindOf(set('b'), get('a'))).toBe('not linearizable')
    expect(kindOf(set('b', 'a'))).toBe('not linearizable')
    expect(kindOf(set('b'), set('c'), get('b'))).toBe('not linearizable')
  })

  test('its metadata are those of its name', () => {
    const shownAs = (name: string, metadata = metadataOf(name)) => ({ id: 'n', name, metadata }) as Node
    expect(isWhole(shownAs('b'), 'a')).toBe(true)
    expect(isWhole(shownAs('a', { items: {} }), 'a')).toBe(true)
    expect(isWhole(shownAs('b', metadataOf('c')), 'a')).toBe(false)
    expect(isWhole(shownAs('b', { items: {} }), 'a')).toBe(false)
  })

  function inOrder<I, A>(steps: readonly (readonly [I, A | undefined])[]) {
    return steps.map(([input, answer], i) => ({
      input,
      called: 2 * i,
      answered: answer === undefined ? undefined : { at: 2 * i + 1, answer },
    }))
  }
})

describe('lists beside a stream', () => {
  const node = (name: string) => ({ id: 'n', name, online: true })
  const following = (...lists: string[]) => {
    const all = new Following([node('a')])
    for (const name of ['b', 'c', 'd']) all.take({ type: 'updated', node: node(name) })
    all.lists.push(...lists.map((name) => textOf([node(name)])))
    return all
  }

  test('are its states, in its order', () => {
    expect(following('a', 'c', 'd').misfits(false)).toEqual([])
    expect(following('a', 'c', 'b', 'd').misfits(false)).toEqual([textOf([node('b')])])
    expect(following('x', 'd').misfits(false)).toHaveLength(1)
  })

  test('may be ahead of one that was cut, at its end', () => {
    expect(following('c', 'e', 'f').misfits(true)).toEqual([])
    expect(following('c', 'e', 'f').misfits(false)).toHaveLength(1)
    expect(following('e', 'd').misfits(true)).toHaveLength(1)
  })
})

describe('what a server tells', () => {
  const node = (name: string, online: boolean) => ({ id: 'n', name, online })
  const faultsOf = (...events: ToldEvent[]) => {
    const copy = new ServerCopy([node('a', true)])
    for (const event of events) copy.take(event)
    return copy.faults
  }

  test('in order', () => {
    const copy = new ServerCopy([node('a', true)])
    copy.take({ type: 'disconnected', node: node('a', false) })
    copy.take({ type: 'updated', node: node('b', false) })
    copy.take({ type: 'deauthenticated', node: node('b', false) })
    copy.take({ type: 'authenticated', node: node('c', true) })
    copy.take({ type: 'connected', node: node('c', true) })
    copy.compare([node('c', true)])
    expect(copy.faults).toEqual([])
    expect(copy.names.get('n')).toEqual(['a', 'b', undefined, 'c'])
    copy.compare([node('c', false)])
    expect(copy.faults).toHaveLength(1)
  })

  test.each<[string, ToldEvent[]]>([
    ['connected twice', [{ type: 'connected', node: node('a', true) }]],
    ['updated without a change', [{ type: 'updated', node: node('a', true) }]],
    ['authenticated twice', [{ type: 'authenticated', node: node('a', true) }]],
    ['a change with another', [{ type: 'disconnected', node: node('b', false) }]],
    ['disconnected, and online', [{ type: 'disconnected', node: node('a', true) }]],
    [
      'of no member',
      [
        { type: 'deauthenticated', node: node('a', false) },
        { type: 'updated', node: node('b', false) },
      ],
    ],
  ])('%s', (_, events) => {
    expect(faultsOf(...events)).toHaveLength(1)
  })
})

test('names in the orders of several servers', () => {
  expect(contradiction([['a', 'b', undefined, 'c'], ['a', 'c'], ['b', undefined], []])).toBeUndefined()
  expect(contradiction([['a', 'b', 'a']])).toBe('a came back')
  expect(
    contradiction([
      ['a', 'b'],
      ['c', 'b', 'a'],
    ]),
  ).toBe('b before a, and after it')
})

test('the same seed, the same weather, which is over in time', () => {
  const drawn = (seed: number) => {
    const milliseconds = 10_000
    const parties = { hubs: ['h1', 'h2'], nats: ['n1', 'n2', 'n3'], nodes: seed % 2 === 0 ? [] : ['m1', 'm2'] }
    return weatherOf({ random: new Random(seed), milliseconds, ...parties })
  }
  expect(weatherText(drawn(1))).toBe(weatherText(drawn(1)))
  expect(weatherText(drawn(1))).not.toBe(weatherText(drawn(2)))
  for (let seed = 0; seed < 50; seed++)
    for (const { from, to } of drawn(seed)) expect(from <= to && to <= 10_000).toBe(true)
})
