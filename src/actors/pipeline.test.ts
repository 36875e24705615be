/** The pipeline machine, with the real run machine inside, on a simulated clock; only the thread is replaced. */

import { describe, expect, test } from 'vitest'
import { createActor, fromCallback, SimulatedClock } from 'xstate'
import { settle } from '../../test/harness/waiting.ts'
import type { RestartPolicy, StartupPolicy } from '../contract/types.ts'
import type { PipelineConfig } from '../dataplane/engine/config.ts'
import { type RunHandle, RunOver } from '../dataplane/engine/run.ts'
import type { RunRecord } from '../store/runs.ts'
import {
  backOff,
  HEALTHY_MS,
  type PipelineEmitted,
  type PipelineEvent,
  pipeline,
  type ReconfigureOutcome,
} from './pipeline.ts'
import { pipelineRun, START_DEADLINE_MS } from './pipeline-run.ts'
import type { RunPlan, ThreadCommand, ThreadEvent } from './run-thread.ts'

const configuration = (version: number): PipelineConfig => ({ version, components: {}, logFilters: [], variables: [] })

/** What the thread was asked to take over, and its answers. */
interface Asked {
  config: PipelineConfig
  timeout: number | undefined
  accept(): void
  refuse(error: Error): void
}

function rig(restartPolicy: RestartPolicy = { never: {} }, startupPolicy: StartupPolicy = { auto: {} }) {
  const clock = new SimulatedClock()
  const commands: ThreadCommand['type'][] = []
  const asked: Asked[] = []
  const told: PipelineEmitted[] = []
  /** Of each run, whether somebody waits for its start. */
  const awaited: boolean[] = []
  let send: (event: ThreadEvent) => void = () => {}
  let runs = 0
  const reconfigure: RunHandle['reconfigure'] = (config, timeout) =>
    new Promise<void>((accept, refuse) => asked.push({ config, timeout, accept, refuse }))
  const run = pipelineRun.provide({
    actors: {
      thread: fromCallback<ThreadCommand, RunPlan, ThreadEvent>(({ sendBack, receive }) => {
        send = sendBack
        receive(({ type }) => commands.push(type))
        sendBack({ type: 'thread.launched', handle: { id: `run-${runs}`, reconfigure } as RunHandle })
        sendBack({ type: 'thread.turn' })
      }),
    },
  })
  const actor = createActor(pipeline.provide({ actors: { run } }), {
    clock,
    input: {
      policy: { restartPolicy, startupPolicy, instructionsTimeout: 5_000 },
      lastRun: null,
      plan: (isAwaited) => {
        awaited.push(isAwaited)
        return {
          pipelineId: 'p',
          options: {
            runId: `run-${++runs}`,
            config: configuration(1),
            cpu: 0,
            performanceMode: false,
            level: 'INFO',
          },
          stopTimeout: 5_000,
          onLog: () => {},
          onLaunch: () => {},
          isAwaited,
          now: () => clock.now(),
          elapsed: () => clock.now(),
          uptime: () => clock.now(),
        }
      },
    },
  })
  actor.on('*', (event) => told.push(event))
  actor.start()
  const state = (): State => {
    const { value } = actor.getSnapshot()
    if (typeof value === 'string') return value
    if ('backingOff' in value) return value.backingOff === 'due' ? 'due' : 'backingOff'
    if (typeof value.active === 'string') return value.active
    return value.active.running === 'steady' ? 'running' : 'reconfiguring'
  }
  const thread = (event: ThreadEvent) => send(event)
  const runId = () => actor.getSnapshot().context.run?.record.id
  return { actor, clock, commands, asked, told, awaited, state, thread, runId }
}
type State = 'stopped' | 'starting' | 'running' | 'reconfiguring' | 'stopping' | 'backingOff' | 'due'

