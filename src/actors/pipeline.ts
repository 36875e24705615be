/** A pipeline as a machine: stopped, active with one run at a time, or waiting to start it again as its restart policy says. */
import { type ActorOptions, type AnyActorLogic, assign, emit, sendTo, setup } from 'xstate'
import type { RunHandle } from '../dataplane/engine/run.ts'
import type { RestartPolicy } from '../store/pipelines.ts'
import type { RunRecord } from '../store/runs.ts'
import { type Abandonment, pipelineRun, type RunOutput, type RunPlan } from './pipeline-run.ts'

/** What drives the deadlines of machines: the system's timers, or a simulated clock. */
export type ActorClock = NonNullable<ActorOptions<AnyActorLogic>['clock']>

export const BACK_OFF_FIRST_MS = 1_000
export const BACK_OFF_MOST_MS = 30_000
/** A run that lasted this long ends the row of restarts. */
export const HEALTHY_MS = 60_000

/** What the machine needs of the settings; a change reaches it as SETTINGS. */
export interface PipelinePolicy {
  restartPolicy: RestartPolicy
  /** Milliseconds. */
  instructionsTimeout: number
}

export interface PipelineInput {
  policy: PipelinePolicy
  /** The last run, ended, if there was one. */
  lastRun: RunRecord | null
  /** Plans the next run, with a new id, from the settings as they are then. Never throws. */
  plan(): RunPlan
}

export type PipelineEvent =
  /** `persist`: a run that fails while starting counts as a failure for the restart policy, instead of going back to stopped. */
  | { type: 'START'; persist: boolean }
  | { type: 'STOP' }
  /** Nobody waits for the start any more: the run is torn down, unless it is running. */
  | ({ type: 'ABANDON' } & Abandonment)
  /** Ends the run and starts the next one at once. */
  | { type: 'RESTART' }
  | { type: 'SETTINGS'; policy: PipelinePolicy }

/** What happens to a pipeline's runs, told as it happens; each carries the run it is about. */
export type PipelineEmitted =
  /** Packets flow; `restarts`: how many restarts in a row led here. */
  | { type: 'runStarted'; record: RunRecord; restarts: number }
  /** A run is over; with a restart no snapshot shows it. */
  | { type: 'runEnded'; record: RunRecord }
  /** The policy makes another run after `delay` ms: number `attempt` of the row, of `most` (0: without limit). */
  | { type: 'restartPlanned'; record: RunRecord; attempt: number; most: number; delay: number }
  /** The policy has no restart left. */
  | { type: 'gaveUp'; record: RunRecord; restarts: number }
  /** A stop came while the next run was waited for. */
  | { type: 'restartCancelled'; record: RunRecord }

export interface PipelineContext {
  policy: PipelinePolicy
  plan: () => RunPlan
  next: RunPlan | null
  /** The run that is, or the last one. */
  run: RunRecord | null
  /** The thread of the run that is. */
  handle: RunHandle | null
  reachedRunning: boolean
  missedDeadline: boolean
  persist: boolean
  /** What was asked of the run that is. */
  intent: 'none' | 'stop' | 'restart'
  /** Restarts in a row. */
  restarts: number
}

/** Milliseconds before restart number `restarts` + 1 of a row. */
export function backOff(restarts: number): number {
  return Math.min(BACK_OFF_MOST_MS, BACK_OFF_FIRST_MS * 2 ** Math.min(restarts, 30))
}

/** What of the policy applies to a run that ended so. */
function applying(policy: RestartPolicy, outcome: RunRecord['outcome']): { maxRestarts: number } | undefined {
  return policy.always ?? (outcome === 'FAILED' ? policy.onFailure : undefined)
}

/** Whether the policy wants another run after this end, the row being `restarts` long. */
export function wantsRestart(policy: RestartPolicy, outcome: RunRecord['outcome'], restarts: number): boolean {
  const applies = applying(policy, outcome)
  return applies !== undefined && (applies.maxRestarts === 0 || restarts < applies.maxRestarts)
}

/** Whether the policy is to be asked at all: nobody asked for this end, and the run counts. */
function isLeftToPolicy({ intent, persist }: PipelineContext, reachedRunning: boolean): boolean {
  return intent === 'none' && (reachedRunning || persist)
}

const outputOf = ({ event }: { event: { output: RunOutput } }) => event.output
const atEnd = [
  { type: 'noteEnd', params: outputOf },
  { type: 'tellEnd', params: outputOf },
] as const

