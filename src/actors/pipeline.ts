/** A pipeline as a machine: stopped, active with one run at a time, or waiting to start it again as its restart policy says. */
import { assign, emit, enqueueActions, fromPromise, sendTo, setup } from 'xstate'
import type { RestartPolicy, StartupPolicy } from '../contract/types.ts'
import type { PipelineConfig } from '../dataplane/engine/config.ts'
import { type RunHandle, RunOver } from '../dataplane/engine/run.ts'
import type { RunRecord } from '../store/runs.ts'
import { type Abandonment, pipelineRun, type RunStatus } from './pipeline-run.ts'
import type { RunPlan } from './run-thread.ts'

const MIN_BACK_OFF_MS = 1_000
const MAX_BACK_OFF_MS = 30_000
/** A run that lasted this long ends the row of restarts. */
export const HEALTHY_MS = 60_000

/** What the machine needs of the settings; a change reaches it as SETTINGS. */
export interface PipelinePolicy {
  restartPolicy: RestartPolicy
  startupPolicy: StartupPolicy
  /** Milliseconds. */
  instructionsTimeout: number
}

export interface PipelineInput {
  policy: PipelinePolicy
  /** The last run, ended, if there was one. */
  lastRun: RunRecord | null
  /** Plans the next run, with a new id, from the settings as they are then; `isAwaited`: somebody waits for its start. Never throws. */
  plan(isAwaited: boolean): RunPlan
}

export type PipelineEvent =
  /** Somebody waits for it: a run that fails while starting is theirs to see, and none follows it. */
  | { type: 'START' }
  /** The node is up: starts where the startup policy says so. A run that fails while starting is the restart policy's. */
  | { type: 'NODE_UP' }
  | { type: 'STOP' }
  /** Nobody waits for the start any more: the run is torn down, unless it is running. */
  | ({ type: 'ABANDON' } & Abandonment)
  /** Ends the run and starts the next one at once; a pipeline that is stopped, or whose run is stopping, stays as it is. */
  | { type: 'RESTART' }
  /** Other settings are on their way to the disk: no run is begun by itself with those that there are, until SETTINGS or SETTINGS_KEPT. */
  | { type: 'SETTINGS_COMING' }
  | { type: 'SETTINGS'; policy: PipelinePolicy }
  /** They did not reach it: the pipeline goes on with those that there are. */
  | { type: 'SETTINGS_KEPT' }
  /** Asks the run that is running to take `config` over, which differs in live fields only; answered by one `reconfigureEnded`. */
  | { type: 'RECONFIGURE'; config: PipelineConfig }

/** How a RECONFIGURE ended. */
export type ReconfigureOutcome =
  | { kind: 'taken over' }
  /** The run goes on with what it had; `cause`: why. */
  | { kind: 'refused'; cause: unknown }
  /** No answer within `timeout` ms: nobody knows what the run has, and it is ended. */
  | { kind: 'timed out'; timeout: number }
  /** No run is running that could be asked, or it was stopped or ended meanwhile. */
  | { kind: 'not running' }

/** What happens to a pipeline's runs, told as it happens; each carries the run it is about. */
export type PipelineEmitted =
  /** A run has begun, runs, or is stopping. */
  | { type: 'runChanged'; record: RunRecord }
  /** Packets flow; `restarts`: how many restarts in a row led here. */
  | { type: 'runStarted'; record: RunRecord; restarts: number }
  /** A run is over; with a restart no snapshot shows it. */
  | { type: 'runEnded'; record: RunRecord }
  /** The policy makes another run after `delay` ms: number `attempt` of the row, of `most` (0: without limit). */
  | { type: 'restartPlanned'; record: RunRecord; attempt: number; most: number; delay: number }
  /** The policy has no restart left. */
  | { type: 'gaveUp'; record: RunRecord; restarts: number }
  /** The row of restarts ended by a run that lasted HEALTHY_MS. */
  | { type: 'restartsForgotten'; record: RunRecord }
  /** The next run was waited for, and a stop came, or settings whose policy wants none after such an end. */
  | { type: 'restartCancelled'; record: RunRecord; by: 'stop' | 'settings' }
  /** A RECONFIGURE with this very `config` is over. */
  | { type: 'reconfigureEnded'; config: PipelineConfig; outcome: ReconfigureOutcome }