/** What the thread says to what it was asked to take over. */
type Answer = 'takes it over' | 'refuses' | 'has ended'
type Step = PipelineEvent | ThreadEvent | number | Answer
const start: PipelineEvent = { type: 'START' }
const nodeUp: PipelineEvent = { type: 'NODE_UP' }
const stop: PipelineEvent = { type: 'STOP' }
const restart: PipelineEvent = { type: 'RESTART' }
const abandon: PipelineEvent = { type: 'ABANDON', isLate: false, cause: 'the caller went away' }
const settings: PipelineEvent = {
  type: 'SETTINGS',
  policy: { restartPolicy: { never: {} }, startupPolicy: { manual: {} }, instructionsTimeout: 7_000 },
}
const coming: PipelineEvent = { type: 'SETTINGS_COMING' }
const kept: PipelineEvent = { type: 'SETTINGS_KEPT' }
const change = { type: 'RECONFIGURE', config: configuration(2) } as const
const another = { type: 'RECONFIGURE', config: configuration(3) } as const
const running: ThreadEvent = { type: 'thread.running' }
const ended = (outcome: NonNullable<RunRecord['outcome']>): ThreadEvent => ({ type: 'thread.ended', end: { outcome } })

async function take(machine: ReturnType<typeof rig>, ...steps: Step[]): Promise<void> {
  for (const step of steps) {
    if (typeof step === 'number') machine.clock.increment(step)
    else if (step === 'takes it over') machine.asked.at(-1)?.accept()
    else if (step === 'refuses') machine.asked.at(-1)?.refuse(new Error('no room'))
    else if (step === 'has ended') machine.asked.at(-1)?.refuse(new RunOver('killed'))
    else if (step.type.startsWith('thread.')) machine.thread(step as ThreadEvent)
    else machine.actor.send(step as PipelineEvent)
    await settle(1)
  }
}

