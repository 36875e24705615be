/** One run of a pipeline as a machine: starting, running, stopping, what follows its end, ended; with its deadlines. */
import { assign, enqueueActions, fromCallback, fromPromise, sendTo, setup, spawnChild } from 'xstate'
import type { Hook } from '../dataplane/engine/lifecycle.ts'
import type { RunEnd, RunHandle, RunPool } from '../dataplane/engine/run.ts'
import type { RunRecord } from '../store/runs.ts'
import { messageOf } from '../text/error-message.ts'
import { type RunPlan, runThread, type ThreadCommand, type ThreadEvent } from './run-thread.ts'

/** How long a run may take from launch until packets flow; of a start that nobody waits for, without the time that it stands in line. */
export const START_DEADLINE_MS = 10_000
/** How long a killed thread may take to be gone before the run is given up; the processes of its commands likewise. */
export const KILL_GRACE_MS = 5_000
/** The system's time was set where it went further than this from what truly passed during a run, milliseconds. */
const CLOCK_SET_MS = 1_000

/** Why nobody waits for a start any more. */
export interface Abandonment {
  /** Its time was up; otherwise the caller went away. */
  isLate: boolean
  /** In words. */
  cause: string
}

export type RunEvent =
  /** `timeout` in milliseconds: how long the run may take to stop before its thread is killed. */
  | { type: 'STOP'; timeout: number }
  | ({ type: 'ABANDON' } & Abandonment)
  /** Ends a run that runs by force: FAILED with `cause`. */
  | { type: 'KILL'; cause: string }
  | ThreadEvent

/** What a run tells of itself, while it is on and as its output once it is over. Replaced, never changed in place. */
export interface RunStatus {
  /** Another object for each change of its state, the same one in between. */
  readonly record: RunRecord
  /** Its thread; null before there is one and once the run is over. */
  readonly handle: RunHandle | null
  /** Packets have flowed. */
  readonly reachedRunning: boolean
  /** It was killed because it was not running within the time that there was for its start. */
  readonly missedDeadline: boolean
}

export interface RunContext extends RunStatus {
  plan: RunPlan
  /** When packets must flow, as the plan's `elapsed` has it. */
  startBy: number
  /** When it began, as the plan's `uptime` has it. */
  begunAt: number
  /** Since when it has waited for its turn to have a thread, likewise. */
  queuedAt: number
  /** Milliseconds for all of its stop, the commands of its end included. */
  stopTimeout: number
  /** When those are over, likewise; null before it stops. */
  stopBy: number | null
  /** It was given a thread. */
  hasThread: boolean
  /** Why it ends though nobody has asked: one of its commands failed. */
  failure: string | null
  /** How it ended, once that is known. */
  end: RunEnd
}

/** The commands of one hook, under way. */
const hookCommands = fromPromise<void, { plan: RunPlan; hook: Hook }>(async ({ input: { plan, hook }, signal }) => {
  await plan.hooks?.run(hook, signal)
})

/** The end of what the commands have left. */
const leftProcesses = fromPromise<void, RunPlan>(async ({ input: { hooks } }) => {
  await hooks?.end()
})

const NOT_RUNNING = `the run was not running within ${START_DEADLINE_MS / 1000} s and was torn down`
const UNREPORTED = 'its thread was killed and did not report its end'

function notStopped({ stopTimeout }: RunContext): string {
  return `the run did not stop within ${stopTimeout / 1000} s (instructionsTimeout) and was killed`
}

/** When a run that ends now began and ended, both by the system's time as it is now: between them is what truly passed, whoever set the clock. */
function timesOf({ record: { startedAt }, plan, begunAt }: RunContext): Pick<RunRecord, 'startedAt' | 'endedAt'> {
  const endedAt = plan.now()
  const lasted = Math.round(plan.uptime() - begunAt)
  const isSet = Math.abs(endedAt - startedAt - lasted) > CLOCK_SET_MS
  return { startedAt: isSet ? endedAt - lasted : startedAt, endedAt }
}

const planOf = ({ context }: { context: RunContext }) => context.plan
const cause = ({ event }: { event: { error: unknown } }) => messageOf(event.error)

/** Without a thread there is nothing to kill or to stop: what follows the end comes at once. */
const stopStart = [
  { guard: 'hasThread', target: 'stopping.halting', actions: 'noteStopTimeout' },
  { target: 'following', actions: ['noteStopTimeout', { type: 'noteEnd', params: { outcome: 'STOPPED' } }] },
] as const

/** It is not running in time. */
const missStart = [
  {
    guard: 'hasThread',
    target: '#pipeline-run.killing',
    actions: ['noteMissedDeadline', { type: 'kill', params: { cause: NOT_RUNNING } }],
  },
  {
    target: '#pipeline-run.following',
    actions: ['noteMissedDeadline', { type: 'noteEnd', params: { outcome: 'FAILED', error: NOT_RUNNING } }],
  },
] as const

