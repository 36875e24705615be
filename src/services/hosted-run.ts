/** A run of a pipeline on this node: its record, its log, its telemetry, and who follows them. */

import type { Timers } from '../contract/clock.ts'
import { ServiceError } from '../contract/errors.ts'
import { Fanout } from '../contract/fanout.ts'
import type { Sink } from '../contract/handlers.ts'
import type {
  CapturedPackets,
  LogStreamMessages,
  OpenCaptureStreamRequest,
  TelemetryOptions,
  TelemetrySample,
} from '../contract/types.ts'
import type { Registry } from '../dataplane/engine/component.ts'
import type { PipelineConfig } from '../dataplane/engine/config.ts'
import type { KpisConfig } from '../dataplane/engine/kpis.ts'
import { isLastLine, type LogLine, lastWords, type RunHandle } from '../dataplane/engine/run.ts'
import type { RunRecord } from '../store/runs.ts'
import type { LineSelection } from '../telemetry/log-filters.ts'
import type { MetricsFile } from '../telemetry/metrics-file.ts'
import type { ProcessMeter } from '../telemetry/process-meter.ts'
import type { Numbers } from '../telemetry/prometheus.ts'
import type { Reading } from '../telemetry/reading.ts'
import type { RunLog } from '../telemetry/run-log.ts'
import { Sampler, Telemetry } from '../telemetry/sampler.ts'
import { notOn, planCapture, streamCapture } from './capture-stream.ts'
import { fitting, PastLines, withMissing } from './past-lines.ts'
import { logMessageView } from './pipelines-view.ts'
import { sendLast, TelemetryFollowers } from './telemetry-followers.ts'

/** Log lines that wait for a slow follower before further ones are dropped for it. */
const MAX_LOG_BACKLOG = 4_096

/** Captures of a run at once: each takes memory, and time of the run's thread for every packet that it copies. */
const MAX_CAPTURES = 32

/** A follower that came before there was anything to read. */
interface AwaitingRegion {
  readonly sink: Sink<TelemetrySample>
  readonly options: TelemetryOptions | undefined
}

export class HostedRun {
  readonly pipelineId: string
  readonly id: string
  readonly log: RunLog
  /** Which lines go into the log; none are to come of a run of an earlier life of the node. */
  readonly selection: LineSelection | undefined
  readonly #logFollowers: Fanout<LogStreamMessages>
  readonly #telemetryFollowers = new TelemetryFollowers()
  #sampler: Sampler | undefined
  #telemetry: Telemetry<Reading> | undefined
  /** When `performance.now()` was 0, by the run's clock, ms since the epoch. */
  #epoch = 0
  #awaitingRegion: AwaitingRegion[] = []
  /** How it ended, once it has. */
  #record: RunRecord | undefined
  #saidEnd = false
  #metricsFile: MetricsFile | undefined
  /** Its thread, from its launch to its end, and what that runs: no live change adds components or connections. */
  #launch: { readonly handle: RunHandle; readonly config: PipelineConfig } | undefined
  /** What ends each stream of its packets. */
  readonly #captures = new Set<() => void>()
  #hasThreadEnded = false
  /** What the metrics were at the end; absent when they were never had, or went with the process that had them. */
  #last: Reading | undefined