describe('transitions', () => {
  const always: RestartPolicy = { always: { maxRestarts: 0 } }
  const onFailure: RestartPolicy = { onFailure: { maxRestarts: 0 } }
  const never: RestartPolicy = { never: {} }
  // Policy, state, how it is reached, what happens, the state after, the run after.
  const table: [RestartPolicy, State | 'killed', Step[], Step, State, string | undefined][] = [
    // The rows of the specification.
    [never, 'stopped', [], start, 'starting', 'run-1'],
    [never, 'starting', [start], running, 'running', 'run-1'],
    [never, 'starting', [start], ended('FAILED'), 'stopped', 'run-1'],
    [never, 'killed', [start], START_DEADLINE_MS, 'stopping', 'run-1'],
    [never, 'running', [start, running], start, 'running', 'run-1'],
    [never, 'running', [start, running], stop, 'stopping', 'run-1'],
    [never, 'stopping', [start, running, stop], ended('STOPPED'), 'stopped', 'run-1'],
    [never, 'stopped', [start, running, stop, ended('STOPPED')], stop, 'stopped', 'run-1'],
    [never, 'stopped', [start, running, stop, ended('STOPPED')], start, 'starting', 'run-2'],
    [never, 'running', [start, running], restart, 'stopping', 'run-1'],
    [never, 'stopping', [start, running, restart], ended('STOPPED'), 'starting', 'run-2'],
    // A change that the run can take over, or not, and what comes in between.
    [never, 'running', [start, running], change, 'reconfiguring', 'run-1'],
    [never, 'reconfiguring', [start, running, change], 'takes it over', 'running', 'run-1'],
    [never, 'reconfiguring', [start, running, change], 'refuses', 'running', 'run-1'],
    [never, 'reconfiguring', [start, running, change], 4_999, 'reconfiguring', 'run-1'],
    [never, 'reconfiguring', [start, running, change], 5_000, 'stopping', 'run-1'],
    [never, 'stopping', [start, running, change, 5_000], 'takes it over', 'stopping', 'run-1'],
    [never, 'stopping', [start, running, change, 5_000], ended('FAILED'), 'stopped', 'run-1'],
    [onFailure, 'stopping', [start, running, change, 5_000], ended('FAILED'), 'backingOff', 'run-1'],
    [never, 'running', [start, running, change, 'refuses'], another, 'reconfiguring', 'run-1'],
    [never, 'stopping', [start, running, change, stop], ended('STOPPED'), 'stopped', 'run-1'],
    [never, 'stopping', [start, running, change, stop], 'takes it over', 'stopping', 'run-1'],
    [never, 'stopping', [start, running, change, restart], ended('STOPPED'), 'starting', 'run-2'],
    [onFailure, 'reconfiguring', [start, running, change], ended('FAILED'), 'backingOff', 'run-1'],
    [onFailure, 'reconfiguring', [start, running, change, 'has ended'], ended('FAILED'), 'backingOff', 'run-1'],
    // What was asked for last: a stop is not undone by a restart, a restart is by a stop.
    [never, 'stopping', [start, running, stop, restart], ended('STOPPED'), 'stopped', 'run-1'],
    [never, 'stopping', [start, running, restart, stop], ended('STOPPED'), 'stopped', 'run-1'],
    [never, 'stopping', [start, restart], ended('STOPPED'), 'starting', 'run-2'],
    // A start whose caller has gone.
    [never, 'starting', [start], abandon, 'stopping', 'run-1'],
    [never, 'running', [start, running], abandon, 'running', 'run-1'],
    [never, 'stopped', [], abandon, 'stopped', undefined],
    // What they leave open.
    [never, 'running', [start, running], ended('FAILED'), 'stopped', 'run-1'],
    [never, 'running', [start, running], ended('COMPLETED'), 'stopped', 'run-1'],
    [never, 'stopped', [], stop, 'stopped', undefined],
    [never, 'stopped', [], restart, 'stopped', undefined],
    // Restart policies.
    [onFailure, 'running', [start, running], ended('COMPLETED'), 'stopped', 'run-1'],
    [onFailure, 'running', [start, running], ended('FAILED'), 'backingOff', 'run-1'],
    [onFailure, 'starting', [start], ended('FAILED'), 'stopped', 'run-1'],
    [onFailure, 'starting', [nodeUp], ended('FAILED'), 'backingOff', 'run-1'],
    [always, 'running', [start, running], ended('COMPLETED'), 'backingOff', 'run-1'],
    [always, 'stopping', [start, running, stop], ended('STOPPED'), 'stopped', 'run-1'],
    [always, 'stopping', [start, running, stop], ended('FAILED'), 'stopped', 'run-1'],
    [always, 'backingOff', [start, running, ended('FAILED')], 999, 'backingOff', 'run-1'],
    [always, 'backingOff', [start, running, ended('FAILED')], 1_000, 'starting', 'run-2'],
    [always, 'backingOff', [start, running, ended('FAILED')], stop, 'stopped', 'run-1'],
    [always, 'backingOff', [start, running, ended('FAILED')], start, 'backingOff', 'run-1'],
    [always, 'backingOff', [start, running, ended('FAILED')], restart, 'starting', 'run-2'],
    [always, 'backingOff', [start, running, ended('FAILED')], abandon, 'backingOff', 'run-1'],
    [always, 'stopping', [start, abandon], ended('FAILED'), 'stopped', 'run-1'],
    [always, 'starting', [start, running, ended('FAILED'), 1_000], ended('FAILED'), 'backingOff', 'run-2'],
    [always, 'starting', [start, running, restart, ended('STOPPED')], ended('FAILED'), 'stopped', 'run-2'],
  ]
  test.each(table)('%j, %s after %j, then %j: %s', async (policy, from, before, then, to, run) => {
    const machine = rig(policy)
    await take(machine, ...before)
    if (from !== 'killed') expect(machine.state()).toBe(from)
    await take(machine, then)
    expect(machine.state()).toBe(to)
    expect(machine.runId()).toBe(run)
  })
})

test('the node being up starts a pipeline whose startup policy says so, no other, and once', async () => {
  const manual = rig({ never: {} }, { manual: {} })
  await take(manual, nodeUp)
  expect([manual.state(), manual.runId()]).toEqual(['stopped', undefined])
  const auto = rig({ never: {} }, { auto: {} })
  await take(auto, nodeUp, running, stop, ended('STOPPED'))
  expect([auto.state(), auto.runId()]).toEqual(['stopped', 'run-1'])
})

test('back-off doubles from 1 s to 30 s', () => {
  expect([0, 1, 2, 3, 4, 5, 6, 1000].map(backOff)).toEqual([1000, 2000, 4000, 8000, 16000, 30000, 30000, 30000])
})

