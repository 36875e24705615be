/** What became of a node's request to join, as its caller hears it. */
import type { JoinOutcome } from '../actors/hub-connection-parts.ts'
import { type Code, ServiceError } from '../contract/errors.ts'
import { LinkRefused, LinkUnreachable } from '../link/link.ts'

const REFUSALS: Partial<Record<LinkRefused['reason'], Code>> = {
  REJECTED: 'UNAUTHENTICATED',
  TIMED_OUT: 'DEADLINE_EXCEEDED',
  TOO_MANY: 'RESOURCE_EXHAUSTED',
  NO_AUTHENTICATION_BY_REQUEST: 'NOT_FOUND',
  NOT_A_HUB: 'NOT_FOUND',
  WITHDRAWN: 'CANCELLED',
  // A hub was reached: asking again is of no use before something is changed.
  WRONG_CERTIFICATE: 'FAILED_PRECONDITION',
  WRONG_HUB: 'FAILED_PRECONDITION',
}

/** Throws what became of a request that has not ended in a sign-in. */
export function requireJoined(outcome: JoinOutcome, address: URL): void {
  switch (outcome.kind) {
    case 'joined':
      return
    case 'signed in already':
      throw signedInAlready(outcome.hubAddress)
    case 'withdrawn':
      throw new ServiceError('CANCELLED', 'the caller went away; the request is withdrawn')
    case 'closed':
      throw goingDown()
    case 'failed':
      throw joinFailure(outcome.error, address)
  }
}

/** ALREADY_EXISTS. */
export function signedInAlready(hubAddress: string): ServiceError {
  return new ServiceError(
    'ALREADY_EXISTS',
    `this node is on the hub at ${hubAddress} already: disconnect it there first`,
  )
}

/** UNAVAILABLE. */
export function goingDown(): ServiceError {
  return new ServiceError('UNAVAILABLE', 'the node is shutting down')
}

function joinFailure(error: unknown, { href }: URL): unknown {
  if (error instanceof LinkRefused) {
    return new ServiceError(REFUSALS[error.reason] ?? 'UNAVAILABLE', `the hub at ${href}: ${error.message}`)
  }
  if (error instanceof LinkUnreachable) {
    return new ServiceError('UNAVAILABLE', `the hub at ${href} cannot be reached: ${error.message}`)
  }
  return error
}