/** A configuration that the run is asked to take over. */
export interface Change {
  readonly config: PipelineConfig
  /** Milliseconds that the run has for its answer. */
  readonly timeout: number
}

export interface PipelineContext {
  policy: PipelinePolicy
  plan: PipelineInput['plan']
  /** The run that is, or the last one, as its machine told it last; this machine takes it as it is. */
  run: RunStatus | null
  /** What the run is being asked to take over. */
  change: Change | null
  /** A run that fails while starting is the restart policy's. */
  persist: boolean
  /** Other settings are on their way to the disk. */
  areSettingsComing: boolean
  /** What was asked of the run that is. */
  intent: 'none' | 'stop' | 'restart'
  /** Restarts in a row. */
  restarts: number
}

/** Milliseconds before restart number `restarts` + 1 of a row. */
export function backOff(restarts: number): number {
  return Math.min(MAX_BACK_OFF_MS, MIN_BACK_OFF_MS * 2 ** Math.min(restarts, 30))
}

/** What of the policy applies to a run that ended so. */
function applying(policy: RestartPolicy, outcome: RunRecord['outcome']): { maxRestarts: number } | undefined {
  return policy.always ?? (outcome === 'FAILED' ? policy.onFailure : undefined)
}

/** Whether the policy wants another run after this end, the row being `restarts` long. */
function wantsRestart(policy: RestartPolicy, outcome: RunRecord['outcome'], restarts: number): boolean {
  const applies = applying(policy, outcome)
  return applies !== undefined && (applies.maxRestarts === 0 || restarts < applies.maxRestarts)
}

function recordOf({ run }: PipelineContext): RunRecord {
  return (run as RunStatus).record
}

/** Whether the policy is to be asked at all: nobody asked for this end, and the run counts. */
function isLeftToPolicy({ intent, persist }: PipelineContext, reachedRunning: boolean): boolean {
  return intent === 'none' && (reachedRunning || persist)
}

/** Whether the policy, as it is now, wants the run that is waited for. */
function isStillWanted(context: PipelineContext): boolean {
  return wantsRestart(context.policy.restartPolicy, recordOf(context).outcome, context.restarts)
}

/** Asks the thread of a run to take a configuration over. Replaced in tests. */
const reconfigureRun = fromPromise<void, { handle: RunHandle; change: Change }>(
  async ({ input: { handle, change } }) => await handle.reconfigure(change.config, change.timeout),
)

const outputOf = ({ event }: { event: { output: RunStatus } }) => event.output
const contextOf = ({ event }: { event: { snapshot: { context: RunStatus } } }) => event.snapshot.context
const atEnd = [
  { type: 'noteRun', params: outputOf },
  { type: 'tellEnd', params: outputOf },
] as const

const restartRun = { actions: ['toRestart', 'stopRun'] } as const