test('each failure in a row waits longer, and maxRestarts ends the row', async () => {
  const machine = rig({ onFailure: { maxRestarts: 3 } })
  await take(machine, start, running, ended('FAILED'))
  for (const wait of [1_000, 2_000, 4_000]) {
    await take(machine, wait - 1)
    expect(machine.state()).toBe('backingOff')
    await take(machine, 1)
    expect(machine.state()).toBe('starting')
    await take(machine, running)
    await take(machine, ended('FAILED'))
  }
  expect(machine.state()).toBe('stopped')
  expect(machine.runId()).toBe('run-4')
})

test('a healthy run ends the row of restarts', async () => {
  const machine = rig({ onFailure: { maxRestarts: 1 } })
  await take(machine, start, running, ended('FAILED'), 1_000, running, HEALTHY_MS, ended('FAILED'))
  expect(machine.state()).toBe('backingOff')
  await take(machine, 1_000)
  expect(machine.runId()).toBe('run-3')
})

test('a run that was not healthy does not', async () => {
  const machine = rig({ onFailure: { maxRestarts: 1 } })
  await take(machine, start, running, ended('FAILED'), 1_000, running, HEALTHY_MS - 1, ended('FAILED'))
  expect(machine.state()).toBe('stopped')
})

test('new settings decide on the next restart', async () => {
  const machine = rig({ never: {} })
  await take(machine, start, running)
  machine.actor.send({
    type: 'SETTINGS',
    policy: { restartPolicy: { always: { maxRestarts: 0 } }, startupPolicy: { manual: {} }, instructionsTimeout: 100 },
  })
  await take(machine, ended('COMPLETED'))
  expect(machine.state()).toBe('backingOff')
  await take(machine, 1_000, running, stop, 100)
  expect(machine.commands).toEqual(['stop', 'kill'])
})

describe('new settings while the next run is waited for', () => {
  const onFailure = (maxRestarts: number): RestartPolicy => ({ onFailure: { maxRestarts } })
  const always = (maxRestarts: number): RestartPolicy => ({ always: { maxRestarts } })
  const once: Step[] = [start, running, ended('FAILED')]
  const twice: Step[] = [...once, 1_000, running, ended('FAILED')]
  const completed: Step[] = [start, running, ended('COMPLETED')]
  test.each<[string, Step[], RestartPolicy, State, string?]>([
    ['they want one as well', once, onFailure(0), 'backingOff'],
    ['one is left', twice, always(2), 'backingOff'],
    ['none is left', twice, always(1), 'stopped', 'gaveUp'],
    ['none after such an end', completed, onFailure(0), 'stopped', 'restartCancelled'],
    ['none at all', twice, { never: {} }, 'stopped', 'restartCancelled'],
  ])('%s', async (_what, before, restartPolicy, to, told) => {
    const machine = rig(always(0))
    await take(machine, ...before)
    const run = machine.runId()
    machine.told.length = 0
    const policy = { restartPolicy, startupPolicy: { manual: {} }, instructionsTimeout: 5_000 }
    await take(machine, { type: 'SETTINGS', policy })
    expect([machine.state(), machine.told.map(({ type }) => type)]).toEqual([to, told === undefined ? [] : [told]])
    if (told === 'restartCancelled') expect(machine.told[0]).toMatchObject({ by: 'settings', record: { id: run } })
    await take(machine, 60_000)
    expect(machine.runId() === run).toBe(to === 'stopped')
  })
})

describe('a restart that is due while settings are on their way to the disk', () => {
  const always: RestartPolicy = { always: { maxRestarts: 0 } }
  const due: Step[] = [start, running, ended('FAILED'), coming, 1_000]
  const policy = { restartPolicy: always, startupPolicy: { manual: {} }, instructionsTimeout: 5_000 }
  test.each<[string, Step, State]>([
    ['they came', { type: 'SETTINGS', policy }, 'starting'],
    ['they came, and want none', settings, 'stopped'],
    ['they did not', kept, 'starting'],
  ])('%s', async (_what, how, to) => {
    const machine = rig(always)
    await take(machine, ...due, 60_000)
    expect([machine.state(), machine.runId()]).toEqual(['due', 'run-1'])
    await take(machine, how)
    expect([machine.state(), machine.runId()]).toEqual([to, to === 'starting' ? 'run-2' : 'run-1'])
  })

  test('they came before it was due: it is not earlier', async () => {
    const machine = rig(always)
    await take(machine, start, running, ended('FAILED'), coming, 500, { type: 'SETTINGS', policy }, 499)
    expect(machine.state()).toBe('backingOff')
    await take(machine, 1)
    expect(machine.state()).toBe('starting')
  })
})

