/** The run machine on a simulated clock, its thread replaced. */

import { describe, expect, test } from 'vitest'
import { createActor, fromCallback, SimulatedClock } from 'xstate'
import { settle } from '../../test/harness/waiting.ts'
import { HOOKS, type Hook } from '../dataplane/engine/lifecycle.ts'
import type { RunHandle } from '../dataplane/engine/run.ts'
import { KILL_GRACE_MS, pipelineRun, type RunEvent, START_DEADLINE_MS } from './pipeline-run.ts'
import type { RunHooks, RunPlan, ThreadCommand, ThreadEvent } from './run-thread.ts'

/** The state as one word each level. */
function stateOf(value: string | object): string {
  return typeof value === 'string'
    ? value
    : (Object.entries(value).map(([name, inner]) => `${name} ${inner}`)[0] as string)
}

/** Commands that end when the test says so. */
class ScriptedHooks implements RunHooks {
  readonly hooks: readonly Hook[]
  readonly aborted: Hook[] = []
  settle: { succeed(): void; fail(): void } | undefined
  ended: () => void = () => {}

  constructor(hooks: readonly Hook[]) {
    this.hooks = hooks
  }

  has(hook: Hook): boolean {
    return this.hooks.includes(hook)
  }

  run(hook: Hook, signal: AbortSignal): Promise<void> {
    signal.addEventListener('abort', () => this.aborted.push(hook))
    return new Promise((resolve, reject) => {
      this.settle = {
        succeed: resolve,
        fail: () => reject(new Error(`${hook} command 1 (false) ended with exit code 1`)),
      }
    })
  }

  end(): Promise<void> {
    return new Promise((resolve) => {
      this.ended = resolve
    })
  }
}

/** `isAwaited`: somebody waits for the start; `setBy`: how far the system's time was set by now. */
function rig(hooks?: RunHooks, isAwaited = true, setBy = () => 0) {
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
    stopTimeout: 5_000,
    onLaunch: ({ id }) => void launched.push(id),
    isAwaited,
    now: () => 1_000 + clock.now() + setBy(),
    elapsed: () => clock.now(),
    uptime: () => clock.now(),
    ...(hooks && { hooks }),
  }
  const actor = createActor(machine, { input: plan, clock }).start()
  return { actor, clock, commands, launched, thread: (event: ThreadEvent) => send(event) }
}

const turn: ThreadEvent = { type: 'thread.turn' }
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
    ['starting', [turn], running, 'running', []],
    ['starting', [], stop, 'stopping', ['stop']],
    ['starting', [], ended('FAILED', 'port taken'), 'ended', []],
    ['starting', [], START_DEADLINE_MS - 1, 'starting', []],
    ['starting', [], START_DEADLINE_MS, 'killing', ['kill']],
    ['starting', [turn], START_DEADLINE_MS - 1, 'starting', []],
    ['starting', [turn], START_DEADLINE_MS, 'killing', ['kill']],
    ['starting', [], abandon, 'killing', ['kill']],
    ['running', [turn, running], abandon, 'running', []],
    ['stopping', [turn, running, stop], abandon, 'stopping', ['stop']],
    ['running', [turn, running], stop, 'stopping', ['stop']],
    ['running', [turn, running], kill, 'killing', ['kill']],
    ['running', [turn, running], START_DEADLINE_MS * 10, 'running', []],
    ['running', [turn, running], ended('COMPLETED'), 'ended', []],
    ['running', [turn, running], ended('FAILED', 'threw'), 'ended', []],
    ['stopping', [turn, running, stop], ended('STOPPED'), 'ended', ['stop']],
    ['stopping', [turn, running, stop], stop, 'stopping', ['stop']],
    ['stopping', [turn, running, stop], running, 'stopping', ['stop']],
    ['stopping', [turn, running, stop], 4_999, 'stopping', ['stop']],
    ['stopping', [turn, running, stop], 5_000, 'killing', ['stop', 'kill']],
  ]
  test.each(table)('%s after %j, then %j: %s', (from, before, then, to, commands) => {
    const { actor, clock, commands: sent, thread } = rig()
    const apply = (event: RunEvent) =>
      event.type.startsWith('thread.') ? thread(event as ThreadEvent) : actor.send(event)
    before.forEach(apply)
    expect(stateOf(actor.getSnapshot().value).split(' ')[0]).toBe(from)
    if (typeof then === 'number') clock.increment(then)
    else apply(then)
    expect(stateOf(actor.getSnapshot().value).split(' ')[0]).toBe(to)
    expect(sent.map(({ type }) => type)).toEqual(commands)
  })
})

