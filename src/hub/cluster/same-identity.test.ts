/** Who comes up of processes with one identity, by what each sees of the leases: on a clock that is moved by hand. */
import { expect, test } from 'vitest'
import { SimulatedClock } from 'xstate'
import { SameIdentity } from './same-identity.ts'

const SELF = 'me'
/** What the engine's clock says when the process starts. */
const START = 1_700_000_000_000

/** A process with a life of that name; `begin` has it look, and `outcome` says what came of it. */
function starting(own = 'm', clock = new SimulatedClock()) {
  const told: string[] = []
  const seen = { outcome: 'waits', told }
  const engineTime = () => START + clock.now()
  const options = { selfId: SELF, clock, isOwn: (life: string) => life === own, ownLife: () => own, engineTime }
  const same = new SameIdentity({ ...options, onOther: (life) => told.push(life) })
  const settle = async () => {
    for (let turn = 0; turn < 10; turn++) await Promise.resolve()
    return seen.outcome
  }
  return {
    told,
    ended: (life: string) => same.ended(life),
    /** The lease of a life was renewed so long before the start; after it as of now. */
    lease: (life: string, ago = -clock.now(), server = SELF) => same.take(life, server, START - ago),
    begin: async () => {
      void same.requireNone().then(
        () => {
          seen.outcome = 'is up'
        },
        (error: Error) => {
          seen.outcome = error.message.includes(`the identity of this node, ${SELF}`) ? 'is refused' : error.message
        },
      )
      return await settle()
    },
    after: async (milliseconds: number) => {
      clock.increment(milliseconds)
      return await settle()
    },
    outcome: settle,
  }
}

test('no lease of its own, or one that is not renewed any more for long: it does not wait', async () => {
  const alone = starting()
  alone.lease('m', 0)
  alone.lease('other', 0, 'another server')
  expect(await alone.begin()).toBe('is up')
  const late = starting()
  late.lease('killed', 2_500)
  expect(await late.begin()).toBe('is up')
})

test('a lease that was renewed a second ago and is not any more, as of a process that was killed: it waits 1.5 s', async () => {
  const { lease, begin, after, told } = starting()
  lease('killed', 1_000)
  expect(await begin()).toBe('waits')
  expect(await after(1_499)).toBe('waits')
  expect(await after(1)).toBe('is up')
  expect(told).toEqual([])
})

test('a time stamp to come, as after a change of the engine’s clock: it waits 2.5 s at most', async () => {
  const { lease, begin, after } = starting()
  lease('killed', -3_600_000)
  expect(await begin()).toBe('waits')
  expect(await after(2_499)).toBe('waits')
  expect(await after(1)).toBe('is up')
})

test('a lease that ends meanwhile is not waited for', async () => {
  const { lease, begin, ended, outcome } = starting()
  lease('stopped', 0)
  lease('killed', 0)
  expect(await begin()).toBe('waits')
  ended('stopped')
  expect(await outcome()).toBe('waits')
  ended('killed')
  expect(await outcome()).toBe('is up')
})

test('another process renews it: refused at once where that has the lower name, else once it has had the time to give up', async () => {
  const higher = starting()
  higher.lease('a', 500)
  await higher.begin()
  await higher.after(300)
  higher.lease('a')
  expect(await higher.outcome()).toBe('is refused')

  const lower = starting()
  lower.lease('z', 500)
  await lower.begin()
  await lower.after(300)
  lower.lease('z')
  expect(await lower.outcome()).toBe('waits')
  expect(await lower.after(2_499)).toBe('waits')
  expect(await lower.after(1)).toBe('is refused')
})

test('of several that start at the same moment the one with the lowest name comes up', async () => {
  const clock = new SimulatedClock()
  const names = ['b', 'a', 'c'] as const
  const all = names.map((name) => ({ name, process: starting(name, clock) }))
  const renew = (renewed: readonly string[]) => {
    for (const { process } of all) for (const name of renewed) process.lease(name)
  }
  renew(names)
  for (const { process } of all) await process.begin()
  clock.increment(1_000)
  renew(names)
  const outcomes = () => Promise.all(all.map(({ process }) => process.outcome()))
  expect(await outcomes()).toEqual(['is refused', 'waits', 'is refused'])
  // Who is refused gives its lease up.
  for (const { process } of all) process.ended('b')
  expect(await outcomes()).toEqual(['is refused', 'waits', 'is refused'])
  for (const { process } of all) process.ended('c')
  expect(await outcomes()).toEqual(['is refused', 'is up', 'is refused'])
  expect(all.flatMap(({ process }) => process.told)).toEqual([])
})

test('one that runs tells of each other life once', async () => {
  const { lease, begin, after, ended, told } = starting()
  await begin()
  lease('z')
  await after(1_000)
  lease('z')
  expect(told).toEqual(['z'])
  ended('z')
  lease('y')
  expect(told).toEqual(['z', 'y'])
})
