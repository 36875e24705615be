/** The header of the latency trackers (docs/wire-formats.md), and what a run's sender and receiver tell each other. */

/** Send time, echoed peer time, hold time. */
export const LATENCY_HEADER_BYTES = 24
export const ECHO_AT = 8
export const HOLD_AT = 16

/** The newest send time that came from the peer, which the sender sends back. Where there are several of either end nothing goes back. */
export class Echo {
  senders = 0
  receivers = 0
  /** The 64 bits of the time as they came. */
  high = 0
  low = 0
  /** When they came, ns on the run's clock; -1: none has. */
  came = -1

  get isOfOnePeer(): boolean {
    return this.senders === 1 && this.receivers === 1
  }

  /** That of this run. */
  static of({ shared }: { shared<T>(name: string, make: () => T): T }): Echo {
    return shared('echo of the latency trackers', () => new Echo())
  }
}

/** Why the run has no round trip, for `validate`; null where it has one. */
export function noRoundTrip(count: (key: string) => number): string | null {
  const senders = count('latency_tracker_sender')
  const receivers = count('latency_tracker_receiver')
  if (senders === 1 && receivers === 1) return null
  return (
    `no round trip is measured: that takes exactly one latency_tracker_sender and one latency_tracker_receiver in the pipeline, and ` +
    `this one has ${senders} and ${receivers}`
  )
}