  constructor(pipelineId: string, id: string, log: RunLog, selection?: LineSelection) {
    this.pipelineId = pipelineId
    this.id = id
    this.log = log
    this.selection = selection
    this.#logFollowers = new Fanout({ kind: 'counted', limit: MAX_LOG_BACKLOG, dropped: droppedNotice })
    this.log.follow((lines) => {
      if (this.#logFollowers.size === 0) return
      // One line a message: what is dropped for a slow follower is counted in messages.
      this.#logFollowers.publishTogether(lines.map((line) => ({ messages: [logMessageView(line)] })))
    })
  }

  /** A run of an earlier life of the node, `log` being what is left of its log. */
  static ended(record: RunRecord, log: RunLog): HostedRun {
    const run = new HostedRun(record.pipelineId, record.id, log)
    run.#record = record
    return run
  }

  get record(): RunRecord | undefined {
    return this.#record
  }

  /** Its metrics are written to `file` from its launch to its end. */
  shareMetrics(file: MetricsFile): void {
    this.#metricsFile = file
  }

  append(lines: readonly LogLine[]): void {
    this.#saidEnd ||= lines.some(isLastLine)
    this.log.append(this.selection?.select(lines) ?? lines)
  }

  /** The restart policy made the run: restart number `attempt` in a row. */
  noteRestart({ attempt }: { attempt: number }): void {
    const message = `made by the restart policy: restart ${attempt} in a row`
    this.append([{ timestamp: Date.now(), level: 'STATE', component: '', message, fields: { attempt } }])
  }

  /** The run has a thread: its metrics can be read, every `interval` ms, and its KPIs evaluated. */
  launched(handle: RunHandle, config: PipelineConfig, interval: number, process: ProcessMeter): void {
    if (this.#telemetry !== undefined || this.#record !== undefined) return
    this.#launch = { handle, config }
    // Once for all captures: a promise keeps what waits for it, and a run may last for months.
    void handle.ended.then(() => {
      this.#hasThreadEnded = true
      for (const over of this.#captures) over()
    })
    const { region } = handle
    this.#metricsFile?.follow(region)
    const { kpis } = config
    const sampler = new Sampler(region, { kpis, process })
    // As the run's clock does: the system's time when the run began, and on from there whatever becomes of that one.
    this.#epoch = Date.now() - performance.now()
    const take = () => sampler.read(this.#epoch + performance.now(), new Date())
    this.#sampler = sampler
    this.#telemetry = new Telemetry(take, interval)
    this.#telemetry.always = kpis !== undefined
    const waiting = this.#awaitingRegion
    this.#awaitingRegion = []
    for (const { sink, options } of waiting) this.followTelemetry(sink, options)
  }

  /** What it has taken over is stored, or was given up again. */
  keepChange(): void {
    this.#launch?.handle.keepChange()
  }

  /** Other KPIs are evaluated from now on. */
  setKpis(kpis: KpisConfig | undefined): void {
    if (this.#telemetry === undefined) return
    this.#sampler?.setKpis(kpis)
    this.#telemetry.always = kpis !== undefined
  }

  /** The run is over: followers of its telemetry get the last values and are told; those values and its log stay. */
  end(record: RunRecord): void {
    if (this.#record !== undefined) return
    this.#record = record
    this.#launch = undefined
    // A thread that died or was killed could not say so itself.
    if (!this.#saidEnd) {
      this.append([lastLine(record)])
    }
    void this.log.settle()
    void this.#metricsFile?.end()
    const telemetry = this.#telemetry
    this.#telemetry = undefined
    const sampler = this.#sampler
    if (telemetry !== undefined && sampler !== undefined) {
      this.#last = sampler.readLast(this.#epoch + performance.now(), new Date()).complete()
      this.#telemetryFollowers.publish(this.#last)
      telemetry.close()
    }
    this.#telemetryFollowers.end(runEnded())
    for (const { sink } of this.#awaitingRegion) sink.end(runEnded())
    this.#awaitingRegion = []
  }

  /**
   * The last `count` lines first, then new ones, for as long as the log is kept; with `isPastOnly` the end in their place. Resolves once the new
   * ones are followed.
   */
  async followLog(sink: Sink<LogStreamMessages>, count: number, isPastOnly = false): Promise<void> {
    await this.log.opened
    const past = new PastLines(sink)
    const begin = Math.max(0, this.log.next - count)
    for (let from = begin; ; ) {
      const rest = this.log.inMemory(from)
      if (rest === undefined) {
        const { lines, next } = await this.log.stored(from)
        // Before the first there may be fewer than were asked for, as the oldest lines go.
        const isCut = from === begin && !(await this.log.hasAllFiles())
        const expected = isCut ? (lines[0]?.n ?? next) : from
        from = next
        await past.send(withMissing(lines, expected, next))
      } else {
        const some = fitting(rest)
        if (some.length === rest.length) {
          if (isPastOnly) {
            if (some.length > 0) sink.send({ messages: some.map(logMessageView) })
            sink.end()
            return
          }
          this.#logFollowers.add(sink, some.length === 0 ? undefined : { messages: some.map(logMessageView) })
          return
        }
        // Until they are taken more come, and what is in memory now may be in the file alone.
        from += some.length
        await past.send(some)
      }
      if (sink.closed) return
    }
  }

  /**
   * What `options` ask for: a sample at once, then more, until the run ends. Of a run that has ended: its last one, then ABORTED; that alone,
   * thrown, when no sample is had.
   */
  followTelemetry(sink: Sink<TelemetrySample>, options?: TelemetryOptions): void {
    if (this.#record !== undefined) {
      if (this.#last === undefined)
        throw runEnded('; no sample of it is kept: it never ran, or the node was restarted since')
      sendLast(sink, options, this.#last, runEnded())
      return
    }
    const telemetry = this.#telemetry
    if (telemetry === undefined) {
      this.#awaitingRegion.push({ sink, options })
      sink.onClose(() => {
        this.#awaitingRegion = this.#awaitingRegion.filter((waiting) => waiting.sink !== sink)
      })
      return
    }
    this.#telemetryFollowers.add(sink, options, telemetry)
  }

  /** The numbers of now, while it is on; undefined when they cannot be read. */
  numbers(): Numbers | undefined {
    return this.#record === undefined ? this.#sampler?.numbers() : undefined
  }

  /** The log is not kept any longer, for `why`: its followers' streams end with that, and it is taken off the disk. */
  async forget(why: string): Promise<void> {
    const error = new ServiceError('NOT_FOUND', `the log of run ${this.id} is not kept any longer: ${why}`)
    this.#logFollowers.end(error)
    this.#telemetryFollowers.end(error)
    await this.log.remove()
  }

  /** Copies packets of the run that is on. Throws FAILED_PRECONDITION when it is not, RESOURCE_EXHAUSTED when too many do, and as `planCapture`. */
  followPackets(
    request: OpenCaptureStreamRequest,
    sink: Sink<CapturedPackets>,
    { registry, clock }: { registry: Registry; clock: Timers },
  ): void {
    if (this.#launch === undefined) throw notOn(this.id)
    const { handle, config } = this.#launch
    const plan = planCapture(request, config, registry)
    if (this.#captures.size >= MAX_CAPTURES) {
      throw new ServiceError(
        'RESOURCE_EXHAUSTED',
        `a run has ${MAX_CAPTURES} captures at once, and run ${this.id} has as many; close one first`,
      )
    }
    const over = streamCapture(sink, plan, handle.capture(plan.options), clock)
    this.#captures.add(over)
    sink.onClose(() => this.#captures.delete(over))
    if (this.#hasThreadEnded) void handle.ended.then(over)
  }

  /** The node goes: all streams end with `error`. Resolves once all that was logged is on disk, and the file of its metrics says that it has ended. */
  async abandon(error: ServiceError): Promise<void> {
    this.#logFollowers.end(error)
    this.#telemetryFollowers.end(error)
    await Promise.all([this.log.written(), this.selection?.written(), this.#metricsFile?.end()])
  }
}

/** What a run's log ends with when its thread could not say it. */
export function lastLine({ outcome = 'FAILED', error, endedAt: timestamp = Date.now() }: RunRecord): LogLine {
  return {
    timestamp,
    level: 'STATE',
    component: '',
    ...lastWords(error === undefined ? { outcome } : { outcome, error }),
  }
}

function runEnded(more = ''): ServiceError {
  return new ServiceError('ABORTED', `run ended${more}`)
}

function droppedNotice(count: number): LogStreamMessages {
  const message = `${count} lines were dropped: the follower reads too slowly`
  return { messages: [{ timestamp: new Date(), level: 'WARN', component: '', message, fields: {} }] }
}
