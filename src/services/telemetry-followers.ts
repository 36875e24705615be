/** Who follows the telemetry of a run: those that ask for the same are a group, whose samples are made and encoded once. */
import { Fanout } from '../contract/fanout.ts'
import type { Sink } from '../contract/handlers.ts'
import { Outbox } from '../contract/outbox.ts'
import { SharedMessage } from '../contract/shared-message.ts'
import type { TelemetryOptions, TelemetrySample } from '../contract/types.ts'
import { chooser, keyOf } from '../telemetry/metric-choice.ts'
import type { MetricSet, Reading } from '../telemetry/reading.ts'
import type { Telemetry } from '../telemetry/sampler.ts'

type SharedSample = SharedMessage<TelemetrySample>

interface Group {
  readonly fanout: Fanout<TelemetrySample>
  readonly chosen: (reading: Reading) => SharedSample
  unfollow?: () => void
}

export class TelemetryFollowers {
  /** By what they ask for. */
  readonly #groups = new Map<string, Group>()
  /** For all groups that ask for all, whatever their interval. */
  readonly #whole = sharedChooser(undefined)

  /** Gives `sink` what it asks for of a sample at once, then at every tick of `telemetry` that is due for it. */
  add(sink: Sink<TelemetrySample>, options: TelemetryOptions | undefined, telemetry: Telemetry<Reading>): void {
    if (sink.closed) return
    const interval = options?.intervalMs ?? 0
    const key = `${telemetry.ticksIn(interval)} ${options === undefined ? '' : keyOf(options)}`
    const group = this.#groups.get(key) ?? this.#begin(key, options)
    group.fanout.add(sink, group.chosen(telemetry.fresh()))
    if (sink.closed) return
    group.unfollow ??= telemetry.follow((reading) => group.fanout.publish(group.chosen(reading)), interval)
  }

  /** Gives all what they ask for of `reading`. */
  publish(reading: Reading): void {
    for (const { fanout, chosen } of this.#groups.values()) fanout.publish(chosen(reading))
  }

  /** Ends every follower's stream once what waits for it was sent. */
  end(error: unknown): void {
    for (const { fanout } of this.#groups.values()) fanout.end(error)
  }

  #begin(key: string, options: TelemetryOptions | undefined): Group {
    const chosen = isOfAll(options) ? this.#whole : sharedChooser(options)
    const group: Group = { fanout: new Fanout({ kind: 'latest' }), chosen }
    this.#groups.set(key, group)
    group.fanout.onIdle(() => {
      this.#groups.delete(key)
      group.unfollow?.()
    })
    return group
  }
}

/** Sends what `options` ask for of the `last` reading of a run that is over, then `error`. */
export function sendLast(
  sink: Sink<TelemetrySample>,
  options: TelemetryOptions | undefined,
  last: Reading,
  error: unknown,
): void {
  const outbox = new Outbox<TelemetrySample>(sink, { kind: 'latest' })
  outbox.push(sharedChooser(options)(last))
  outbox.end(error)
}

function isOfAll(options: TelemetryOptions | undefined): boolean {
  return options === undefined || keyOf(options) === ''
}

/** Makes a sample once a reading, and finds out at the first which metrics are in it. */
function sharedChooser(options: TelemetryOptions | undefined): Group['chosen'] {
  const isChosen = options === undefined || isOfAll(options) ? undefined : chooser(options)
  let metrics: MetricSet | undefined
  let last: { from: Reading; made: SharedSample } | undefined
  return (from) => {
    if (isChosen !== undefined) metrics ??= from.choose(isChosen)
    if (last?.from !== from) last = { from, made: new SharedMessage<TelemetrySample>(from.sample(metrics)) }
    return last.made
  }
}