describe('every event in every state', () => {
  const launched: ThreadEvent = { type: 'thread.launched', handle: { id: 'r' } as RunHandle }
  const built: ThreadEvent = { type: 'thread.built' }
  const events = {
    STOP: stop,
    ABANDON: abandon,
    KILL: kill,
    'thread.launched': launched,
    'thread.turn': turn,
    'thread.built': built,
    'thread.running': running,
    'thread.ended': ended('FAILED', 'threw'),
    'commands succeed': 'succeed',
    'commands fail': 'fail',
    'processes are gone': 'gone',
    'start deadline': START_DEADLINE_MS,
    'stop timeout': 5_000,
  } as const satisfies Record<RunEvent['type'], RunEvent> & Record<string, Step>
  type Step = RunEvent | number | 'succeed' | 'fail' | 'gone'
  /** Of a run with commands everywhere, and the states that one without never enters marked by their commands. */
  const reached = {
    'starting settingUp': [],
    'starting queued': ['succeed'],
    'starting building': ['succeed', turn],
    'starting preparing': ['succeed', turn, built],
    'starting launching': ['succeed', turn, built, 'succeed'],
    'running announcing': ['succeed', turn, built, 'succeed', running],
    'running steady': ['succeed', turn, built, 'succeed', running, 'succeed'],
    'stopping quitting': ['succeed', turn, built, 'succeed', running, 'succeed', stop],
    'stopping halting': ['succeed', turn, built, 'succeed', running, 'succeed', stop, 'succeed'],
    killing: ['succeed', abandon],
    'following cleaning': ['succeed', ended('COMPLETED')],
    'following ending': ['succeed', ended('COMPLETED'), 'succeed'],
    ended: ['succeed', ended('COMPLETED'), 'succeed', 'gone'],
  } as const satisfies Record<string, readonly Step[]>
  type State = keyof typeof reached
  /** The state after, what the thread is told, the commands that are aborted; null: ignored. */
  type Cell = readonly [State, ...(ThreadCommand['type'] | Hook)[]] | null
  const same = (state: State): Cell => [state]
  const cleaning: Cell = ['following cleaning']
  const ignored = {
    STOP: null,
    ABANDON: null,
    KILL: null,
    'thread.turn': null,
    'thread.built': null,
    'thread.running': null,
    'thread.ended': null,
    'commands succeed': null,
    'commands fail': null,
    'processes are gone': null,
    'start deadline': null,
    'stop timeout': null,
  } as const satisfies Partial<Record<keyof typeof events, Cell>>
  const table: Record<State, Record<keyof typeof events, Cell>> = {
    'starting settingUp': {
      ...ignored,
      STOP: ['following cleaning', 'on_setup'],
      ABANDON: ['following cleaning', 'on_setup'],
      'thread.launched': same('starting settingUp'),
      'commands succeed': ['starting queued'],
      'commands fail': cleaning,
      'start deadline': ['following cleaning', 'on_setup'],
    },
    'starting queued': {
      ...ignored,
      STOP: ['stopping halting', 'stop'],
      ABANDON: ['killing', 'kill'],
      'thread.launched': same('starting queued'),
      'thread.turn': ['starting building'],
      'thread.ended': cleaning,
      'start deadline': ['killing', 'kill'],
    },
    'starting building': {
      ...ignored,
      STOP: ['stopping halting', 'stop'],
      ABANDON: ['killing', 'kill'],
      'thread.launched': same('starting building'),
      'thread.built': ['starting preparing'],
      'thread.running': ['running announcing'],
      'thread.ended': cleaning,
      'start deadline': ['killing', 'kill'],
    },
    'starting preparing': {
      ...ignored,
      STOP: ['stopping halting', 'stop', 'pre_start'],
      ABANDON: ['killing', 'kill', 'pre_start'],
      'thread.launched': same('starting preparing'),
      'thread.ended': ['following cleaning', 'pre_start'],
      'commands succeed': ['starting launching', 'go'],
      'commands fail': ['stopping halting', 'stop'],
      'start deadline': ['killing', 'kill', 'pre_start'],
    },
    'starting launching': {
      ...ignored,
      STOP: ['stopping halting', 'stop'],
      ABANDON: ['killing', 'kill'],
      'thread.launched': same('starting launching'),
      'thread.running': ['running announcing'],
      'thread.ended': cleaning,
      'start deadline': ['killing', 'kill'],
    },
    'running announcing': {
      ...ignored,
      STOP: ['stopping quitting', 'post_start'],
      KILL: ['killing', 'kill', 'post_start'],
      'thread.launched': same('running announcing'),
      'thread.ended': ['following cleaning', 'post_start'],
      'commands succeed': ['running steady'],
      'commands fail': ['stopping quitting'],
    },
    'running steady': {
      ...ignored,
      STOP: ['stopping quitting'],
      KILL: ['killing', 'kill'],
      'thread.launched': same('running steady'),
      'thread.ended': cleaning,
    },
    'stopping quitting': {
      ...ignored,
      'thread.launched': same('stopping quitting'),
      'thread.ended': ['following cleaning', 'pre_stop'],
      'commands succeed': ['stopping halting', 'stop'],
      'commands fail': ['stopping halting', 'stop'],
      'start deadline': ['killing', 'kill', 'pre_stop'],
      'stop timeout': ['killing', 'kill', 'pre_stop'],
    },
    'stopping halting': {
      ...ignored,
      'thread.launched': same('stopping halting'),
      'thread.ended': cleaning,
      'start deadline': ['killing', 'kill'],
      'stop timeout': ['killing', 'kill'],
    },
    killing: {
      ...ignored,
      'thread.launched': same('killing'),
      'thread.ended': cleaning,
      'start deadline': cleaning,
      'stop timeout': cleaning,
    },
    'following cleaning': {
      ...ignored,
      'thread.launched': same('following cleaning'),
      'commands succeed': ['following ending'],
      'commands fail': ['following ending'],
      'start deadline': ['following ending', 'post_stop'],
      'stop timeout': ['following ending', 'post_stop'],
    },
    'following ending': {
      ...ignored,
      'thread.launched': same('following ending'),
      'processes are gone': ['ended'],
      'start deadline': ['ended'],
      'stop timeout': ['ended'],
    },
    ended: { ...ignored, 'thread.launched': null },
  }
  const states = Object.keys(reached) as State[]
  const rows = states.flatMap((state) =>
    (Object.keys(events) as (keyof typeof events)[]).map((event) => [state, event, table[state][event]] as const),
  )
  test.each(rows)('%s, %s: %j', async (from, event, cell) => {
    const hooks = new ScriptedHooks(HOOKS)
    const { actor, clock, commands, thread } = rig(hooks)
    const apply = async (step: Step) => {
      if (typeof step === 'number') clock.increment(step)
      else if (step === 'succeed') hooks.settle?.succeed()
      else if (step === 'fail') hooks.settle?.fail()
      else if (step === 'gone') hooks.ended()
      else if (step.type.startsWith('thread.')) thread(step as ThreadEvent)
      else actor.send(step)
      await settle(1)
    }
    for (const step of reached[from]) await apply(step)
    const { value, context } = actor.getSnapshot()
    expect(stateOf(value)).toBe(from)
    commands.length = 0
    hooks.aborted.length = 0
    await apply(events[event])
    const after = actor.getSnapshot()
    expect([stateOf(after.value), ...commands.map(({ type }) => type), ...hooks.aborted]).toEqual(cell ?? [from])
    if (cell === null) expect(after.context).toBe(context)
  })
})

