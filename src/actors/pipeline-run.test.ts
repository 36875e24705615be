/** The run machine on a simulated clock, its thread replaced. */

import { describe, expect, test } from 'vitest'
import { createActor, fromCallback, SimulatedClock } from 'xstate'
import type { RunHandle } from '../dataplane/engine/run.ts'
import {
  KILL_GRACE_MS,
  pipelineRun,
  type RunEvent,
  type RunPlan,
  START_DEADLINE_MS,
  type ThreadCommand,
  type ThreadEvent,
} from './pipeline-run.ts'

function rig() {
  const clock = new SimulatedClock()
  const commands: ThreadCommand[] = []
  const launched: string[] = []
  let send: (event: ThreadEvent) => void = () => {}
  const machine = pipelineRun.provide({
    actors: {
      thread: fromCallback<ThreadCommand, RunPlan, ThreadEvent>(({ sendBack, receive }) => {
        send = sendBack
        receive((command) => commands.push(command))
      }),
    },
  })
  const plan: RunPlan = {
    pipelineId: 'p',
    options: {
      runId: 'r',
      config: { version: 1, components: {}, logFilters: [], variables: [] },
      cpu: 1,
      performanceMode: false,
      level: 'INFO',
    },
    onLog: () => {},
    onLaunch: ({ id }) => void launched.push(id),
    now: () => 1_000 + clock.now(),
  }
  const actor = createActor(machine, { input: plan, clock }).start()
  return { actor, clock, commands, launched, thread: (event: ThreadEvent) => send(event) }
}

const running: ThreadEvent = { type: 'thread.running' }
const stop: RunEvent = { type: 'STOP', timeout: 5_000 }
const abandon: RunEvent = { type: 'ABANDON', isLate: true, cause: 'its time was up' }
const kill: RunEvent = { type: 'KILL', cause: 'it does not answer' }
const ended = (outcome: 'STOPPED' | 'FAILED' | 'COMPLETED', error?: string): ThreadEvent => ({
  type: 'thread.ended',
  end: error === undefined ? { outcome } : { outcome, error },
})

describe('transitions', () => {
  // From a state, reached by these events, an event leads to a state with these commands to the thread.
  const table: [string, RunEvent[], RunEvent | number, string, ThreadCommand['type'][]][] = [
    ['starting', [], running, 'running', []],
    ['starting', [], stop, 'stopping', ['stop']],
    ['starting', [], ended('FAILED', 'port taken'), 'ended', []],
    ['starting', [], START_DEADLINE_MS - 1, 'starting', []],
    ['starting', [], START_DEADLINE_MS, 'killing', ['kill']],
    ['starting', [], abandon, 'killing', ['kill']],
    ['running', [running], abandon, 'running', []],
    ['stopping', [running, stop], abandon, 'stopping', ['stop']],
    ['running', [running], stop, 'stopping', ['stop']],
    ['running', [running], kill, 'killing', ['kill']],
    ['running', [running], START_DEADLINE_MS * 10, 'running', []],
    ['running', [running], ended('COMPLETED'), 'ended', []],
    ['running', [running], ended('FAILED', 'threw'), 'ended', []],
    ['stopping', [running, stop], ended('STOPPED'), 'ended', ['stop']],
    ['stopping', [running, stop], stop, 'stopping', ['stop']],
    ['stopping', [running, stop], running, 'stopping', ['stop']],
    ['stopping', [running, stop], 4_999, 'stopping', ['stop']],
    ['stopping', [running, stop], 5_000, 'killing', ['stop', 'kill']],
  ]
  test.each(table)('%s after %j, then %j: %s', (from, before, then, to, commands) => {
    const { actor, clock, commands: sent, thread } = rig()
    const apply = (event: RunEvent) =>
      event.type.startsWith('thread.') ? thread(event as ThreadEvent) : actor.send(event)
    before.forEach(apply)
    expect(actor.getSnapshot().value).toBe(from)
    if (typeof then === 'number') clock.increment(then)
    else apply(then)
    expect(actor.getSnapshot().value).toBe(to)
    expect(sent.map(({ type }) => type)).toEqual(commands)
  })
})

