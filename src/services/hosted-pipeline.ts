/** A pipeline that lives on this node: its record, its actor, its runs, and the operations on it, one after the other. */
import { type ActorRefFrom, createActor, type SnapshotFrom } from 'xstate'
import type { ActorClock, pipeline as pipelineMachine } from '../actors/pipeline.ts'
import { type RunPlan, START_DEADLINE_MS } from '../actors/pipeline-run.ts'
import { ServiceError } from '../contract/errors.ts'
import type { Pipeline } from '../contract/types.ts'
import { unchanging } from '../contract/unchanging.ts'
import { checkPipelineConfig } from '../dataplane/engine/check.ts'
import { cpuProblem, type RunHandle } from '../dataplane/engine/run.ts'
import type { PipelineRecord } from '../store/pipelines.ts'
import type { RunRecord } from '../store/runs.ts'
import type { Store } from '../store/store.ts'
import { HostedRun } from './hosted-run.ts'
import { type Caller, OperationQueue } from './operation-queue.ts'
import { Patience } from './patience.ts'
import type { PipelineFact } from './pipeline-facts.ts'
import { tellFacts } from './pipeline-facts.ts'
import { type CheckedSettings, compareSettings, describeProblems, type SettingsRules } from './pipelines-settings.ts'
import { pipelineView } from './pipelines-view.ts'

/** Runs of a pipeline whose logs are kept. */
export const RUN_LOGS_KEPT = 10
/** Runs of a pipeline that are remembered. */
export const RUNS_KEPT = 100
/** How long a run may take to stop when the node closes, whatever its instructionsTimeout. */
export const CLOSE_MS = 10_000
/** The longest a timer of Node.js can be set to. */
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1

/** What a hosted pipeline needs of its node. */
export interface PipelineHost extends SettingsRules {
  readonly store: Store
  /** The machine, its run actor provided. */
  readonly machine: typeof pipelineMachine
  readonly clock: ActorClock
  newId(): string
  /** Milliseconds. */
  readonly telemetryInterval: number
  /** The CPU thread for a run whose pipeline names none. */
  leastLoadedCpu(): number
  /** Something a caller can see has changed. */
  changed(pipeline: HostedPipeline): void
  /** An operation on the pipeline is over: its answer is on the way. */
  answered(pipeline: HostedPipeline): void
  runPlanned(run: HostedRun): void
  runForgotten(runId: string): void
  /** A background write failed. */
  failed(error: unknown): void
  /** Something happened to a pipeline that a log should have. */
  readonly noted: (fact: PipelineFact) => void
}

type Snapshot = SnapshotFrom<typeof pipelineMachine>

export class HostedPipeline {
  #record: PipelineRecord
  /** What was shown last, and what it was made of: none of that is ever changed in place. */
  #lastView: { record: PipelineRecord; started: boolean; run: RunRecord | null; view: Pipeline } | undefined
  /** What the settings say; or why a pipeline written by another version cannot run here. */
  #config: CheckedSettings['config'] | null
  #problem = ''
  readonly #host: PipelineHost
  readonly #actor: ActorRefFrom<typeof pipelineMachine>
  /** Oldest first, at most RUN_LOGS_KEPT. */
  readonly #runs = new Map<string, HostedRun>()
  /** Ids of all remembered runs, oldest first. */
  readonly #runIds: string[]
  /** As last observed. */
  #seen: RunRecord | null
  #seenStarted = false
  #saved: Promise<void> = Promise.resolve()
  readonly #operations: OperationQueue
  #deleted = false