describe('every event in every state', () => {
  const always: RestartPolicy = { always: { maxRestarts: 0 } }
  const reached: Record<State, Step[]> = {
    stopped: [],
    starting: [start],
    running: [start, running],
    reconfiguring: [start, running, change],
    stopping: [start, running, stop],
    backingOff: [start, running, ended('FAILED')],
    due: [start, running, ended('FAILED'), coming, 1_000],
  }
  const events = {
    START: start,
    NODE_UP: nodeUp,
    STOP: stop,
    RESTART: restart,
    ABANDON: abandon,
    SETTINGS_COMING: coming,
    SETTINGS: settings,
    SETTINGS_KEPT: kept,
    RECONFIGURE: another,
    'packets flow': running,
    'the run fails': ended('FAILED'),
    'the run completes': ended('COMPLETED'),
    'takes it over': 'takes it over',
    refuses: 'refuses',
    'has ended': 'has ended',
    '1 s': 1_000,
    '5 s': 5_000,
    '10 s': START_DEADLINE_MS,
    '60 s': HEALTHY_MS,
  } as const satisfies Record<PipelineEvent['type'], PipelineEvent> & Record<string, Step>
  /** The state after, what is told on the way, what the thread is told; null: ignored. */
  type Cell = [State, (PipelineEmitted['type'] | 'stop' | 'kill')?, ...(PipelineEmitted['type'] | 'stop' | 'kill')[]]
  const failed: Cell = ['backingOff', 'runEnded', 'restartPlanned']
  const table: Record<State, Record<keyof typeof events, Cell | null>> = {
    stopped: {
      START: ['starting', 'runChanged'],
      NODE_UP: ['starting', 'runChanged'],
      STOP: null,
      RESTART: null,
      ABANDON: null,
      SETTINGS_COMING: ['stopped'],
      SETTINGS: ['stopped'],
      SETTINGS_KEPT: ['stopped'],
      RECONFIGURE: ['stopped', 'reconfigureEnded'],
      'packets flow': null,
      'the run fails': null,
      'the run completes': null,
      'takes it over': null,
      refuses: null,
      'has ended': null,
      '1 s': null,
      '5 s': null,
      '10 s': null,
      '60 s': null,
    },
    starting: {
      START: null,
      NODE_UP: null,
      STOP: ['stopping', 'runChanged', 'stop'],
      RESTART: ['stopping', 'runChanged', 'stop'],
      ABANDON: ['stopping', 'runChanged', 'kill'],
      SETTINGS_COMING: ['starting'],
      SETTINGS: ['starting'],
      SETTINGS_KEPT: ['starting'],
      RECONFIGURE: ['starting', 'reconfigureEnded'],
      'packets flow': ['running', 'runChanged', 'runStarted'],
      'the run fails': ['stopped', 'runEnded'],
      'the run completes': ['stopped', 'runEnded'],
      'takes it over': null,
      refuses: null,
      'has ended': null,
      '1 s': null,
      '5 s': null,
      '10 s': ['stopping', 'runChanged', 'kill'],
      '60 s': ['stopping', 'runChanged', 'kill'],
    },
    running: {
      START: null,
      NODE_UP: null,
      STOP: ['stopping', 'runChanged', 'stop'],
      RESTART: ['stopping', 'runChanged', 'stop'],
      ABANDON: null,
      SETTINGS_COMING: ['running'],
      SETTINGS: ['running'],
      SETTINGS_KEPT: ['running'],
      RECONFIGURE: ['reconfiguring'],
      'packets flow': null,
      'the run fails': failed,
      'the run completes': failed,
      'takes it over': null,
      refuses: null,
      'has ended': null,
      '1 s': null,
      '5 s': null,
      '10 s': null,
      '60 s': ['running'],
    },
    reconfiguring: {
      START: null,
      NODE_UP: null,
      STOP: ['stopping', 'runChanged', 'reconfigureEnded', 'stop'],
      RESTART: ['stopping', 'runChanged', 'reconfigureEnded', 'stop'],
      ABANDON: null,
      SETTINGS_COMING: ['reconfiguring'],
      SETTINGS: ['reconfiguring'],
      SETTINGS_KEPT: ['reconfiguring'],
      // The other one is refused.
      RECONFIGURE: ['reconfiguring', 'reconfigureEnded'],
      'packets flow': null,
      'the run fails': ['backingOff', 'reconfigureEnded', 'runEnded', 'restartPlanned'],
      'the run completes': ['backingOff', 'reconfigureEnded', 'runEnded', 'restartPlanned'],
      'takes it over': ['running', 'reconfigureEnded'],
      refuses: ['running', 'reconfigureEnded'],
      // The run's own end is on its way.
      'has ended': ['reconfiguring'],
      '1 s': null,
      '5 s': ['stopping', 'reconfigureEnded', 'runChanged', 'kill'],
      '10 s': ['stopping', 'reconfigureEnded', 'runChanged', 'kill'],
      '60 s': ['stopping', 'reconfigureEnded', 'runChanged', 'kill'],
    },
    stopping: {
      START: null,
      NODE_UP: null,
      STOP: ['stopping'],
      RESTART: null,
      ABANDON: null,
      SETTINGS_COMING: ['stopping'],
      SETTINGS: ['stopping'],
      SETTINGS_KEPT: ['stopping'],
      RECONFIGURE: ['stopping', 'reconfigureEnded'],
      'packets flow': null,
      'the run fails': ['stopped', 'runEnded'],
      'the run completes': ['stopped', 'runEnded'],
      'takes it over': null,
      refuses: null,
      'has ended': null,
      '1 s': null,
      '5 s': ['stopping', 'kill'],
      '10 s': ['stopping', 'kill'],
      '60 s': ['stopping', 'kill'],
    },
    backingOff: {
      START: null,
      NODE_UP: null,
      STOP: ['stopped', 'restartCancelled'],
      RESTART: ['starting', 'runChanged'],
      ABANDON: null,
      SETTINGS_COMING: ['backingOff'],
      // They want no restart.
      SETTINGS: ['stopped', 'restartCancelled'],
      SETTINGS_KEPT: ['backingOff'],
      RECONFIGURE: ['backingOff', 'reconfigureEnded'],
      'packets flow': null,
      'the run fails': null,
      'the run completes': null,
      'takes it over': null,
      refuses: null,
      'has ended': null,
      '1 s': ['starting', 'runChanged'],
      '5 s': ['starting', 'runChanged'],
      '10 s': ['starting', 'runChanged'],
      '60 s': ['starting', 'runChanged'],
    },
    due: {
      START: null,
      NODE_UP: null,
      STOP: ['stopped', 'restartCancelled'],
      RESTART: ['starting', 'runChanged'],
      ABANDON: null,
      SETTINGS_COMING: ['due'],
      // They want no restart.
      SETTINGS: ['stopped', 'restartCancelled'],
      SETTINGS_KEPT: ['starting', 'runChanged'],
      RECONFIGURE: ['due', 'reconfigureEnded'],
      'packets flow': null,
      'the run fails': null,
      'the run completes': null,
      'takes it over': null,
      refuses: null,
      'has ended': null,
      '1 s': null,
      '5 s': null,
      '10 s': null,
      '60 s': null,
    },
  }
  const states = Object.keys(reached) as State[]
  const rows = states.flatMap((state) =>
    (Object.keys(events) as (keyof typeof events)[]).map((event) => [state, event, table[state][event]] as const),
  )
  test.each(rows)('%s, %s: %j', async (from, event, cell) => {
    const machine = rig(always)
    await take(machine, ...reached[from])
    expect(machine.state()).toBe(from)
    const { context } = machine.actor.getSnapshot()
    machine.told.length = 0
    machine.commands.length = 0
    await take(machine, events[event])
    const happened = [...machine.told.map(({ type }) => type), ...machine.commands]
    if (cell === null) {
      expect([machine.state(), ...happened]).toEqual([from])
      expect(machine.actor.getSnapshot().context).toEqual(context)
    } else expect([machine.state(), ...happened]).toEqual(cell)
  })
})

