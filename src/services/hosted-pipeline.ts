/** A pipeline that lives on this node: its settings, its machine, its runs, joined; and the operations on it. */
import { isDeepStrictEqual } from 'node:util'
import { START_DEADLINE_MS } from '../actors/pipeline-run.ts'
import type { RunPlan } from '../actors/run-thread.ts'
import { asServiceError, ServiceError } from '../contract/errors.ts'
import type { Sink } from '../contract/handlers.ts'
import type { CapturedPackets, ExplainUpdateResponse, OpenCaptureStreamRequest, Pipeline } from '../contract/types.ts'
import type { PipelineConfig } from '../dataplane/engine/config.ts'
import type { Changes } from '../dataplane/engine/diff.ts'
import type { LogLine } from '../dataplane/engine/run.ts'
import type { PipelineRecord } from '../store/pipelines.ts'
import type { RunRecord } from '../store/runs.ts'
import { LineSelection } from '../telemetry/log-filters.ts'
import { messageOf } from '../text/error-message.ts'
import { notOn } from './capture-stream.ts'
import { HostedRun } from './hosted-run.ts'
import { type OperationCaller, OperationQueue } from './operation-queue.ts'
import type { Patience } from './patience.ts'
import { PipelineChanges } from './pipeline-changes.ts'
import { tellFacts } from './pipeline-facts.ts'
import type { PipelineHost } from './pipeline-host.ts'
import { idOfStarted, PipelineMachine, stoppedBefore } from './pipeline-machine.ts'
import { PipelinePersistence } from './pipeline-persistence.ts'
import { PipelineRuns } from './pipeline-runs.ts'
import {
  type CheckedSettings,
  policyOf,
  requireRunnable,
  type StoredConfig,
  storedConfig,
} from './pipelines-settings.ts'
import { type PipelineAnswer, PipelineView } from './pipelines-view.ts'
import { planRun } from './run-plan.ts'
import { changeView, compareSettings, restartNeeded } from './settings-change.ts'
import { WaitingStarts } from './waiting-starts.ts'

/** How long a run without commands may take to stop when the node closes, whatever its instructionsTimeout. */
const CLOSE_MS = 10_000

/** The change of a configuration that cannot run here: no run has it. */
const UNREADABLE: Changes = { live: [], restart: [{ pointer: '/jsonConfig', reason: 'FIXED' }] }

export class HostedPipeline {
  #record: PipelineRecord
  #stored: StoredConfig
  /** What runs are made with while an update has the run replaced, before it is stored. */
  #candidate: (CheckedSettings & { readonly follows: string }) | undefined
  #deleted = false
  #closing = false
  readonly #host: PipelineHost
  readonly #machine: PipelineMachine
  readonly #runs: PipelineRuns
  readonly #operations: OperationQueue
  readonly #starts = new WaitingStarts()
  readonly #persistence: PipelinePersistence
  readonly #changes: PipelineChanges
  readonly #view = new PipelineView()

