/** Deadlines of gRPC calls that are later than a timer can be set for. */
import type { IncomingHttpHeaders } from 'node:http2'

/** Latest deadline of a call, milliseconds from its beginning. */
const MAX_DEADLINE_MS = 2_147_483_647
/** Milliseconds of the units of grpc-timeout. */
const UNITS: Readonly<Record<string, number>> = { H: 3_600_000, M: 60_000, S: 1000, m: 1, u: 1e-3, n: 1e-6 }

/**
 * Has a call whose deadline is later than MAX_DEADLINE_MS last as long as that: @grpc/grpc-js would take it for one that is over, or that comes
 * earlier. A listener for the streams of an HTTP/2 server, before those of others.
 */
export function limitDeadline(_stream: unknown, headers: IncomingHttpHeaders): void {
  const timeout = headers['grpc-timeout']
  if (typeof timeout !== 'string') return
  const [, value, unit = ''] = /^(\d{1,8})([HMSmun])$/.exec(timeout) ?? []
  if (Number(value) * (UNITS[unit] ?? 0) > MAX_DEADLINE_MS) {
    headers['grpc-timeout'] = `${Math.floor(MAX_DEADLINE_MS / 1000)}S`
  }
}
