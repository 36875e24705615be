/** Carries a call from one session to another: payloads unread, credit and cancellation end to end. */
import { ServiceError } from '../contract/errors.ts'
import type { LinkOpener, LinkStream } from './link.ts'

/**
 * Serves `incoming` by calling the same operation on `outgoing`, with the same target, origin and what is left of the caller's time. The
 * sender of either end waits when the other's receiver does; what waits here is the request, which counts as held for the caller, and at most
 * a window each way. The caller hears DEADLINE_EXCEEDED when nothing is left, UNAVAILABLE when `outgoing` is or gets lost, RESOURCE_EXHAUSTED
 * when too much is held for it. Takes the handlers of `incoming`.
 */
export function relay(incoming: LinkStream, request: Uint8Array | undefined, outgoing: LinkOpener): void {
  const { operation, target, origin, timeLeft } = incoming
  let call: LinkStream
  try {
    call = outgoing.open(operation, target, request, { origin, deadlineMs: timeLeft, holder: incoming })
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error
    incoming.end({ code: error.code, message: error.message })
    return
  }
  call.handlers = {
    fragment: (bytes, more) => incoming.sendFragment(bytes, more),
    end: (status) => incoming.end(status),
    drain: () => incoming.resume(),
  }
  incoming.handlers = {
    fragment: (bytes, more) => call.sendFragment(bytes, more),
    halfClose: () => call.halfClose(),
    cancel: () => call.cancel(),
    drain: () => call.resume(),
  }
}
