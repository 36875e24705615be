/** A run of a pipeline on this node: its record, its log, its telemetry, and who follows them. */

import { ServiceError } from '../contract/errors.ts'
import { Fanout } from '../contract/fanout.ts'
import type { Sink } from '../contract/handlers.ts'
import { Outbox } from '../contract/outbox.ts'
import { SharedMessage } from '../contract/shared-message.ts'
import type { LogStreamMessages, TelemetrySample } from '../contract/types.ts'
import type { LogLevel } from '../dataplane/engine/log.ts'
import { type LogLine, lastWords } from '../dataplane/engine/run.ts'
import type { RunRecord } from '../store/runs.ts'
import { RunLog } from '../telemetry/run-log.ts'
import { Sampler, Telemetry } from '../telemetry/sampler.ts'
import { logMessageView } from './pipelines-view.ts'

/** Log lines that wait for a slow follower before further ones are dropped for it. */
const MAX_LOG_BACKLOG = 1_024

export class HostedRun {
  readonly pipelineId: string
  readonly id: string
  readonly log: RunLog
  readonly #logFollowers: Fanout<LogStreamMessages>
  readonly #telemetryFollowers = new Fanout<TelemetrySample>({ kind: 'latest' })
  #telemetry: Telemetry<SharedMessage<TelemetrySample>> | undefined
  #unfollow: (() => void) | undefined
  #awaitingRegion: Sink<TelemetrySample>[] = []
  /** How it ended, once it has. */
  #record: RunRecord | undefined
  #saidEnd = false
  /** What the metrics were at the end; absent when they were never had, or went with the process that had them. */
  #last: SharedMessage<TelemetrySample> | undefined

  constructor(pipelineId: string, id: string, level: LogLevel) {
    this.pipelineId = pipelineId
    this.id = id
    this.log = new RunLog(level)
    this.#logFollowers = new Fanout({ kind: 'counted', limit: MAX_LOG_BACKLOG, dropped: droppedNotice })
    this.log.follow((lines) => {
      if (this.#logFollowers.size === 0) return
      // One line a message: what is dropped for a slow follower is counted in messages.
      for (const line of lines) this.#logFollowers.publish({ messages: [logMessageView(line)] })
    })
    this.#telemetryFollowers.onIdle(() => {
      this.#unfollow?.()
      this.#unfollow = undefined
    })
  }

  /** A run of an earlier life of the node, whose log is gone but for its end. */
  static ended(record: RunRecord, level: LogLevel): HostedRun {
    const run = new HostedRun(record.pipelineId, record.id, level)
    run.end(record)
    return run
  }

  get record(): RunRecord | undefined {
    return this.#record
  }

  /** The lowest level logged from now on. */
  setLevel(level: LogLevel): void {
    this.log.level = level
  }

  append(lines: readonly LogLine[]): void {
    this.#saidEnd ||= lines.some(({ component, fields }) => component === '' && fields.outcome !== undefined)
    this.log.append(lines)
  }

  /** The run has a thread: its metrics can be read from `region`, every `interval` ms. */
  launched(region: SharedArrayBuffer, interval: number): void {
    if (this.#telemetry !== undefined || this.#record !== undefined) return
    const sampler = new Sampler(region)
    this.#telemetry = new Telemetry(() => new SharedMessage<TelemetrySample>(sampler.sample(Date.now())), interval)
    const waiting = this.#awaitingRegion
    this.#awaitingRegion = []
    for (const sink of waiting) this.followTelemetry(sink)
  }

  /** The run is over: followers of its telemetry get the last values and are told; those values and its log stay. */
  end(record: RunRecord): void {
    if (this.#record !== undefined) return
    this.#record = record
    // A thread that died or was killed could not say so itself.
    if (!this.#saidEnd) {
      const { outcome = 'FAILED', error, endedAt: timestamp = Date.now() } = record
      const words = lastWords(error === undefined ? { outcome } : { outcome, error })
      this.log.append([{ timestamp, level: 'STATE', component: '', ...words }])
    }
    const telemetry = this.#telemetry
    this.#telemetry = undefined
    if (telemetry !== undefined) {
      this.#last = telemetry.take()
      this.#telemetryFollowers.publish(this.#last)
      telemetry.close()
    }
    this.#telemetryFollowers.end(runEnded())
    for (const sink of this.#awaitingRegion) sink.end(runEnded())
    this.#awaitingRegion = []
  }

  /** The last `lines` lines first, then new ones, for as long as the log is kept. */
  followLog(sink: Sink<LogStreamMessages>, lines: number): void {
    const past = this.log.past(lines)
    this.#logFollowers.add(sink, past.length === 0 ? undefined : { messages: past.map(logMessageView) })
  }

  /**
   * A sample at once, then one at every tick, until the run ends. Of a run that has ended: its last one, then ABORTED; that alone, thrown,
   * when no sample is had.
   */
  followTelemetry(sink: Sink<TelemetrySample>): void {
    if (this.#record !== undefined) {
      if (this.#last === undefined)
        throw runEnded('; no sample of it is kept: it never ran, or the node was restarted since')
      const outbox = new Outbox<TelemetrySample>(sink, { kind: 'latest' })
      outbox.push(this.#last)
      outbox.end(runEnded())
      return
    }
    const telemetry = this.#telemetry
    if (telemetry === undefined) {
      this.#awaitingRegion.push(sink)
      sink.onClose(() => {
        this.#awaitingRegion = this.#awaitingRegion.filter((waiting) => waiting !== sink)
      })
      return
    }
    this.#telemetryFollowers.add(sink, telemetry.fresh())
    if (!sink.closed) this.#unfollow ??= telemetry.follow((sample) => this.#telemetryFollowers.publish(sample))
  }

  /** The log is not kept any longer: its followers' streams end. */
  forget(): void {
    this.#logFollowers.end()
  }

  /** The node goes: all streams end with `error`. */
  abandon(error: ServiceError): void {
    this.#logFollowers.end(error)
    this.#telemetryFollowers.end(error)
  }
}

function runEnded(more = ''): ServiceError {
  return new ServiceError('ABORTED', `run ended${more}`)
}

function droppedNotice(count: number): LogStreamMessages {
  const message = `${count} lines were dropped: the follower reads too slowly`
  return { messages: [{ timestamp: new Date(), level: 'WARN', component: '', message, fields: {} }] }
}
