/** The pipeline machine, with the real run machine inside, on a simulated clock; only the thread is replaced. */

import { describe, expect, test } from 'vitest'
import { createActor, fromCallback, SimulatedClock } from 'xstate'
import type { RestartPolicy } from '../store/pipelines.ts'
import type { RunRecord } from '../store/runs.ts'
import { backOff, HEALTHY_MS, type PipelineEvent, pipeline } from './pipeline.ts'
import { pipelineRun, type RunPlan, START_DEADLINE_MS, type ThreadCommand, type ThreadEvent } from './pipeline-run.ts'

function rig(restartPolicy: RestartPolicy = { never: {} }) {
  const clock = new SimulatedClock()
  const commands: ThreadCommand['type'][] = []
  let send: (event: ThreadEvent) => void = () => {}
  let runs = 0
  const run = pipelineRun.provide({
    actors: {
      thread: fromCallback<ThreadCommand, RunPlan, ThreadEvent>(({ sendBack, receive }) => {
        send = sendBack
        receive(({ type }) => commands.push(type))
      }),
    },
  })
  const actor = createActor(pipeline.provide({ actors: { run } }), {
    clock,
    input: {
      policy: { restartPolicy, instructionsTimeout: 5_000 },
      lastRun: null,
      plan: () => ({
        pipelineId: 'p',
        options: {
          runId: `run-${++runs}`,
          config: { version: 1, components: {}, variables: [] },
          cpu: 0,
          performanceMode: false,
          level: 'INFO',
        },
        onLog: () => {},
        now: () => clock.now(),
      }),
    },
  })
  actor.start()
  const state = () => {
    const { value } = actor.getSnapshot()
    return typeof value === 'string' ? value : value.active
  }
  const thread = (event: ThreadEvent) => send(event)
  return { actor, clock, commands, state, thread, runId: () => actor.getSnapshot().context.run?.id }
}

type Step = PipelineEvent | ThreadEvent | number
const start: PipelineEvent = { type: 'START', persist: false }
const startWithNode: PipelineEvent = { type: 'START', persist: true }
const stop: PipelineEvent = { type: 'STOP' }
const restart: PipelineEvent = { type: 'RESTART' }
const abandon: PipelineEvent = { type: 'ABANDON', isLate: false, cause: 'the caller went away' }
const running: ThreadEvent = { type: 'thread.running' }
const ended = (outcome: NonNullable<RunRecord['outcome']>): ThreadEvent => ({ type: 'thread.ended', end: { outcome } })

function take(machine: ReturnType<typeof rig>, step: Step): void {
  if (typeof step === 'number') machine.clock.increment(step)
  else if (step.type.startsWith('thread.')) machine.thread(step as ThreadEvent)
  else machine.actor.send(step as PipelineEvent)
}

describe('transitions', () => {
  const always: RestartPolicy = { always: { maxRestarts: 0 } }
  const onFailure: RestartPolicy = { onFailure: { maxRestarts: 0 } }
  const never: RestartPolicy = { never: {} }
  // Policy, state, how it is reached, what happens, the state after, the run after.
  const table: [RestartPolicy, string, Step[], Step, string, string | undefined][] = [
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
    [onFailure, 'starting', [startWithNode], ended('FAILED'), 'backingOff', 'run-1'],
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
  test.each(table)('%j, %s after %j, then %j: %s', (policy, from, before, then, to, run) => {
    const machine = rig(policy)
    for (const step of before) take(machine, step)
    if (from !== 'killed') expect(machine.state()).toBe(from)
    take(machine, then)
    expect(machine.state()).toBe(to)
    expect(machine.runId()).toBe(run)
  })
})

test('back-off doubles from 1 s to 30 s', () => {
  expect([0, 1, 2, 3, 4, 5, 6, 1000].map(backOff)).toEqual([1000, 2000, 4000, 8000, 16000, 30000, 30000, 30000])
})

test('each failure in a row waits longer, and maxRestarts ends the row', () => {
  const machine = rig({ onFailure: { maxRestarts: 3 } })
  for (const step of [start, running, ended('FAILED')]) take(machine, step)
  for (const wait of [1_000, 2_000, 4_000]) {
    take(machine, wait - 1)
    expect(machine.state()).toBe('backingOff')
    take(machine, 1)
    expect(machine.state()).toBe('starting')
    take(machine, running)
    take(machine, ended('FAILED'))
  }
  expect(machine.state()).toBe('stopped')
  expect(machine.runId()).toBe('run-4')
})

test('a healthy run ends the row of restarts', () => {
  const machine = rig({ onFailure: { maxRestarts: 1 } })
  for (const step of [start, running, ended('FAILED'), 1_000, running, HEALTHY_MS, ended('FAILED')]) take(machine, step)
  expect(machine.state()).toBe('backingOff')
  take(machine, 1_000)
  expect(machine.runId()).toBe('run-3')
})

test('a run that was not healthy does not', () => {
  const machine = rig({ onFailure: { maxRestarts: 1 } })
  for (const step of [start, running, ended('FAILED'), 1_000, running, HEALTHY_MS - 1, ended('FAILED')]) {
    take(machine, step)
  }
  expect(machine.state()).toBe('stopped')
})

test('new settings decide on the next restart', () => {
  const machine = rig({ never: {} })
  for (const step of [start, running]) take(machine, step)
  machine.actor.send({
    type: 'SETTINGS',
    policy: { restartPolicy: { always: { maxRestarts: 0 } }, instructionsTimeout: 100 },
  })
  take(machine, ended('COMPLETED'))
  expect(machine.state()).toBe('backingOff')
  for (const step of [1_000, running, stop, 100] as Step[]) take(machine, step)
  expect(machine.commands).toEqual(['stop', 'kill'])
})
