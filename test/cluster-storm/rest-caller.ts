/** REST and server-sent events as callers of a storm have them: what breaks on the way is a failure with a code, as gRPC has it. */
import { STATUS_LINES } from '../../src/api/errors.ts'
import { type Code, codeNumbers } from '../../src/contract/errors.ts'
import type { RunningNode } from '../api/running-node.ts'
import { type Caller, Failed, httpCaller } from '../hub/callers.ts'
import { BrokenPromise } from '../storm/broken-promise.ts'

/** `address`: host:port; `certificate`: of the server, in PEM, where it speaks TLS. */
export function restCaller(address: string, certificate: Buffer | undefined): Caller {
  const caller = httpCaller({ node: { http: address } } as RunningNode, 0, certificate)
  return {
    ...caller,
    transport: 'REST',
    unary: (name, request, signal) => caller.unary(name, request, signal).catch((error) => fail(error, signal)),
    stream: (name, request) => caller.stream(name, request).catch((error) => fail(error)),
  }
}

function fail(error: unknown, signal?: AbortSignal): never {
  throw failureOf(error, signal)
}

/** What a caller is to be told of an error; one that no network explains is thrown as it is. */
export function failureOf(error: unknown, signal?: AbortSignal): unknown {
  if (error instanceof Failed) {
    const right = STATUS_LINES[error.code as Code]
    if (right?.startsWith(`${error.status} `)) return error
    return new BrokenPromise(`HTTP status ${error.status} for ${error.code}: ${error.message}`)
  }
  if (signal?.aborted) return new Failed(codeNumbers.CANCELLED, 'no answer in time')
  const cause = causeOf(error)
  if (cause === undefined) return error
  // Nothing was sent, or nobody knows how far it came.
  const code = cause === 'ECONNREFUSED' ? codeNumbers.UNAVAILABLE : codeNumbers.UNKNOWN
  return new Failed(code, `${(error as Error).message} (${cause})`)
}

/** The code of what broke a connection; undefined: nothing did. */
function causeOf(error: unknown): string | undefined {
  const { code, cause } = error as { code?: unknown; cause?: unknown }
  if (typeof code === 'string') return code
  return typeof cause === 'object' && cause !== null ? causeOf(cause) : undefined
}