  /** `runs` are the remembered runs, all ended, oldest first; `config` is what the settings say, where that is known already. */
  constructor(host: PipelineHost, record: PipelineRecord, runs: readonly RunRecord[], config?: PipelineConfig) {
    this.#host = host
    this.#record = record
    this.#stored = config === undefined ? storedConfig(record, host) : { config }
    this.#persistence = new PipelinePersistence(host.store, (error) =>
      host.failed('a change could not be stored', error),
    )
    this.#changes = new PipelineChanges({
      view: () => this.view(),
      isHeld: () => this.#persistence.isAwaited,
      tell: (pipeline) => host.changed(pipeline),
    })
    this.#operations = new OperationQueue({
      clock: host.clock,
      check: () => this.#check(),
      answered: () => this.#changes.answered(),
    })
    const { runLogs } = host
    this.#runs = new PipelineRuns({
      ids: runs.map(({ id }) => id),
      logs: runLogs.runs,
      earlier: (id) => {
        const run = host.store.runs.get(id)
        return run === undefined ? undefined : HostedRun.ended(run, runLogs.stored(id))
      },
      onError: (error) => host.failed('the log of a run could not be removed from the disk', error),
    })
    const lastRun = runs.at(-1) ?? null
    const input = { policy: policyOf(record.settings), lastRun, plan: (isAwaited: boolean) => this.#plan(isAwaited) }
    this.#machine = new PipelineMachine(host, input)
    const { actor } = this.#machine
    this.#persistence.follow(actor)
    actor.on('runEnded', ({ record }) => this.#runs.end(record))
    for (const type of ['runChanged', 'runEnded', 'restartCancelled', 'restartsForgotten'] as const) {
      actor.on(type, () => this.#changes.note())
    }
    actor.on('runStarted', ({ record, restarts }) => {
      if (restarts > 0) this.run(record.id)?.noteRestart({ attempt: restarts })
    })
    tellFacts(actor, (run) => ({ pipelineId: this.id, name: this.name, runId: run.id }), host.noted)
    actor.start()
  }

  get id(): string {
    return this.#record.id
  }

  get name(): string {
    return this.#record.settings.name
  }

  /** The CPU thread its run works on now. */
  get cpu(): number | undefined {
    const run = this.#machine.run
    return run?.state === 'ENDED' ? undefined : run?.cpu
  }

  /** The run that is on now. */
  get currentRun(): HostedRun | undefined {
    const run = this.#machine.run
    return run === null || run.state === 'ENDED' ? undefined : this.run(run.id)
  }

  /** Ids of all remembered runs, oldest first. */
  get runIds(): readonly string[] {
    return this.#runs.ids
  }

  /** Of those whose logs are kept. */
  get loggedRunIds(): readonly string[] {
    return this.#runs.logged
  }

  /** A run whose log is kept. */
  run(id: string): HostedRun | undefined {
    return this.#runs.get(id)
  }

  /** Copies packets of a run that is on to `sink`. */
  capture(request: OpenCaptureStreamRequest, sink: Sink<CapturedPackets>): void {
    const run = this.run(request.runId)
    if (run === undefined) throw notOn(request.runId)
    run.followPackets(request, sink, this.#host)
  }

  /** The record of a remembered run. */
  runRecord(id: string): RunRecord | undefined {
    const run = this.#machine.run
    return run?.id === id ? run : (this.run(id)?.record ?? this.#host.store.runs.get(id))
  }

  /** The pipeline as callers see it. */
  view(): Pipeline {
    return this.answer().pipeline
  }

  /** The same object until something in it changes. */
  answer(): PipelineAnswer {
    return this.#view.show(this.#record, this.#machine.state, () => {
      const { isStopped, run, restarts } = this.#machine
      return { record: this.#record, started: !isStopped, run, restarts: restarts.count, nextAt: restarts.nextAt }
    })
  }

  /**
   * Starts a run and waits until packets flow; returns its id. All of it, the end of the last run included, has START_DEADLINE_MS; a start
   * that is over for its caller, late or cancelled, is torn down or never made. Throws ABORTED when it is stopped meanwhile,
   * FAILED_PRECONDITION as soon as a run is on that is not its own, RESOURCE_EXHAUSTED when runs have all threads.
   */
  async start(call: OperationCaller): Promise<string> {
    this.#operations.atOnce(call, () => this.#machine.requireNotOn(this.name))
    const caller = this.#starts.add(call)
    let awaited = 'other operations on it are under way'
    const late = () => `pipeline "${this.name}" was not running within ${START_DEADLINE_MS / 1000} s: ${awaited}`
    const start = async (patience: Patience): Promise<string> => {
      awaited = 'its last run is still stopping'
      await this.#machine.untilEnded(patience)
      if (patience.error !== undefined) throw patience.error
      this.#check()
      this.#machine.requireStopped(this.name)
      requireRunnable(this.#stored)
      const full = this.#host.noThread()
      if (full !== undefined) throw new ServiceError('RESOURCE_EXHAUSTED', full)
      const previous = this.#machine.run?.id
      awaited = 'the run was torn down'
      // From now on a stop is one of the run.
      this.#starts.begun(caller)
      this.#machine.send({ type: 'START' })
      this.#starts.callOff(this.#machine.alreadyStarted(this.name))
      patience.onOver(({ code, message }) => {
        this.#machine.send({ type: 'ABANDON', isLate: code === 'DEADLINE_EXCEEDED', cause: message })
      })
      const runId = await this.#started(previous).catch((error: unknown) => {
        throw patience.error ?? error
      })
      if (patience.error === undefined) return runId
      // It was over for the caller while the disk took its time.
      this.#machine.send({ type: 'STOP' })
      throw patience.error
    }
    return await this.#operations.run(caller, start, { milliseconds: START_DEADLINE_MS, late })
  }

  /** The node is up: starts, where the startup policy says so, without anybody waiting. */
  async nodeUp(): Promise<void> {
    const { run } = this.#machine
    // Settings that are on their way to the disk are for this run.
    await this.#operations.idle()
    // A run that began or ended meanwhile was somebody's, and so was its end.
    if (this.#machine.run === run && !this.#closing && !this.#deleted) this.#machine.send({ type: 'NODE_UP' })
  }

  /**
   * Asks the run to stop, or gives up waiting for the next one, whatever operation is under way: a start, or an update that has the run
   * replaced, fails then. `runId` names the run that is meant.
   */
  async stop(call: OperationCaller, runId?: string): Promise<void> {
    this.#operations.atOnce(call, () => {
      const { run } = this.#machine
      if (runId !== undefined && (run?.id !== runId || run.state === 'ENDED')) {
        throw new ServiceError('FAILED_PRECONDITION', `run ${runId} is already stopped`)
      }
      // Who names a run does not mean one that is to come after it.
      if (runId !== undefined || !this.#starts.callOff(stoppedBefore())) this.#machine.requireStoppable(this.name)
      this.#machine.send({ type: 'STOP' })
    })
    await this.#persistence.written()
    this.#changes.answered()
  }

  /** Replaces the settings; a run that is on takes them over, or is replaced with `forceRestart`. */
  update(call: OperationCaller, next: CheckedSettings, forceRestart: boolean): Promise<Pipeline> {
    return this.#operations.run(call, async (patience) => {
      await this.#machine.untilSettled(patience)
      if (patience.error !== undefined) throw patience.error
      const { run, isRunning } = this.#machine
      const { config } = this.#stored
      if (run === null || config === null || !isRunning) {
        await this.#takeSettings(next)
        return this.view()
      }
      const current = { settings: this.#record.settings, config }
      const { restart, live } = compareSettings(current, next, run.cpu, this.#host.registry)
      if (restart.length > 0) {
        if (!forceRestart) throw restartNeeded(this.name, restart)
        await this.#replaceRun(run.id, next)
      } else if (live.some(({ reason }) => reason === 'LIVE')) {
        await this.#machine.reconfigure(next.config)
        await this.#takeSettings(next).catch((error: unknown) => this.#takeBack(config, error))
      } else {
        await this.#takeSettings(next)
      }
      return this.view()
    })
  }

  /** What an update to `next` would ask of the run that is on; without one nothing, whatever changes. */
  explainUpdate(next: CheckedSettings): ExplainUpdateResponse {
    const { run, isRunning } = this.#machine
    const running = run !== null && isRunning
    const { config } = this.#stored
    const { restart, live } =
      config === null
        ? UNREADABLE
        : compareSettings(
            { settings: this.#record.settings, config },
            next,
            running ? run.cpu : undefined,
            this.#host.registry,
          )
    return { running, live: live.map(changeView), restart: restart.map(changeView) }
  }

  /**
   * Stops the run if there is one, as `stop` does, waits for its end, and removes the pipeline and its runs for good; once that is over for
   * its caller, nothing is removed. Returns its last state.
   */
  async delete(call: OperationCaller): Promise<Pipeline> {
    const stop = () => {
      this.#starts.callOff(stoppedBefore())
      this.#machine.send({ type: 'STOP' })
    }
    this.#operations.atOnce(call, stop)
    return await this.#operations.run(call, async (patience) => {
      this.#machine.send({ type: 'STOP' })
      // A run that does not stop in its time is killed: the end always comes.
      await this.#machine.untilStopped(patience)
      if (patience.error !== undefined) throw patience.error
      const last = this.view()
      await this.#persistence.remove(this.id, this.runIds)
      this.#deleted = true
      this.#machine.stop()
      await this.#runs.forget()
      for (const id of this.runIds) this.#host.runForgotten(id)
      return last
    })
  }

  /** Stops the run, waits for its end, and lets go; the pipeline starts again with the node only if its policy says so. */
  async close(): Promise<void> {
    this.#closing = true
    const milliseconds = this.#closeTime()
    await this.#machine.end(milliseconds, `the run did not stop within ${milliseconds / 1000} s as the node closed`)
    await this.#operations.idle()
    await this.#persistence.written()
    this.#machine.stop()
    await this.#runs.abandon(closing())
  }

  /** How long the run may take to stop when the node closes, in milliseconds: commands have all of the time that they have otherwise. */
  #closeTime(): number {
    if (this.#stored.config?.lifecycle === undefined) return CLOSE_MS
    return policyOf(this.#record.settings).instructionsTimeout
  }

  /** Throws why nothing can be asked of the pipeline any more. */
  #check(): void {
    if (this.#deleted) throw new ServiceError('NOT_FOUND', `no pipeline has the id ${this.id}`)
    if (this.#closing) throw closing()
  }

  /**
   * The id of the run made after the run `previous`, once packets flow and that is on disk; throws why they do not. A run that the disk
   * does not take down is stopped.
   */
  async #started(previous: string | undefined): Promise<string> {
    const run = await this.#machine.startedAfter(previous)
    await this.#persistence.written()
    const id = idOfStarted(run, previous)
    const unwritten = this.#persistence.whyUnwritten(id)
    if (unwritten === undefined) return id
    this.#machine.send({ type: 'STOP' })
    throw unwritten
  }

  /**
   * Has a run with the settings `next` take the place of the run `previous`; they are stored once packets flow. When that fails they stay as
   * they were, and the pipeline is stopped.
   */
  async #replaceRun(previous: string, next: CheckedSettings): Promise<void> {
    this.#candidate = { ...next, follows: previous }
    // Where all threads have runs, a start that comes meanwhile would have its thread, and the pipeline none.
    const giveBack = this.#host.keepPlace(previous)
    try {
      this.#machine.send({ type: 'RESTART' })
      // What follows the new run, should it end before they are stored, is theirs to say.
      this.#machine.send({ type: 'SETTINGS', policy: policyOf(next.settings) })
      await this.#started(previous)
      await this.#takeSettings(next)
    } catch (error) {
      this.#machine.send({ type: 'STOP' })
      this.#machine.send({ type: 'SETTINGS', policy: policyOf(this.#record.settings) })
      throw notReplaced(error)
    } finally {
      giveBack()
      this.#candidate = undefined
    }
  }

  /**
   * Has the run go back to `config`, which is stored, from one that could not be; throws why that was, `error`. A run that does not go back is
   * stopped.
   */
  async #takeBack(config: PipelineConfig, error: unknown): Promise<never> {
    try {
      await this.#machine.reconfigure(config)
      this.currentRun?.keepChange()
    } catch (cause) {
      this.#machine.send({ type: 'STOP' })
      throw notTakenBack(error, cause)
    }
    throw error
  }

  async #takeSettings({ settings, authorship, config }: CheckedSettings): Promise<void> {
    const { id, createdAt } = this.#record
    const record = { id, settings, createdAt, ...authorship }
    this.#machine.send({ type: 'SETTINGS_COMING' })
    try {
      await this.#persistence.putSettings(record)
    } catch (error) {
      // A run that was made with them goes, and none follows it.
      if (this.#candidate !== undefined) this.#machine.send({ type: 'STOP' })
      this.#machine.send({ type: 'SETTINGS_KEPT' })
      throw error
    }
    const before = this.#stored.config?.kpis
    this.#record = record
    this.#stored = { config }
    this.#machine.send({ type: 'SETTINGS', policy: policyOf(settings) })
    // One that stops has what it ran with.
    const run = this.#machine.isRunning ? this.currentRun : undefined
    const { selection } = run ?? {}
    if (selection !== undefined) {
      selection.level = settings.defaultLoggingLevel
      selection.filters = config.logFilters
    }
    if (!isDeepStrictEqual(before, config.kpis)) run?.setKpis(config.kpis)
    run?.keepChange()
    this.#changes.note()
  }

  /** A line of the run that is on has met a log filter which ends it: as if its operator had. */
  #stopByFilter(runId: string, { level, component, message }: LogLine): void {
    if (!this.#isOn(runId)) return
    const text = `stopped by a log filter, for this line of ${component === '' ? 'the run' : component}: ${level} ${message}`
    // Once the line itself is in the log.
    queueMicrotask(() => {
      // One of several lines that come together stops it.
      if (!this.#isOn(runId)) return
      this.run(runId)?.append([{ timestamp: Date.now(), level: 'STATE', component: '', message: text, fields: {} }])
      this.#machine.send({ type: 'STOP' })
    })
  }

  /** Whether a run is starting or running. */
  #isOn(runId: string): boolean {
    const { run } = this.#machine
    return run?.id === runId && (run.state === 'STARTING' || run.state === 'RUNNING')
  }

  #plan(isAwaited: boolean): RunPlan {
    const { settings } = this.#candidate ?? this.#record
    const stored = this.#candidate ?? this.#stored
    const id = this.#host.newId()
    const about = () => ({ pipelineId: this.id, name: this.name, runId: id })
    const selection = new LineSelection({
      level: settings.defaultLoggingLevel,
      filters: stored.config?.logFilters ?? [],
      onStop: (line) => this.#stopByFilter(id, line),
      onLost: (file, lines, error) =>
        this.#host.noted({ ...about(), kind: 'lines lost', file, lines, error: messageOf(error) }),
    })
    const run = new HostedRun(this.id, id, this.#host.runLogs.begin(id), selection)
    const forgotten = this.#runs.add(run)
    this.#host.runPlanned(run)
    for (const id of forgotten) this.#host.runForgotten(id)
    if (forgotten.length > 0) this.#persistence.forgetRuns(forgotten)
    const onUnshared = (file: string, error: Error) =>
      this.#host.noted({ ...about(), kind: 'metrics not shared', file, error: messageOf(error) })
    return { ...planRun(this.#host, settings, stored, run, onUnshared, this.#candidate?.follows), isAwaited }
  }
}

/** The failure of an update that was to replace the run; `error` is anything that was thrown. */
function notReplaced(error: unknown): unknown {
  const failure = asServiceError(error)
  if (failure === undefined) return error
  const message = `${failure.message}; the settings stay as they were, and the pipeline is stopped`
  return new ServiceError(failure.code, message, { cause: error })
}

/** The failure of an update whose settings could not be stored, `error`, and which the run did not give up again, for `cause`. */
function notTakenBack(error: unknown, cause: unknown): unknown {
  const failure = asServiceError(error)
  if (failure === undefined) return error
  const message = `${failure.message}; the settings stay as they were, and the pipeline is stopped: ${messageOf(cause)}`
  return new ServiceError(failure.code, message, { cause: error })
}

function closing(): ServiceError {
  return new ServiceError('UNAVAILABLE', 'the node is closing')
}
