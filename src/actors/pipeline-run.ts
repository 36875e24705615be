/** One run of a pipeline as a machine: starting, running, stopping, ended; with its deadlines. */
import { assign, fromCallback, sendTo, setup } from 'xstate'
import type { LogLine, RunEnd, RunHandle, RunOptions, RunPool } from '../dataplane/engine/run.ts'
import type { RunRecord } from '../store/runs.ts'
import { messageOf } from '../text/error-message.ts'

/** How long a run may take from launch until packets flow. */
export const START_DEADLINE_MS = 10_000
/** How long a killed thread may take to be gone before the run is given up. */
export const KILL_GRACE_MS = 5_000

/** What a run is started with. */
export interface RunPlan {
  pipelineId: string
  /** Or why the run cannot be launched, for people. */
  options: RunOptions | { runId: string; cpu?: number; problem: string }
  /** Gets the run's log lines, in order. */
  onLog(lines: LogLine[]): void
  /** The run has a thread; once at most. */
  onLaunch(handle: RunHandle): void
  /** Milliseconds since the epoch. */
  now(): number
}

export type ThreadCommand = { type: 'stop' } | { type: 'kill'; cause: string }
export type ThreadEvent =
  | { type: 'thread.launched'; handle: RunHandle }
  | { type: 'thread.running' }
  | { type: 'thread.ended'; end: RunEnd }

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
  /** Milliseconds. */
  stopTimeout: number
}

/** The effect of a run: its worker thread. Replaced in tests. */
function runThread(pool: RunPool) {
  return fromCallback<ThreadCommand, RunPlan, ThreadEvent>(({ input, sendBack, receive }) => {
    const { options } = input
    if ('problem' in options) {
      sendBack({ type: 'thread.ended', end: { outcome: 'FAILED', error: options.problem } })
      return
    }
    let handle: RunHandle
    try {
      handle = pool.start(options, (lines) => input.onLog(lines))
    } catch (error) {
      sendBack({ type: 'thread.ended', end: { outcome: 'FAILED', error: messageOf(error) } })
      return
    }
    let ended = false
    let released = false
    let cause: string | undefined
    sendBack({ type: 'thread.launched', handle })
    handle.running.then(
      () => {
        if (!released) sendBack({ type: 'thread.running' })
      },
      (error: unknown) => {
        cause = messageOf(error)
      },
    )
    handle.ended.then((end) => {
      ended = true
      if (released) return
      const error = end.error ?? (end.outcome === 'FAILED' ? cause : undefined)
      sendBack({ type: 'thread.ended', end: error === undefined ? end : { ...end, error } })
    })
    receive((command) => {
      if (command.type === 'stop') handle.stop()
      else handle.kill(command.cause)
    })
    return () => {
      released = true
      if (!ended) handle.kill('its pipeline is gone')
    }
  })
}

export const pipelineRun = setup({
  types: {
    context: {} as RunContext,
    events: {} as RunEvent,
    input: {} as RunPlan,
    output: {} as RunStatus,
  },
  actors: {
    thread: fromCallback<ThreadCommand, RunPlan, ThreadEvent>(() => {
      throw new Error('the machine needs a thread actor: pipelineRun.provide({ actors: { thread: runThread(pool) } })')
    }),
  },
  delays: {
    startDeadline: START_DEADLINE_MS,
    stopTimeout: ({ context }) => context.stopTimeout,
    killGrace: KILL_GRACE_MS,
  },
  actions: {
    noteHandle: assign((_, { handle }: { handle: RunHandle }) => ({ handle })),
    tellLaunch: ({ context }, { handle }: { handle: RunHandle }) => context.plan.onLaunch(handle),
    noteStopTimeout: assign(({ event }) => (event.type === 'STOP' ? { stopTimeout: event.timeout } : {})),
    noteRunning: assign({
      reachedRunning: true,
      record: ({ context }) => ({ ...context.record, state: 'RUNNING' as const }),
    }),
    noteStopping: assign({
      record: ({ context: { record } }) =>
        record.state === 'STOPPING' ? record : { ...record, state: 'STOPPING' as const },
    }),
    noteMissedDeadline: assign({ missedDeadline: true }),
    noteAbandonment: assign(({ event }) => (event.type === 'ABANDON' ? { missedDeadline: event.isLate } : {})),
    noteEnd: assign({
      record: ({ context, event }) => {
        const { record, plan } = context
        const end: RunEnd =
          event.type === 'thread.ended'
            ? event.end
            : { outcome: 'FAILED', error: 'its thread was killed and did not report its end' }
        return { ...record, state: 'ENDED' as const, endedAt: plan.now(), ...end }
      },
    }),
    stopThread: sendTo('thread', { type: 'stop' }),
    killNotRunning: sendTo('thread', {
      type: 'kill',
      cause: `the run was not running within ${START_DEADLINE_MS / 1000} s and was torn down`,
    }),
    kill: sendTo('thread', (_, { cause }: { cause: string }) => ({ type: 'kill', cause })),
    killNotStopping: sendTo('thread', ({ context }) => ({
      type: 'kill',
      cause: `the run did not stop within ${context.stopTimeout / 1000} s (instructionsTimeout) and was killed`,
    })),
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
    stopTimeout: 0,
  }),
  output: ({ context: { record, reachedRunning, missedDeadline } }) => ({
    record,
    handle: null,
    reachedRunning,
    missedDeadline,
  }),
  invoke: { id: 'thread', src: 'thread', input: ({ context }) => context.plan },
  on: {
    'thread.launched': {
      actions: [
        { type: 'noteHandle', params: ({ event }) => event },
        { type: 'tellLaunch', params: ({ event }) => event },
      ],
    },
    'thread.ended': '.ended',
  },
  initial: 'starting',
  states: {
    starting: {
      on: {
        'thread.running': 'running',
        STOP: { target: 'stopping', actions: 'noteStopTimeout' },
        ABANDON: {
          target: 'killing',
          actions: ['noteAbandonment', { type: 'kill', params: ({ event }) => event }],
        },
      },
      after: { startDeadline: { target: 'killing', actions: ['noteMissedDeadline', 'killNotRunning'] } },
    },
    running: {
      entry: 'noteRunning',
      on: {
        STOP: { target: 'stopping', actions: 'noteStopTimeout' },
        KILL: { target: 'killing', actions: { type: 'kill', params: ({ event }) => event } },
      },
    },
    stopping: {
      entry: ['noteStopping', 'stopThread'],
      after: { stopTimeout: { target: 'killing', actions: 'killNotStopping' } },
    },
    killing: {
      entry: 'noteStopping',
      after: { killGrace: 'ended' },
    },
    ended: { type: 'final', entry: 'noteEnd' },
  },
})

/** A run machine whose thread is one of `pool`. */
export function pooledRun(pool: RunPool) {
  return pipelineRun.provide({ actors: { thread: runThread(pool) } })
}