export const pipeline = setup({
  types: {
    context: {} as PipelineContext,
    events: {} as PipelineEvent,
    input: {} as PipelineInput,
    emitted: {} as PipelineEmitted,
    children: {} as { run: 'run'; reconfiguration: 'reconfigure' },
  },
  actors: { run: pipelineRun, reconfigure: reconfigureRun },
  delays: {
    backOff: ({ context }) => backOff(context.restarts),
    healthy: HEALTHY_MS,
    instructionsTimeout: ({ context }) => context.change?.timeout ?? 0,
  },
  guards: {
    toBackOff: ({ context }, { record, reachedRunning }: RunStatus) =>
      isLeftToPolicy(context, reachedRunning) &&
      wantsRestart(context.policy.restartPolicy, record.outcome, context.restarts),
    /** Asked where no restart is wanted: the policy would have made one, were there any left. */
    hasNoneLeft: ({ context }, { record, reachedRunning }: RunStatus) =>
      isLeftToPolicy(context, reachedRunning) && applying(context.policy.restartPolicy, record.outcome) !== undefined,
    /** The policy has changed since the wait began: there is none left, or it wants none after such an end. */
    isUsedUp: ({ context }) =>
      !isStillWanted(context) && applying(context.policy.restartPolicy, recordOf(context).outcome) !== undefined,
    isUnwanted: ({ context }) => !isStillWanted(context),
    /** The next run is wanted, and it is known with which settings. */
    isNextKnown: ({ context }) => !context.areSettingsComing && isStillWanted(context),
    startsWithNode: ({ context }) => context.policy.startupPolicy.auto !== undefined,
    isRunning: ({ context }) => context.run?.record.state === 'RUNNING',
    isStopping: ({ context }) => context.run?.record.state === 'STOPPING',
    toRestart: ({ context }) => context.intent === 'restart',
    hasChanged: ({ context }, { record }: RunStatus) => record !== context.run?.record,
    /** The end of the run is on its way here, and decides. */
    isRunOver: (_, { error }: { error: unknown }) => error instanceof RunOver,
  },
  actions: {
    noteRun: assign((_, run: RunStatus) => ({ run })),
    tellRun: emit((_, { record }: RunStatus) => ({ type: 'runChanged' as const, record })),
    tellEnd: emit((_, { record }: RunStatus) => ({ type: 'runEnded' as const, record })),
    tellStart: emit(({ context }) => ({
      type: 'runStarted' as const,
      record: recordOf(context),
      restarts: context.restarts,
    })),
    tellRestart: emit(({ context }, { record }: RunStatus) => ({
      type: 'restartPlanned' as const,
      record,
      attempt: context.restarts + 1,
      most: applying(context.policy.restartPolicy, record.outcome)?.maxRestarts ?? 0,
      delay: backOff(context.restarts),
    })),
    tellGivenUp: emit(({ context }, { record }: RunStatus) => ({
      type: 'gaveUp' as const,
      record,
      restarts: context.restarts,
    })),
    tellCancelled: emit(({ context }, { by }: { by: 'stop' | 'settings' }) => ({
      type: 'restartCancelled' as const,
      record: recordOf(context),
      by,
    })),
    awaitSettings: assign({ areSettingsComing: true }),
    takeSettings: assign((_, { policy }: { policy: PipelinePolicy }) => ({ policy, areSettingsComing: false })),
    keepSettings: assign({ areSettingsComing: false }),
    noteStart: assign({ persist: false, restarts: 0 }),
    noteNodeUp: assign({ persist: true, restarts: 0 }),
    beginRun: assign({ intent: 'none' }),
    toStop: assign({ intent: 'stop' }),
    toRestart: assign({ intent: 'restart' }),
    stopRun: sendTo('run', ({ context }) => ({ type: 'STOP', timeout: context.policy.instructionsTimeout })),
    abandonRun: sendTo('run', (_, { isLate, cause }: Abandonment) => ({ type: 'ABANDON', isLate, cause })),
    /** The run was asked for by a person: what follows its start is theirs to see. */
    noteRestart: assign({ persist: false, restarts: 0 }),
    countRestart: assign({ restarts: ({ context }) => context.restarts + 1, persist: true }),
    resetRestarts: enqueueActions(({ context, enqueue }) => {
      if (context.restarts === 0) return
      enqueue.assign({ restarts: 0 })
      enqueue.emit({ type: 'restartsForgotten', record: recordOf(context) })
    }),
    noteChange: assign(({ context }, { config }: { config: PipelineConfig }) => ({
      change: { config, timeout: context.policy.instructionsTimeout },
    })),
    endChange: enqueueActions(({ context, enqueue }, outcome: ReconfigureOutcome) => {
      if (context.change === null) return
      enqueue.emit({ type: 'reconfigureEnded', config: context.change.config, outcome })
      enqueue.assign({ change: null })
    }),
    killRun: sendTo('run', ({ context }) => ({
      type: 'KILL',
      cause: `the run did not take a change over within ${(context.change?.timeout ?? 0) / 1000} s (instructionsTimeout) and was ended`,
    })),
    tellNotRunning: emit((_, { config }: { config: PipelineConfig }) => ({
      type: 'reconfigureEnded' as const,
      config,
      outcome: { kind: 'not running' as const },
    })),
    tellBusy: emit((_, { config }: { config: PipelineConfig }) => ({
      type: 'reconfigureEnded' as const,
      config,
      outcome: { kind: 'refused' as const, cause: new Error('the run is being asked to take another change over') },
    })),
  },
}).createMachine({
  id: 'pipeline',
  context: ({ input }) => ({
    policy: input.policy,
    plan: input.plan,
    run:
      input.lastRun === null
        ? null
        : { record: input.lastRun, handle: null, reachedRunning: false, missedDeadline: false },
    change: null,
    persist: false,
    areSettingsComing: false,
    intent: 'none',
    restarts: 0,
  }),
  on: {
    SETTINGS_COMING: { actions: 'awaitSettings' },
    SETTINGS: { actions: { type: 'takeSettings', params: ({ event }) => event } },
    SETTINGS_KEPT: { actions: 'keepSettings' },
    RECONFIGURE: { actions: { type: 'tellNotRunning', params: ({ event }) => event } },
  },
  initial: 'stopped',
  states: {
    stopped: {
      on: {
        START: { target: 'active', actions: 'noteStart' },
        NODE_UP: { guard: 'startsWithNode', target: 'active', actions: 'noteNodeUp' },
      },
    },
    active: {
      entry: 'beginRun',
      invoke: {
        id: 'run',
        src: 'run',
        input: ({ context }) => context.plan(!context.persist),
        onSnapshot: [
          {
            guard: { type: 'hasChanged', params: contextOf },
            actions: [
              { type: 'noteRun', params: contextOf },
              { type: 'tellRun', params: contextOf },
            ],
          },
          { actions: { type: 'noteRun', params: contextOf } },
        ],
        onDone: [
          {
            guard: 'toRestart',
            target: 'active',
            reenter: true,
            actions: [...atEnd, 'noteRestart'],
          },
          {
            guard: { type: 'toBackOff', params: outputOf },
            target: 'backingOff',
            actions: [...atEnd, { type: 'tellRestart', params: outputOf }],
          },
          {
            guard: { type: 'hasNoneLeft', params: outputOf },
            target: 'stopped',
            actions: [...atEnd, { type: 'tellGivenUp', params: outputOf }],
          },
          { target: 'stopped', actions: [...atEnd] },
        ],
      },
      on: {
        STOP: { actions: ['toStop', 'stopRun'] },
      },
      initial: 'starting',
      states: {
        starting: {
          always: [
            { guard: 'isRunning', target: 'running' },
            { guard: 'isStopping', target: 'stopping' },
          ],
          on: {
            RESTART: restartRun,
            ABANDON: { actions: ['toStop', { type: 'abandonRun', params: ({ event }) => event }] },
          },
        },
        running: {
          entry: 'tellStart',
          after: { healthy: { actions: 'resetRestarts' } },
          always: { guard: 'isStopping', target: 'stopping' },
          exit: { type: 'endChange', params: { kind: 'not running' } },
          on: { RESTART: restartRun },
          initial: 'steady',
          states: {
            steady: {
              on: {
                RECONFIGURE: {
                  target: 'reconfiguring',
                  actions: { type: 'noteChange', params: ({ event }) => event },
                },
              },
            },
            reconfiguring: {
              invoke: {
                id: 'reconfiguration',
                src: 'reconfigure',
                input: ({ context: { run, change } }) => ({
                  handle: run?.handle as RunHandle,
                  change: change as Change,
                }),
                onDone: { target: 'steady', actions: { type: 'endChange', params: { kind: 'taken over' } } },
                onError: [
                  { guard: { type: 'isRunOver', params: ({ event }) => event } },
                  {
                    target: 'steady',
                    actions: { type: 'endChange', params: ({ event }) => ({ kind: 'refused', cause: event.error }) },
                  },
                ],
              },
              after: {
                instructionsTimeout: {
                  target: 'steady',
                  actions: [
                    'killRun',
                    {
                      type: 'endChange',
                      params: ({ context }) => ({ kind: 'timed out', timeout: context.change?.timeout ?? 0 }),
                    },
                  ],
                },
              },
              on: { RECONFIGURE: { actions: { type: 'tellBusy', params: ({ event }) => event } } },
            },
          },
        },
        stopping: {},
      },
    },
    backingOff: {
      // Never so as the wait begins, but after SETTINGS.
      always: [
        {
          guard: 'isUsedUp',
          target: 'stopped',
          actions: { type: 'tellGivenUp', params: ({ context }) => context.run as RunStatus },
        },
        { guard: 'isUnwanted', target: 'stopped', actions: { type: 'tellCancelled', params: { by: 'settings' } } },
      ],
      on: {
        STOP: { target: 'stopped', actions: { type: 'tellCancelled', params: { by: 'stop' } } },
        RESTART: { target: 'active', actions: 'noteRestart' },
      },
      initial: 'waiting',
      states: {
        waiting: { after: { backOff: 'due' } },
        due: { always: { guard: 'isNextKnown', target: '#pipeline.active', actions: 'countRestart' } },
      },
    },
  },
})