test('somebody waits for a start that was asked for, and nobody for one that comes with the node or from the policy', async () => {
  const machine = rig({ always: { maxRestarts: 0 } })
  await take(
    machine,
    nodeUp,
    running,
    ended('FAILED'),
    1_000,
    running,
    restart,
    ended('STOPPED'),
    stop,
    ended('STOPPED'),
  )
  await take(machine, start, ended('FAILED'))
  expect(machine.awaited).toEqual([false, false, true, true])
})

describe('a change', () => {
  const { config } = change
  const ends = (machine: ReturnType<typeof rig>) => machine.told.filter(({ type }) => type === 'reconfigureEnded')

  test.each<[string, Step[], ReconfigureOutcome]>([
    ['taken over', [start, running, change, 'takes it over'], { kind: 'taken over' }],
    ['refused', [start, running, change, 'refuses'], { kind: 'refused', cause: new Error('no room') }],
    ['not answered', [start, running, change, 5_000], { kind: 'timed out', timeout: 5_000 }],
    ['new settings in between', [start, running, change, settings, 5_000], { kind: 'timed out', timeout: 5_000 }],
    ['answered too late', [start, running, change, 5_000, 'takes it over'], { kind: 'timed out', timeout: 5_000 }],
    ['the run fails', [start, running, change, ended('FAILED'), 'refuses'], { kind: 'not running' }],
    ['the run says first', [start, running, change, 'has ended', ended('FAILED')], { kind: 'not running' }],
    ['it says so and is not over', [start, running, change, 'has ended', 5_000], { kind: 'timed out', timeout: 5_000 }],
    ['the run is stopped', [start, running, change, stop, 'takes it over'], { kind: 'not running' }],
    ['no run yet', [change], { kind: 'not running' }],
    ['a run that starts', [start, change, running], { kind: 'not running' }],
    ['a run that stops', [start, running, stop, change], { kind: 'not running' }],
  ])('%s: its end is told once', async (_what, steps, outcome) => {
    const machine = rig()
    await take(machine, ...steps)
    expect(ends(machine)).toEqual([{ type: 'reconfigureEnded', config, outcome }])
    expect(machine.actor.getSnapshot().context.change).toBeNull()
  })

  test('a second one is refused while the first is under way, which goes on', async () => {
    const machine = rig()
    await take(machine, start, running, change, another)
    expect(machine.asked).toMatchObject([{ config, timeout: 5_000 }])
    expect(ends(machine)).toEqual([
      { type: 'reconfigureEnded', config: another.config, outcome: { kind: 'refused', cause: expect.any(Error) } },
    ])
    await take(machine, 'takes it over')
    expect(ends(machine).at(-1)).toEqual({ type: 'reconfigureEnded', config, outcome: { kind: 'taken over' } })
  })

  test('does not make a run less healthy', async () => {
    const machine = rig({ onFailure: { maxRestarts: 1 } })
    await take(machine, start, running, ended('FAILED'), 1_000, running, HEALTHY_MS - 4_000, change, 4_000)
    await take(machine, 'takes it over', ended('FAILED'))
    expect(machine.state()).toBe('backingOff')
  })
})

test("the record is the run machine's own, the same object", async () => {
  const machine = rig()
  const own = () => machine.actor.getSnapshot().children.run?.getSnapshot().context.record
  const seen: (string | undefined)[] = []
  for (const step of [start, running, stop]) {
    await take(machine, step)
    expect(machine.actor.getSnapshot().context.run?.record).toBe(own())
    seen.push(own()?.state)
  }
  expect(seen).toEqual(['STARTING', 'RUNNING', 'STOPPING'])
  await take(machine, ended('STOPPED'))
  expect(machine.actor.getSnapshot().children.run).toBeUndefined()
  const told = machine.told.filter(({ type }) => type === 'runChanged' || type === 'runEnded')
  expect(told.map((event) => 'record' in event && event.record.state)).toEqual([...seen, 'ENDED'])
})