export const pipeline = setup({
  types: {
    context: {} as PipelineContext,
    events: {} as PipelineEvent,
    input: {} as PipelineInput,
    emitted: {} as PipelineEmitted,
  },
  actors: { run: pipelineRun },
  delays: {
    backOff: ({ context }) => backOff(context.restarts),
    healthy: HEALTHY_MS,
  },
  guards: {
    toBackOff: ({ context }, { record, reachedRunning }: RunOutput) =>
      isLeftToPolicy(context, reachedRunning) &&
      wantsRestart(context.policy.restartPolicy, record.outcome, context.restarts),
    /** Asked where no restart is wanted: the policy would have made one, were there any left. */
    hasNoneLeft: ({ context }, { record, reachedRunning }: RunOutput) =>
      isLeftToPolicy(context, reachedRunning) && applying(context.policy.restartPolicy, record.outcome) !== undefined,
    isRunning: ({ context }) => context.run?.state === 'RUNNING',
    isStopping: ({ context }) => context.run?.state === 'STOPPING',
    toRestart: ({ context }) => context.intent === 'restart',
  },
  actions: {
    noteEnd: assign((_, { record, reachedRunning }: RunOutput) => ({ run: record, reachedRunning })),
    tellEnd: emit((_, { record }: RunOutput) => ({ type: 'runEnded' as const, record })),
    tellStart: emit(({ context }) => ({
      type: 'runStarted' as const,
      record: context.run as RunRecord,
      restarts: context.restarts,
    })),
    tellRestart: emit(({ context }, { record }: RunOutput) => ({
      type: 'restartPlanned' as const,
      record,
      attempt: context.restarts + 1,
      most: applying(context.policy.restartPolicy, record.outcome)?.maxRestarts ?? 0,
      delay: backOff(context.restarts),
    })),
    tellGivenUp: emit(({ context }, { record }: RunOutput) => ({
      type: 'gaveUp' as const,
      record,
      restarts: context.restarts,
    })),
    tellCancelled: emit(({ context }) => ({ type: 'restartCancelled' as const, record: context.run as RunRecord })),
    takeSettings: assign(({ event }) => (event.type === 'SETTINGS' ? { policy: event.policy } : {})),
    noteStart: assign(({ event }) => (event.type === 'START' ? { persist: event.persist, restarts: 0 } : {})),
    planRun: assign(({ context }) => {
      const next = context.plan()
      const { runId: id, cpu } = next.options
      const run: RunRecord = {
        id,
        pipelineId: next.pipelineId,
        state: 'STARTING',
        startedAt: next.now(),
        ...(cpu === undefined ? {} : { cpu }),
      }
      return { next, run, handle: null, reachedRunning: false, missedDeadline: false, intent: 'none' as const }
    }),
    toStop: assign({ intent: 'stop' }),
    toRestart: assign({ intent: 'restart' }),
    stopRun: sendTo('run', ({ context }) => ({ type: 'STOP', timeout: context.policy.instructionsTimeout })),
    abandonRun: sendTo('run', (_, { isLate, cause }: Abandonment) => ({ type: 'ABANDON', isLate, cause })),
    /** The run was asked for by a person: what follows its start is theirs to see. */
    noteRestart: assign({ persist: false, restarts: 0 }),
    countRestart: assign({ restarts: ({ context }) => context.restarts + 1, persist: true }),
    resetRestarts: assign({ restarts: 0 }),
    releaseRun: assign({ handle: null, next: null }),
  },
}).createMachine({
  id: 'pipeline',
  context: ({ input }) => ({
    policy: input.policy,
    plan: input.plan,
    next: null,
    run: input.lastRun,
    handle: null,
    reachedRunning: false,
    missedDeadline: false,
    persist: false,
    intent: 'none',
    restarts: 0,
  }),
  on: { SETTINGS: { actions: 'takeSettings' } },
  initial: 'stopped',
  states: {
    stopped: {
      on: { START: { target: 'active', actions: 'noteStart' } },
    },
    active: {
      entry: 'planRun',
      exit: 'releaseRun',
      invoke: {
        id: 'run',
        src: 'run',
        input: ({ context }) => context.next as RunPlan,
        onSnapshot: {
          actions: assign(({ event }) => {
            const { record, handle, reachedRunning, missedDeadline } = event.snapshot.context
            return { run: record, handle, reachedRunning, missedDeadline }
          }),
        },
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
        RESTART: { actions: ['toRestart', 'stopRun'] },
      },
      initial: 'starting',
      states: {
        starting: {
          always: [
            { guard: 'isRunning', target: 'running' },
            { guard: 'isStopping', target: 'stopping' },
          ],
          on: {
            ABANDON: { actions: ['toStop', { type: 'abandonRun', params: ({ event }) => event }] },
          },
        },
        running: {
          entry: 'tellStart',
          after: { healthy: { actions: 'resetRestarts' } },
          always: { guard: 'isStopping', target: 'stopping' },
        },
        stopping: {},
      },
    },
    backingOff: {
      on: {
        STOP: { target: 'stopped', actions: 'tellCancelled' },
        RESTART: { target: 'active', actions: 'noteRestart' },
      },
      after: { backOff: { target: 'active', actions: 'countRestart' } },
    },
  },
})
