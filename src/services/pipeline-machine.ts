/** A pipeline's machine as the operations use it: they ask it for something and wait for what comes of it. Holds no state of its own. */
import { type ActorRefFrom, createActor, type SnapshotFrom } from 'xstate'
import {
  backOff,
  type PipelineEvent,
  type PipelineInput,
  type pipeline,
  type ReconfigureOutcome,
} from '../actors/pipeline.ts'
import type { RunStatus } from '../actors/pipeline-run.ts'
import type { Timers } from '../contract/clock.ts'
import { ServiceError } from '../contract/errors.ts'
import type { PipelineConfig } from '../dataplane/engine/config.ts'
import type { RunRecord } from '../store/runs.ts'
import { messageOf } from '../text/error-message.ts'
import type { Patience } from './patience.ts'
import type { PipelineHost } from './pipeline-host.ts'

type Snapshot = SnapshotFrom<typeof pipeline>

export class PipelineMachine {
  /** For who listens to what it tells. */
  readonly actor: ActorRefFrom<typeof pipeline>
  readonly #clock: Timers

  /** Started by `actor.start()`, once those who listen do. */
  constructor({ machine, clock }: Pick<PipelineHost, 'machine' | 'clock'>, input: PipelineInput) {
    this.actor = createActor(machine, { input, clock })
    this.#clock = clock
  }

  /** Another object after everything that has happened to it, the same one in between. */
  get state(): object {
    return this.#snapshot
  }

  get isStopped(): boolean {
    return this.#snapshot.matches('stopped')
  }

  get isRunning(): boolean {
    return this.#snapshot.matches({ active: 'running' })
  }

  /** The run that is, or the last one. */
  get run(): RunRecord | null {
    return this.#snapshot.context.run?.record ?? null
  }

  /** Restarts in a row that the policy has made, and when the next one is due, in milliseconds since the epoch, if one is waited for. */
  get restarts(): { count: number; nextAt: number | undefined } {
    const { restarts, run } = this.#snapshot.context
    const endedAt = this.#snapshot.matches('backingOff') ? run?.record.endedAt : undefined
    return { count: restarts, nextAt: endedAt === undefined ? undefined : endedAt + backOff(restarts) }
  }

  /** Throws FAILED_PRECONDITION unless the pipeline, called `name`, is stopped. */
  requireStopped(name: string): void {
    if (!this.isStopped) throw this.alreadyStarted(name)
  }

  /** Throws FAILED_PRECONDITION when a run of the pipeline, called `name`, is starting or running. */
  requireNotOn(name: string): void {
    const state = this.run?.state
    if (state === 'STARTING' || state === 'RUNNING') throw this.alreadyStarted(name)
  }

  /** Why a pipeline, called `name`, is not started again. */
  alreadyStarted(name: string): ServiceError {
    const how = this.#snapshot.matches('backingOff') ? 'its next run starts in a moment' : `run ${this.run?.id}`
    return new ServiceError('FAILED_PRECONDITION', `pipeline "${name}" is already started (${how})`)
  }

  /** Throws FAILED_PRECONDITION when the pipeline, called `name`, is stopped, or its stop was asked for. */
  requireStoppable(name: string): void {
    if (this.isStopped) throw new ServiceError('FAILED_PRECONDITION', `pipeline "${name}" is already stopped`)
    // One that ends by itself, its last commands under way, is stopped all the same: none follows it.
    if (this.run?.state === 'STOPPING' && this.#snapshot.context.intent === 'stop') {
      throw new ServiceError('FAILED_PRECONDITION', `pipeline "${name}" is already stopping (run ${this.run.id})`)
    }
  }

  /** Asks for what is not answered. */
  send(event: Exclude<PipelineEvent, { type: 'RECONFIGURE' }>): void {
    this.actor.send(event)
  }

  /** Stops the run, after `milliseconds` by force with `cause`, and waits for its end. */
  async end(milliseconds: number, cause: string): Promise<void> {
    this.actor.send({ type: 'STOP' })
    const timer = this.#clock.setTimeout(() => this.#snapshot.context.run?.handle?.kill(cause), milliseconds)
    await this.untilStopped()
    this.#clock.clearTimeout(timer)
  }

