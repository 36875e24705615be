/** What a node hears whose request to join has not ended in its acceptance, and an operator whose answer does not count. */
import type { AuthRequestOutput } from '../actors/auth-request.ts'
import { mayPass, NotStored, ServiceError } from '../contract/errors.ts'
import type { Admission, JoiningNode } from '../link/link.ts'

type Reason = 'REJECTED' | 'TIMED_OUT' | 'TOO_MANY' | 'WITHDRAWN' | 'UNAVAILABLE'

export function refusal(reason: Reason, message: string): Admission {
  return { admitted: false, reason, message }
}

/** The hub can say nothing of the request now, or not take it. */
export function unavailable(error: ServiceError | NotStored): Admission {
  const message =
    error instanceof NotStored
      ? `it cannot store requests to join now (${error.why}): ask again once there is room on its disk`
      : error.message
  return refusal('UNAVAILABLE', message)
}

/** Throws what made the request fail, unless another server can say what becomes of it. */
export function refusalOf({ outcome, error }: AuthRequestOutput, joiner: JoiningNode): Admission {
  switch (outcome) {
    case 'rejected':
      return refusal('REJECTED', 'the operator of the hub rejected the request')
    case 'timedOut':
      return refusal('TIMED_OUT', 'nobody answered the request in time')
    case 'withdrawn':
      return refusal('WITHDRAWN', 'the caller went away')
    case 'failed':
      if (mayPass(error)) return unavailable(error)
      throw error
    default:
      return refusal('WITHDRAWN', wentAway(joiner))
  }
}

/** NOT_FOUND, for an operator who comes too late. */
export function notPending(requestId: bigint): ServiceError {
  return new ServiceError(
    'NOT_FOUND',
    `no request ${requestId} is pending: it was answered, timed out, was withdrawn or never was`,
  )
}

export function wentAway({ nodeId }: JoiningNode): string {
  return `node ${nodeId} went away while its request was being accepted`
}
