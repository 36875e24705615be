/** Who follows the telemetry of a run: those that ask for the same are a group, whose samples are made and encoded once. */
import { Fanout } from '../contract/fanout.ts'
import type { Sink } from '../contract/handlers.ts'
import { Outbox } from '../contract/outbox.ts'
import { SharedMessage } from '../contract/shared-message.ts'
import type { TelemetryOptions, TelemetrySample } from '../contract/types.ts'
import { chooser, keyOf } from '../telemetry/metric-choice.ts'
import type { Telemetry } from '../telemetry/sampler.ts'

export type SharedSample = SharedMessage<TelemetrySample>

interface Group {
  readonly fanout: Fanout<TelemetrySample>
  readonly chosen: (sample: SharedSample) => SharedSample
  unfollow?: () => void
}

export class TelemetryFollowers {
  /** By what they ask for. */
  readonly #groups = new Map<string, Group>()

  /** Gives `sink` what it asks for of a sample at once, then at every tick of `telemetry` that is due for it. */
  add(sink: Sink<TelemetrySample>, options: TelemetryOptions | undefined, telemetry: Telemetry<SharedSample>): void {
    if (sink.closed) return
    const interval = options?.intervalMs ?? 0
    const key = `${telemetry.ticksIn(interval)} ${options === undefined ? '' : keyOf(options)}`
    const group = this.#groups.get(key) ?? this.#begin(key, options)
    group.fanout.add(sink, group.chosen(telemetry.fresh()))
    if (sink.closed) return
    group.unfollow ??= telemetry.follow((sample) => group.fanout.publish(group.chosen(sample)), interval)
  }

  /** Gives all what they ask for of `sample`. */
  publish(sample: SharedSample): void {
    for (const { fanout, chosen } of this.#groups.values()) fanout.publish(chosen(sample))
  }

  /** Ends every follower's stream once what waits for it was sent. */
  end(error: unknown): void {
    for (const { fanout } of this.#groups.values()) fanout.end(error)
  }

  #begin(key: string, options: TelemetryOptions | undefined): Group {
    const group: Group = { fanout: new Fanout({ kind: 'latest' }), chosen: sharedChooser(options) }
    this.#groups.set(key, group)
    group.fanout.onIdle(() => {
      this.#groups.delete(key)
      group.unfollow?.()
    })
    return group
  }
}

/** Sends what `options` ask for of the `last` sample of a run that is over, then `error`. */
export function sendLast(
  sink: Sink<TelemetrySample>,
  options: TelemetryOptions | undefined,
  last: SharedSample,
  error: unknown,
): void {
  const outbox = new Outbox<TelemetrySample>(sink, { kind: 'latest' })
  outbox.push(sharedChooser(options)(last))
  outbox.end(error)
}

/** Chooses once a sample. */
function sharedChooser(options: TelemetryOptions | undefined): Group['chosen'] {
  if (options === undefined || keyOf(options) === '') return (sample) => sample
  const choose = chooser(options)
  let last: { from: SharedSample; made: SharedSample } | undefined
  return (from) => {
    if (last?.from !== from) last = { from, made: new SharedMessage(choose(from.value)) }
    return last.made
  }
}