  /** `runs` are the remembered runs, all ended, oldest first. */
  constructor(
    host: PipelineHost,
    record: PipelineRecord,
    runs: readonly RunRecord[],
    config?: CheckedSettings['config'],
  ) {
    this.#host = host
    this.#record = record
    this.#operations = new OperationQueue({
      clock: host.clock,
      check: () => {
        if (this.#deleted) throw new ServiceError('NOT_FOUND', `no pipeline has the id ${this.id}`)
      },
      answered: () => host.answered(this),
    })
    this.#config = config ?? null
    if (config === undefined) {
      const check = checkPipelineConfig(record.settings.jsonConfig, host.registry)
      this.#config = check.config
      this.#problem = describeProblems(check.problems)
    }
    const lastRun = runs.at(-1) ?? null
    this.#seen = lastRun
    this.#runIds = runs.map(({ id }) => id)
    if (lastRun !== null) this.#keepRun(HostedRun.ended(lastRun, record.settings.defaultLoggingLevel))
    this.#actor = createActor(host.machine, {
      input: { policy: this.#policy(), lastRun, plan: () => this.#plan() },
      clock: host.clock,
    })
    this.#actor.subscribe((snapshot) => this.#observe(snapshot))
    this.#actor.on('runEnded', ({ record }) => this.#runEnded(record))
    tellFacts(this.#actor, (run) => ({ pipelineId: this.id, name: this.name, runId: run.id }), host.noted)
    this.#actor.start()
  }

  get id(): string {
    return this.#record.id
  }

  get name(): string {
    return this.#record.settings.name
  }

  get startsWithNode(): boolean {
    return this.#record.settings.startupPolicy.auto !== undefined
  }

  /** An operation is under way: changes are told when it is answered. */
  get busy(): boolean {
    return this.#operations.busy
  }

  get deleted(): boolean {
    return this.#deleted
  }

  /** The CPU thread its run works on now. */
  get cpu(): number | undefined {
    const { run } = this.#actor.getSnapshot().context
    return run === null || run.state === 'ENDED' ? undefined : run.cpu
  }

  get runIds(): readonly string[] {
    return this.#runIds
  }

  /** A run whose log is kept. */
  run(id: string): HostedRun | undefined {
    return this.#runs.get(id)
  }

  /** The record of a remembered run. */
  runRecord(id: string): RunRecord | undefined {
    const { run } = this.#actor.getSnapshot().context
    return run?.id === id ? run : (this.run(id)?.record ?? this.#host.store.runs.get(id))
  }

  view(): Pipeline {
    const snapshot = this.#actor.getSnapshot()
    const record = this.#record
    const started = !snapshot.matches('stopped')
    const { run } = snapshot.context
    const last = this.#lastView
    if (last !== undefined && last.record === record && last.started === started && last.run === run) return last.view
    const view = unchanging(pipelineView(record, started, run))
    this.#lastView = { record, started, run, view }
    return view
  }

  /**
   * Starts a run and waits until packets flow; returns its id. All of it, the end of the last run included, has START_DEADLINE_MS; a start
   * that is over for its caller, late or cancelled, is torn down or never made.
   */
  async start(call: Caller): Promise<string> {
    let awaited = 'other operations on it are under way'
    const late = () => `pipeline "${this.name}" was not running within ${START_DEADLINE_MS / 1000} s: ${awaited}`
    const start = async (patience: Patience): Promise<string> => {
      awaited = 'its last run is still stopping'
      const now = await this.#until((snapshot) => snapshot.context.run?.state !== 'STOPPING', patience)
      if (patience.error !== undefined) throw patience.error
      if (!now.matches('stopped')) throw alreadyStarted(this.name, now)
      if (this.#config === null) {
        throw new ServiceError('FAILED_PRECONDITION', `the stored configuration cannot run here: ${this.#problem}`)
      }
      awaited = 'the run was torn down'
      this.#actor.send({ type: 'START', persist: false })
      patience.onOver(({ code, message }) => {
        this.#actor.send({ type: 'ABANDON', isLate: code === 'DEADLINE_EXCEEDED', cause: message })
      })
      const runId = await this.#started('').catch((error: unknown) => {
        throw patience.error ?? error
      })
      if (patience.error === undefined) return runId
      // It was over for the caller while the disk took its time.
      this.#actor.send({ type: 'STOP' })
      throw patience.error
    }
    return await this.#operations.run(call, start, { milliseconds: START_DEADLINE_MS, late })
  }

  /** Starts without waiting, as the node starts; failures are the restart policy's. */
  startWithNode(): void {
    this.#actor.send({ type: 'START', persist: true })
  }

  /** Asks the run to stop, or gives up waiting for the next one; `runId` names the run that is meant. */
  stop(call: Caller, runId?: string): Promise<void> {
    return this.#operations.run(call, async () => {
      const snapshot = this.#actor.getSnapshot()
      const { run } = snapshot.context
      if (runId !== undefined && (run?.id !== runId || run.state === 'ENDED')) {
        throw new ServiceError('FAILED_PRECONDITION', `run ${runId} is already stopped`)
      }
      if (snapshot.matches('stopped')) {
        throw new ServiceError('FAILED_PRECONDITION', `pipeline "${this.name}" is already stopped`)
      }
      if (run?.state === 'STOPPING') {
        throw new ServiceError('FAILED_PRECONDITION', `pipeline "${this.name}" is already stopping (run ${run.id})`)
      }
      this.#actor.send({ type: 'STOP' })
      await this.#saved
    })
  }

  /** Replaces the settings; a run that is on takes them over, or is replaced with `forceRestart`. */
  update(call: Caller, next: CheckedSettings, forceRestart: boolean): Promise<Pipeline> {
    return this.#operations.run(call, async (patience) => {
      // A start that the restart policy made is awaited: only a run that runs can take settings over.
      const isSettled = (snapshot: Snapshot) => !snapshot.matches({ active: 'starting' })
      const { run, handle } = (await this.#until(isSettled, patience)).context
      if (patience.error !== undefined) throw patience.error
      const isRunning = run !== null && run.state === 'RUNNING' && handle !== null && this.#config !== null
      if (!isRunning) {
        await this.#takeSettings(next)
        return this.view()
      }
      const current = { settings: this.#record.settings, config: this.#config as CheckedSettings['config'] }
      const { restart, live } = compareSettings(current, next, run.cpu, this.#host.registry)
      if (restart.length > 0 && !forceRestart) {
        throw new ServiceError(
          'FAILED_PRECONDITION',
          `pipeline "${this.name}" is running and its run cannot take over a change of ${restart.join(', ')}: ` +
            'stop it first, or set forceRestart',
          { problems: restart.map((pointer) => ({ pointer, message: 'a change needs another run' })) },
        )
      }
      if (restart.length === 0 && live.length > 0) await this.#reconfigure(handle, next)
      await this.#takeSettings(next)
      if (restart.length > 0) {
        this.#actor.send({ type: 'RESTART' })
        await this.#started(run.id)
      }
      return this.view()
    })
  }

  /**
   * Stops the run if there is one, waits for its end, and removes the pipeline and its runs for good; once that is over for its caller,
   * nothing is removed. Returns its last state.
   */
  delete(call: Caller): Promise<Pipeline> {
    return this.#operations.run(call, async (patience) => {
      const isStopped = (snapshot: Snapshot) => snapshot.matches('stopped')
      if (!isStopped(this.#actor.getSnapshot())) this.#actor.send({ type: 'STOP' })
      // A run that does not stop in its time is killed: the end always comes.
      await this.#until(isStopped, patience)
      if (patience.error !== undefined) throw patience.error
      const last = this.view()
      await this.#saved
      await Promise.all([this.#host.store.pipelines.remove(this.id), this.#host.store.runs.remove(this.#runIds)])
      this.#deleted = true
      this.#actor.stop()
      for (const run of this.#runs.values()) run.forget()
      for (const id of this.#runIds) this.#host.runForgotten(id)
      return last
    })
  }

  /** Stops the run, waits for its end, and lets go; the pipeline starts again with the node only if its policy says so. */
  async close(): Promise<void> {
    this.#actor.send({ type: 'STOP' })
    const isStopped = (snapshot: Snapshot) => snapshot.matches('stopped')
    const { context } = await this.#until(isStopped, CLOSE_MS)
    context.handle?.kill(`the run did not stop within ${CLOSE_MS / 1000} s as the node closed`)
    await this.#until(isStopped)
    await this.#saved
    this.#actor.stop()
    for (const run of this.#runs.values()) run.abandon(new ServiceError('UNAVAILABLE', 'the node is closing'))
  }

  /** Waits until the run made after `previous` has packets flowing; returns its id, or throws why it has not. */
  async #started(previous: string): Promise<string> {
    const { context } = await this.#until(
      (snapshot) =>
        snapshot.context.run?.id !== previous && (snapshot.context.reachedRunning || snapshot.matches('stopped')),
    )
    await this.#saved
    const run = context.run as RunRecord
    if (context.reachedRunning) return run.id
    if (context.missedDeadline) throw new ServiceError('DEADLINE_EXCEEDED', run.error ?? 'not running in time')
    throw new ServiceError('ABORTED', `the run failed while starting: ${run.error ?? 'it was stopped'}`)
  }

  async #reconfigure(handle: RunHandle, next: CheckedSettings): Promise<void> {
    const timeout = this.#policy().instructionsTimeout
    let timer: unknown
    const late = new Promise<never>((_, reject) => {
      timer = this.#host.clock.setTimeout(() => {
        const message = `the run did not take the change over within ${timeout / 1000} s (instructionsTimeout)`
        reject(new ServiceError('DEADLINE_EXCEEDED', message))
      }, timeout)
    })
    try {
      await Promise.race([handle.reconfigure(next.config), late])
    } catch (error) {
      if (error instanceof ServiceError) throw error
      // A run that has ended meanwhile has nothing to take over; the settings are for the next one.
      if (this.#actor.getSnapshot().context.handle !== handle) return
      const cause = error instanceof Error ? error.message : String(error)
      throw new ServiceError('ABORTED', `the run did not take the change over: ${cause}`, { cause: error })
    } finally {
      this.#host.clock.clearTimeout(timer)
    }
  }

  async #takeSettings({ settings, config }: CheckedSettings): Promise<void> {
    const record = { ...this.#record, settings }
    await this.#host.store.pipelines.put(record)
    this.#record = record
    this.#config = config
    this.#problem = ''
    this.#actor.send({ type: 'SETTINGS', policy: this.#policy() })
    const run = this.#actor.getSnapshot().context.run
    if (run !== null) this.run(run.id)?.setLevel(settings.defaultLoggingLevel)
    this.#host.changed(this)
  }

  #policy() {
    const { restartPolicy, instructionsTimeout } = this.#record.settings
    return { restartPolicy, instructionsTimeout: Math.min(instructionsTimeout * 1000, LONGEST_TIMEOUT_MS) }
  }

  #plan(): RunPlan {
    const { settings } = this.#record
    const run = new HostedRun(this.id, this.#host.newId(), settings.defaultLoggingLevel)
    this.#runIds.push(run.id)
    this.#keepRun(run)
    this.#host.runPlanned(run)
    const cpu = settings.cpuPin ?? this.#host.leastLoadedCpu()
    const config = this.#config
    const problem =
      config === null ? this.#problem : this.#host.cpus.includes(cpu) ? '' : cpuProblem(cpu, this.#host.cpus)
    return {
      pipelineId: this.id,
      options:
        config === null || problem !== ''
          ? { runId: run.id, problem }
          : // Lines of every level come here, so that a change of defaultLoggingLevel takes effect on the run that is.
            { runId: run.id, config, cpu, performanceMode: settings.performanceMode, level: 'STATE' },
      onLog: (lines) => run.append(lines),
      now: Date.now,
    }
  }

  #keepRun(run: HostedRun): void {
    this.#runs.set(run.id, run)
    for (const [id, oldest] of this.#runs) {
      if (this.#runs.size <= RUN_LOGS_KEPT) break
      oldest.forget()
      this.#runs.delete(id)
    }
    const forgotten = this.#runIds.splice(0, Math.max(0, this.#runIds.length - RUNS_KEPT))
    for (const id of forgotten) this.#host.runForgotten(id)
    if (forgotten.length > 0) this.#save(() => this.#host.store.runs.remove(forgotten))
  }

  #observe(snapshot: Snapshot): void {
    const { run, handle } = snapshot.context
    const started = !snapshot.matches('stopped')
    const isChange = started !== this.#seenStarted || run?.id !== this.#seen?.id || run?.state !== this.#seen?.state
    this.#seenStarted = started
    if (run !== null) {
      const hosted = this.run(run.id)
      if (handle !== null) hosted?.launched(handle.region, this.#host.telemetryInterval)
      if (run.id !== this.#seen?.id || run.state !== this.#seen.state) {
        this.#seen = run
        this.#save(() => this.#host.store.runs.put(run))
      }
    }
    if (isChange) this.#host.changed(this)
  }

  #runEnded(record: RunRecord): void {
    this.#seen = record
    this.#save(() => this.#host.store.runs.put(record))
    this.run(record.id)?.end(record)
    this.#host.changed(this)
  }

  #save(write: () => Promise<void>): void {
    const written = write()
    this.#saved = Promise.all([this.#saved, written]).then(
      () => undefined,
      (error: unknown) => this.#host.failed(error),
    )
  }

  /** Resolves with the first snapshot, from now on, that satisfies `condition`; after `most` (ms, or a caller's patience) with the one that is. */
  #until(condition: (snapshot: Snapshot) => boolean, most?: number | Patience): Promise<Snapshot> {
    return new Promise((resolve) => {
      const now = this.#actor.getSnapshot()
      if (condition(now)) {
        resolve(now)
        return
      }
      const done = (snapshot: Snapshot) => {
        subscription.unsubscribe()
        callOff()
        resolve(snapshot)
      }
      const stay = () => done(this.#actor.getSnapshot())
      const subscription = this.#actor.subscribe((snapshot) => {
        if (condition(snapshot)) done(snapshot)
      })
      let callOff = () => {}
      if (most instanceof Patience) callOff = most.onOver(stay)
      else if (most !== undefined) {
        const timer = this.#host.clock.setTimeout(stay, most)
        callOff = () => this.#host.clock.clearTimeout(timer)
      }
    })
  }
}

function alreadyStarted(name: string, snapshot: Snapshot): ServiceError {
  const { run } = snapshot.context
  const how = snapshot.matches('backingOff') ? 'its next run starts in a moment' : `run ${run?.id}`
  return new ServiceError('FAILED_PRECONDITION', `pipeline "${name}" is already started (${how})`)
}