export const pipelineRun = setup({
  types: {
    context: {} as RunContext,
    events: {} as RunEvent,
    input: {} as RunPlan,
    output: {} as RunStatus,
    children: {} as { thread: 'thread' },
  },
  actors: {
    thread: fromCallback<ThreadCommand, RunPlan, ThreadEvent>(() => {
      throw new Error('the machine needs a thread actor: pipelineRun.provide({ actors: { thread: runThread(pool) } })')
    }),
    hookCommands,
    leftProcesses,
  },
  delays: {
    restOfStart: ({ context: { plan, startBy } }) => Math.max(0, startBy - plan.elapsed()),
    stopTimeout: ({ context }) => context.stopTimeout,
    killGrace: KILL_GRACE_MS,
    restOfStop: ({ context: { plan, stopBy, stopTimeout } }) =>
      stopBy === null ? stopTimeout : Math.max(0, stopBy - plan.elapsed()),
  },
  guards: {
    has: ({ context }, hook: Hook) => context.plan.hooks?.has(hook) ?? false,
    hasHooks: ({ context }) => context.plan.hooks !== undefined,
    hasThread: ({ context }) => context.hasThread,
    isAwaited: ({ context }) => context.plan.isAwaited,
  },
  actions: {
    launch: spawnChild('thread', { id: 'thread', input: planOf }),
    noteThread: assign({ hasThread: true }),
    noteLine: assign({ queuedAt: ({ context }) => context.plan.elapsed() }),
    noteTurn: assign({
      startBy: ({ context: { plan, startBy, queuedAt } }) => startBy + (plan.isAwaited ? 0 : plan.elapsed() - queuedAt),
    }),
    noteHandle: assign((_, { handle }: { handle: RunHandle }) => ({ handle })),
    tellLaunch: ({ context }, { handle }: { handle: RunHandle }) => context.plan.onLaunch(handle),
    noteStopTimeout: assign(({ context, event }) =>
      event.type === 'STOP' ? { stopTimeout: event.timeout, stopBy: context.plan.elapsed() + event.timeout } : {},
    ),
    /** One of its commands failed: it ends by itself. */
    noteFailure: assign(({ context }, failure: string) => ({
      failure,
      stopBy: context.plan.elapsed() + context.stopTimeout,
    })),
    noteRunning: assign({
      reachedRunning: true,
      record: ({ context }) => ({ ...context.record, state: 'RUNNING' as const }),
    }),
    noteStopping: assign({
      record: ({ context: { record } }) =>
        record.state === 'STOPPING' ? record : { ...record, state: 'STOPPING' as const },
    }),
    /** The thread has until then to be gone, and the commands after it as long again. */
    noteKill: assign({ stopBy: ({ context }) => context.plan.elapsed() + 2 * KILL_GRACE_MS }),
    noteMissedDeadline: assign({ missedDeadline: true }),
    noteAbandonment: assign(({ event }) => (event.type === 'ABANDON' ? { missedDeadline: event.isLate } : {})),
    noteEnd: assign(({ context: { failure } }, end: RunEnd) => ({
      handle: null,
      end: failure === null ? end : { outcome: 'FAILED' as const, error: failure },
    })),
    end: assign({
      record: ({ context }) => ({
        ...context.record,
        state: 'ENDED' as const,
        ...timesOf(context),
        ...context.end,
      }),
    }),
    stopThread: sendTo('thread', { type: 'stop' }),
    releaseThread: sendTo('thread', { type: 'go' }),
    /** Should the thread not report its end, that is all there is to say of it. */
    kill: enqueueActions(({ context: { failure }, enqueue }, { cause }: { cause: string }) => {
      enqueue.assign({ end: { outcome: 'FAILED', error: `${failure ?? cause}; ${UNREPORTED}` } })
      enqueue.sendTo('thread', { type: 'kill', cause })
    }),
  },
}).createMachine({
  id: 'pipeline-run',
  context: ({ input }) => ({
    plan: input,
    record: {
      id: input.options.runId,
      pipelineId: input.pipelineId,
      state: 'STARTING',
      startedAt: input.now(),
      ...(input.options.cpu === undefined ? {} : { cpu: input.options.cpu }),
    },
    handle: null,
    reachedRunning: false,
    missedDeadline: false,
    startBy: input.elapsed() + START_DEADLINE_MS,
    begunAt: input.uptime(),
    queuedAt: input.elapsed(),
    stopTimeout: input.stopTimeout,
    stopBy: null,
    hasThread: false,
    failure: null,
    end: { outcome: 'FAILED', error: UNREPORTED },
  }),
  output: ({ context: { record, reachedRunning, missedDeadline } }) => ({
    record,
    handle: null,
    reachedRunning,
    missedDeadline,
  }),
  on: {
    'thread.launched': {
      actions: [
        { type: 'noteHandle', params: ({ event }) => event },
        { type: 'tellLaunch', params: ({ event }) => event },
      ],
    },
  },
  initial: 'starting',
  states: {
    starting: {
      on: {
        STOP: [...stopStart],
        ABANDON: [
          {
            guard: 'hasThread',
            target: 'killing',
            actions: ['noteAbandonment', { type: 'kill', params: ({ event }) => event }],
          },
          {
            target: 'following',
            actions: [
              'noteAbandonment',
              { type: 'noteEnd', params: ({ event }) => ({ outcome: 'FAILED', error: event.cause }) },
            ],
          },
        ],
        'thread.ended': { target: 'following', actions: { type: 'noteEnd', params: ({ event }) => event.end } },
      },
      initial: 'beginning',
      states: {
        beginning: {
          always: [{ guard: { type: 'has', params: 'on_setup' }, target: 'settingUp' }, { target: 'queued' }],
        },
        settingUp: {
          invoke: {
            src: 'hookCommands',
            input: ({ context: { plan } }) => ({ plan, hook: 'on_setup' }),
            onDone: 'queued',
            onError: {
              target: '#pipeline-run.following',
              actions: { type: 'noteEnd', params: (given) => ({ outcome: 'FAILED', error: cause(given) }) },
            },
          },
          after: { restOfStart: [...missStart] },
        },
        /** Others start, as many as may at once. */
        queued: {
          entry: ['noteThread', 'noteLine', 'launch'],
          on: { 'thread.turn': { target: 'building', actions: 'noteTurn' } },
          after: { restOfStart: { ...missStart[0], guard: 'isAwaited' } },
        },
        building: {
          on: { 'thread.built': 'preparing', 'thread.running': '#pipeline-run.running' },
          after: { restOfStart: [...missStart] },
        },
        preparing: {
          invoke: {
            src: 'hookCommands',
            input: ({ context: { plan } }) => ({ plan, hook: 'pre_start' }),
            onDone: { target: 'launching', actions: 'releaseThread' },
            onError: {
              target: '#pipeline-run.stopping.halting',
              actions: { type: 'noteFailure', params: cause },
            },
          },
          after: { restOfStart: [...missStart] },
        },
        launching: {
          on: { 'thread.running': '#pipeline-run.running' },
          after: { restOfStart: [...missStart] },
        },
      },
    },
    running: {
      entry: 'noteRunning',
      on: {
        STOP: { target: 'stopping', actions: 'noteStopTimeout' },
        KILL: { target: 'killing', actions: { type: 'kill', params: ({ event }) => event } },
        'thread.ended': { target: 'following', actions: { type: 'noteEnd', params: ({ event }) => event.end } },
      },
      initial: 'beginning',
      states: {
        beginning: {
          always: [{ guard: { type: 'has', params: 'post_start' }, target: 'announcing' }, { target: 'steady' }],
        },
        announcing: {
          invoke: {
            src: 'hookCommands',
            input: ({ context: { plan } }) => ({ plan, hook: 'post_start' }),
            onDone: 'steady',
            onError: { target: '#pipeline-run.stopping', actions: { type: 'noteFailure', params: cause } },
          },
        },
        steady: {},
      },
    },
    stopping: {
      entry: 'noteStopping',
      on: {
        'thread.ended': { target: 'following', actions: { type: 'noteEnd', params: ({ event }) => event.end } },
      },
      after: {
        stopTimeout: {
          target: 'killing',
          actions: { type: 'kill', params: ({ context }) => ({ cause: notStopped(context) }) },
        },
      },
      initial: 'beginning',
      states: {
        beginning: {
          always: [{ guard: { type: 'has', params: 'pre_stop' }, target: 'quitting' }, { target: 'halting' }],
        },
        quitting: {
          invoke: {
            src: 'hookCommands',
            input: ({ context: { plan } }) => ({ plan, hook: 'pre_stop' }),
            // It stops all the same.
            onDone: 'halting',
            onError: 'halting',
          },
        },
        halting: { entry: 'stopThread' },
      },
    },
    killing: {
      entry: ['noteStopping', 'noteKill'],
      on: {
        'thread.ended': { target: 'following', actions: { type: 'noteEnd', params: ({ event }) => event.end } },
      },
      after: { killGrace: 'following' },
    },
    /** The thread is gone, or never was. */
    following: {
      entry: 'noteStopping',
      initial: 'beginning',
      states: {
        beginning: {
          always: [
            { guard: { type: 'has', params: 'post_stop' }, target: 'cleaning' },
            { guard: 'hasHooks', target: 'ending' },
            { target: '#pipeline-run.ended' },
          ],
        },
        cleaning: {
          invoke: {
            src: 'hookCommands',
            input: ({ context: { plan } }) => ({ plan, hook: 'post_stop' }),
            onDone: 'ending',
            onError: 'ending',
          },
          after: { restOfStop: 'ending' },
        },
        ending: {
          invoke: {
            src: 'leftProcesses',
            input: planOf,
            onDone: '#pipeline-run.ended',
            onError: '#pipeline-run.ended',
          },
          after: { killGrace: '#pipeline-run.ended' },
        },
      },
    },
    ended: { type: 'final', entry: 'end' },
  },
})

/** A run machine whose thread is one of `pool`. */
export function pooledRun(pool: RunPool) {
  return pipelineRun.provide({ actors: { thread: runThread(pool) } })
}