describe('every event in every state', () => {
  const launched: ThreadEvent = { type: 'thread.launched', handle: { id: 'r' } as RunHandle }
  const events = {
    STOP: stop,
    ABANDON: abandon,
    KILL: kill,
    'thread.launched': launched,
    'thread.running': running,
    'thread.ended': ended('FAILED', 'threw'),
    'start deadline': START_DEADLINE_MS,
    'stop timeout': 5_000,
    'kill grace': KILL_GRACE_MS,
  } as const satisfies Record<RunEvent['type'], RunEvent> & Record<string, RunEvent | number>
  const reached = {
    starting: [],
    running: [running],
    stopping: [running, stop],
    killing: [abandon],
    ended: [ended('COMPLETED')],
  } as const satisfies Record<string, RunEvent[]>
  /** The state after and what the thread is told; null: ignored. */
  type Cell = [keyof typeof reached, ThreadCommand['type']?] | null
  const table: Record<keyof typeof reached, Record<keyof typeof events, Cell>> = {
    starting: {
      STOP: ['stopping', 'stop'],
      ABANDON: ['killing', 'kill'],
      KILL: null,
      'thread.launched': ['starting'],
      'thread.running': ['running'],
      'thread.ended': ['ended'],
      'start deadline': ['killing', 'kill'],
      'stop timeout': null,
      'kill grace': null,
    },
    running: {
      STOP: ['stopping', 'stop'],
      ABANDON: null,
      KILL: ['killing', 'kill'],
      'thread.launched': ['running'],
      'thread.running': null,
      'thread.ended': ['ended'],
      'start deadline': null,
      'stop timeout': null,
      'kill grace': null,
    },
    stopping: {
      STOP: null,
      ABANDON: null,
      KILL: null,
      'thread.launched': ['stopping'],
      'thread.running': null,
      'thread.ended': ['ended'],
      'start deadline': ['killing', 'kill'],
      'stop timeout': ['killing', 'kill'],
      'kill grace': ['killing', 'kill'],
    },
    killing: {
      STOP: null,
      ABANDON: null,
      KILL: null,
      'thread.launched': ['killing'],
      'thread.running': null,
      'thread.ended': ['ended'],
      'start deadline': ['ended'],
      'stop timeout': ['ended'],
      'kill grace': ['ended'],
    },
    ended: {
      STOP: null,
      ABANDON: null,
      KILL: null,
      'thread.launched': null,
      'thread.running': null,
      'thread.ended': null,
      'start deadline': null,
      'stop timeout': null,
      'kill grace': null,
    },
  }
  const states = Object.keys(reached) as (keyof typeof reached)[]
  const rows = states.flatMap((state) =>
    (Object.keys(events) as (keyof typeof events)[]).map((event) => [state, event, table[state][event]] as const),
  )
  test.each(rows)('%s, %s: %j', (from, event, cell) => {
    const { actor, clock, commands, thread } = rig()
    const apply = (step: RunEvent | number) => {
      if (typeof step === 'number') clock.increment(step)
      else if (step.type.startsWith('thread.')) thread(step as ThreadEvent)
      else actor.send(step)
    }
    reached[from].forEach(apply)
    const { value, context } = actor.getSnapshot()
    expect(value).toBe(from)
    commands.length = 0
    apply(events[event])
    const after = actor.getSnapshot()
    expect([after.value, ...commands.map(({ type }) => type)]).toEqual(cell ?? [from])
    if (cell === null) expect(after.context).toBe(context)
    else expect(after.context).not.toBe(context)
  })
})

test('the record follows the run', () => {
  const { actor, clock, launched, thread } = rig()
  const record = () => actor.getSnapshot().context.record
  expect(record()).toEqual({ id: 'r', pipelineId: 'p', state: 'STARTING', startedAt: 1_000, cpu: 1 })
  thread({ type: 'thread.launched', handle: { id: 'r' } as RunHandle })
  expect(launched).toEqual(['r'])
  thread(running)
  expect(record().state).toBe('RUNNING')
  expect(actor.getSnapshot().context.handle?.id).toBe('r')
  clock.increment(500)
  actor.send(stop)
  expect(record().state).toBe('STOPPING')
  thread(ended('STOPPED'))
  expect(actor.getSnapshot().output).toEqual({
    handle: null,
    reachedRunning: true,
    missedDeadline: false,
    record: { id: 'r', pipelineId: 'p', state: 'ENDED', startedAt: 1_000, endedAt: 1_500, cpu: 1, outcome: 'STOPPED' },
  })
})

test('a run that misses its start deadline is killed and says so', () => {
  const { actor, clock, commands, thread } = rig()
  clock.increment(START_DEADLINE_MS)
  const cause = (commands[0] as { cause: string }).cause
  expect(cause).toContain('within 10 s')
  thread(ended('FAILED', cause))
  const { context } = actor.getSnapshot()
  expect(context).toMatchObject({ missedDeadline: true, reachedRunning: false })
  expect(context.record).toMatchObject({ state: 'ENDED', outcome: 'FAILED', error: cause })
})

test.each([true, false])('a start that nobody waits for is killed; late: %s', (isLate) => {
  const { actor, commands, thread } = rig()
  actor.send({ type: 'ABANDON', isLate, cause: 'nobody waits' })
  expect(commands).toEqual([{ type: 'kill', cause: 'nobody waits' }])
  thread(ended('FAILED', 'nobody waits'))
  expect(actor.getSnapshot().context).toMatchObject({ missedDeadline: isLate, reachedRunning: false })
})

test('a killed thread that never reports is given up', () => {
  const { actor, clock } = rig()
  clock.increment(START_DEADLINE_MS)
  clock.increment(KILL_GRACE_MS)
  expect(actor.getSnapshot().context.record).toMatchObject({ state: 'ENDED', outcome: 'FAILED' })
})