  /** The machine goes; a run that is still on is killed. */
  stop(): void {
    this.actor.stop()
  }

  /** Waits until no run is stopping. */
  untilEnded(patience: Patience): Promise<Snapshot> {
    return this.#until(({ context }) => context.run?.record.state !== 'STOPPING', patience)
  }

  /** Waits until no run is starting: a start that the restart policy made, say. */
  untilSettled(patience: Patience): Promise<Snapshot> {
    return this.#until((snapshot) => !snapshot.matches({ active: 'starting' }), patience)
  }

  untilStopped(patience?: Patience): Promise<Snapshot> {
    return this.#until((snapshot) => snapshot.matches('stopped'), patience)
  }

  /**
   * Resolves with the run made after the run `previous` once packets flow through it, or with the last one once the pipeline is stopped:
   * `idOfStarted` tells them apart.
   */
  async startedAfter(previous: string | undefined): Promise<RunStatus> {
    const { context } = await this.#until((snapshot) => {
      const { run } = snapshot.context
      return snapshot.matches('stopped') || (run !== null && run.record.id !== previous && run.reachedRunning)
    })
    return context.run as RunStatus
  }

  /**
   * Has the run take `config` over, which differs from what it has in live fields only. Resolves also when no run is running, or it ends
   * meanwhile. Throws ABORTED with the cause when the run refuses, which goes on; DEADLINE_EXCEEDED when it does not answer in time, and is
   * ended then.
   */
  async reconfigure(config: PipelineConfig): Promise<void> {
    const outcome = await new Promise<ReconfigureOutcome>((resolve) => {
      const subscription = this.actor.on('reconfigureEnded', (ended) => {
        if (ended.config !== config) return
        subscription.unsubscribe()
        resolve(ended.outcome)
      })
      this.actor.send({ type: 'RECONFIGURE', config })
    })
    if (outcome.kind === 'timed out') {
      const within = `within ${outcome.timeout / 1000} s (instructionsTimeout)`
      throw new ServiceError('DEADLINE_EXCEEDED', `the run did not take the change over ${within} and was ended`)
    }
    if (outcome.kind === 'refused') {
      const { cause } = outcome
      throw new ServiceError('ABORTED', `the run did not take the change over: ${messageOf(cause)}`, { cause })
    }
  }

  get #snapshot(): Snapshot {
    return this.actor.getSnapshot()
  }

  /** Resolves with the first snapshot, from now on, that satisfies `condition`; once `patience` is over with the one that is then. */
  #until(condition: (snapshot: Snapshot) => boolean, patience?: Patience): Promise<Snapshot> {
    return new Promise((resolve) => {
      const now = this.#snapshot
      if (condition(now)) {
        resolve(now)
        return
      }
      let callOff = () => {}
      const done = (snapshot: Snapshot) => {
        subscription.unsubscribe()
        callOff()
        resolve(snapshot)
      }
      const subscription = this.actor.subscribe((snapshot) => {
        if (condition(snapshot)) done(snapshot)
      })
      if (patience !== undefined) callOff = patience.onOver(() => done(this.#snapshot))
    })
  }
}

/**
 * The id of a run that was to come after `previous`, if packets flow through it, or did. Throws DEADLINE_EXCEEDED when it missed its
 * deadline, ABORTED with the cause when it failed or was not made.
 */
export function idOfStarted(
  { record, reachedRunning, missedDeadline }: RunStatus,
  previous: string | undefined,
): string {
  if (record.id === previous) throw stoppedBefore()
  if (reachedRunning) return record.id
  if (missedDeadline) throw new ServiceError('DEADLINE_EXCEEDED', record.error ?? 'not running in time')
  throw new ServiceError('ABORTED', `the run failed while starting: ${record.error ?? 'it was stopped'}`)
}

/** Why a run that was asked for is not made. */
export function stoppedBefore(): ServiceError {
  return new ServiceError('ABORTED', 'the pipeline was stopped before its next run began')
}