describe('the commands of a run', () => {
  /** What a run with commands of these hooks comes to. */
  async function end(hooks: readonly Hook[], ...steps: (RunEvent | number | 'succeed' | 'fail')[]) {
    const scripted = new ScriptedHooks(hooks)
    const { actor, clock, commands, thread } = rig(scripted)
    for (const step of steps) {
      if (typeof step === 'number') clock.increment(step)
      else if (step === 'succeed') scripted.settle?.succeed()
      else if (step === 'fail') scripted.settle?.fail()
      else if (step.type.startsWith('thread.')) thread(step as ThreadEvent)
      else actor.send(step)
      await settle(1)
    }
    scripted.ended()
    await settle(1)
    const { record, reachedRunning } = actor.getSnapshot().context
    return { ...record, reachedRunning, commands: commands.map(({ type }) => type) }
  }
  const failed = (hook: Hook) => ({ outcome: 'FAILED', error: `${hook} command 1 (false) ended with exit code 1` })
  const built: ThreadEvent = { type: 'thread.built' }

  test('on_setup fails: the run fails with its cause, without a thread', async () => {
    expect(await end(['on_setup'], 'fail')).toMatchObject({ ...failed('on_setup'), commands: [] })
  })

  test('pre_start fails: the thread is stopped before packets flow, and the run fails with the cause', async () => {
    const over = await end(['pre_start'], turn, built, 'fail', ended('STOPPED'))
    expect(over).toMatchObject({ ...failed('pre_start'), reachedRunning: false, commands: ['stop'] })
  })

  test('post_start fails: the run is stopped, and fails with the cause', async () => {
    const over = await end(['post_start'], turn, running, 'fail', ended('STOPPED'))
    expect(over).toMatchObject({ ...failed('post_start'), reachedRunning: true, commands: ['stop'] })
  })

  test.each(['pre_stop', 'post_stop'] as const)('%s fails: the run has stopped all the same', async (hook) => {
    const steps =
      hook === 'pre_stop' ? ([stop, 'fail', ended('STOPPED')] as const) : ([stop, ended('STOPPED'), 'fail'] as const)
    expect(await end([hook], turn, running, ...steps)).toMatchObject({ outcome: 'STOPPED', commands: ['stop'] })
  })

  test('all of a stop has its time: what pre_stop takes post_stop has not', async () => {
    const hooks = ['pre_stop', 'post_stop'] as const
    const over = await end(hooks, turn, running, stop, 2_000, 'succeed', 1_000, ended('STOPPED'), 2_000)
    expect(over).toMatchObject({ state: 'ENDED', outcome: 'STOPPED', endedAt: 1_000 + 5_000 })
  })

  test('the record is STOPPING until what follows its end is over', async () => {
    const hooks = new ScriptedHooks(['post_stop'])
    const { actor, thread } = rig(hooks)
    const state = () => actor.getSnapshot().context.record.state
    thread(turn)
    thread(running)
    thread(ended('COMPLETED'))
    await settle(1)
    expect(state()).toBe('STOPPING')
    hooks.settle?.succeed()
    await settle(1)
    expect(state()).toBe('STOPPING')
    hooks.ended()
    await settle(1)
    expect(actor.getSnapshot().output?.record).toMatchObject({ state: 'ENDED', outcome: 'COMPLETED' })
  })
})

test('the record follows the run', () => {
  const { actor, clock, launched, thread } = rig()
  const record = () => actor.getSnapshot().context.record
  expect(record()).toEqual({ id: 'r', pipelineId: 'p', state: 'STARTING', startedAt: 1_000, cpu: 1 })
  thread({ type: 'thread.launched', handle: { id: 'r' } as RunHandle })
  expect(launched).toEqual(['r'])
  thread(turn)
  expect(record().state).toBe('STARTING')
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

test.each([
  ['forward', 3_600_000],
  ['back', -3_600_000],
])('where the clock is set %s a run lasted as long as it did, and ended at what the clock says then', (_, by) => {
  let setBy = 0
  const { actor, clock, thread } = rig(undefined, true, () => setBy)
  thread(turn)
  thread(running)
  clock.increment(7_000)
  setBy = by
  thread(ended('COMPLETED'))
  expect(actor.getSnapshot().output?.record).toMatchObject({ startedAt: 1_000 + by, endedAt: 8_000 + by })
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

describe('a killed thread that never reports is given up, and the run says why it was killed', () => {
  const unreported = 'its thread was killed and did not report its end'

  test('at its start', () => {
    const { actor, clock } = rig()
    clock.increment(START_DEADLINE_MS)
    clock.increment(KILL_GRACE_MS)
    const error = `the run was not running within 10 s and was torn down; ${unreported}`
    expect(actor.getSnapshot().context.record).toMatchObject({ state: 'ENDED', outcome: 'FAILED', error })
  })

  test('at its stop', () => {
    const { actor, clock, thread } = rig()
    thread(turn)
    thread(running)
    actor.send(stop)
    clock.increment(5_000)
    clock.increment(KILL_GRACE_MS)
    const error = `the run did not stop within 5 s (instructionsTimeout) and was killed; ${unreported}`
    expect(actor.getSnapshot().context.record).toMatchObject({ state: 'ENDED', outcome: 'FAILED', error })
  })

  test('a command of it failed before', async () => {
    const hooks = new ScriptedHooks(['pre_start'])
    const { actor, clock, thread } = rig(hooks)
    thread(turn)
    thread({ type: 'thread.built' })
    hooks.settle?.fail()
    await settle(1)
    clock.increment(5_000)
    clock.increment(KILL_GRACE_MS)
    clock.increment(KILL_GRACE_MS)
    const error = `pre_start command 1 (false) ended with exit code 1; ${unreported}`
    expect(actor.getSnapshot().context.record).toMatchObject({ state: 'ENDED', outcome: 'FAILED', error })
  })
})

describe('a start that nobody waits for', () => {
  test('stands in line as long as it takes, and has all of its time then', () => {
    const { actor, clock, commands, thread } = rig(undefined, false)
    clock.increment(START_DEADLINE_MS * 10)
    expect(stateOf(actor.getSnapshot().value)).toBe('starting queued')
    thread(turn)
    clock.increment(START_DEADLINE_MS - 1)
    expect(stateOf(actor.getSnapshot().value)).toBe('starting building')
    expect(commands).toEqual([])
    clock.increment(1)
    expect(stateOf(actor.getSnapshot().value)).toBe('killing')
    expect(actor.getSnapshot().context.missedDeadline).toBe(true)
  })

  test('has less of it where commands have gone before', async () => {
    const hooks = new ScriptedHooks(['on_setup'])
    const { actor, clock, thread } = rig(hooks, false)
    clock.increment(START_DEADLINE_MS - 2_000)
    hooks.settle?.succeed()
    await settle(1)
    clock.increment(START_DEADLINE_MS)
    thread(turn)
    clock.increment(1_999)
    expect(stateOf(actor.getSnapshot().value)).toBe('starting building')
    clock.increment(1)
    expect(stateOf(actor.getSnapshot().value)).toBe('killing')
  })
})

test('a start that somebody waits for has no more time for having stood in line', () => {
  const { actor, clock, thread } = rig()
  clock.increment(START_DEADLINE_MS - 2_000)
  thread(turn)
  clock.increment(1_999)
  expect(stateOf(actor.getSnapshot().value)).toBe('starting building')
  clock.increment(1)
  expect(stateOf(actor.getSnapshot().value)).toBe('killing')
})
