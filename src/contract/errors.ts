/** The one error type operations fail with, and the table of its codes. */
import { dirname } from 'node:path'
import { cutAt } from '../text/characters.ts'
import type { Problem } from '../text/pointer.ts'

/** gRPC status codes by name (google.rpc.Code). */
export const codeNumbers = {
  OK: 0,
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  OUT_OF_RANGE: 11,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  DATA_LOSS: 15,
  UNAUTHENTICATED: 16,
} as const

/** A code an operation can fail with. */
export type Code = Exclude<keyof typeof codeNumbers, 'OK'>

/** Most problems that one answer lists, and most characters of each. */
const MAX_PROBLEMS = 1000
const MAX_PROBLEM_LENGTH = 1000

/** The problems as they are answered: a request made of nothing but mistakes does not get an answer many times its size. */
export function answerable(problems: readonly Problem[]): Problem[] {
  const cut = (text: string) => {
    const end = cutAt(text, MAX_PROBLEM_LENGTH)
    return end < text.length ? `${text.slice(0, end)}…` : text
  }
  const listed = problems
    .slice(0, MAX_PROBLEMS)
    .map(({ pointer, message }) => ({ pointer: cut(pointer), message: cut(message) }))
  const more = problems.length - listed.length
  if (more > 0) listed.push({ pointer: '', message: `and ${more} more problems` })
  return listed
}

/**
 * A failure that is part of an operation's contract: its code, its message and its problems reach the caller word for word, on
 * every transport. Anything else that is thrown reaches the caller as INTERNAL without its message.
 */
export class ServiceError extends Error {
  override readonly name = 'ServiceError'
  readonly code: Code
  /** Every problem of the request, for INVALID_ARGUMENT; travels as google.rpc.BadRequest in the error's details. */
  readonly problems: readonly Problem[]

  /** `message` says what was wrong and what to do about it; secrets never appear in it. `cause` stays in the log. */
  constructor(code: Code, message: string, options: { problems?: readonly Problem[]; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = code
    this.problems = options.problems ?? []
  }
}

/** The name of a numeric code; UNKNOWN for a number that is none. */
export function codeName(number: number): Code | 'OK' {
  for (const [name, value] of Object.entries(codeNumbers)) if (value === number) return name as Code | 'OK'
  return 'UNKNOWN'
}

/** INVALID_ARGUMENT for one field of a request. */
export function invalidArgument(pointer: string, message: string): ServiceError {
  return new ServiceError('INVALID_ARGUMENT', pointer === '' ? message : `${pointer}: ${message}`, {
    problems: [{ pointer, message }],
  })
}

/** The failure of the contract that `error` stands for, if there is one: a disk that is full is for the caller to hear. */
export function asServiceError(error: unknown): ServiceError | undefined {
  if (error instanceof ServiceError) return error
  return error instanceof NotStored
    ? new ServiceError('RESOURCE_EXHAUSTED', error.message, { cause: error })
    : undefined
}

/** A write that is not on disk and never will be; nothing of it is visible. Later writes may succeed. */
export class NotStored extends Error {
  override readonly name = 'NotStored'
  /** The file that did not take it. */
  readonly path: string
  /** What the system said, for people. */
  readonly why: string
  /** What to do about it. */
  readonly cure: string

  constructor(path: string, why: string, { cure = 'is its disk full?', cause }: ErrorOptions & { cure?: string } = {}) {
    super(`the data directory ${dirname(path)} did not take the change (${why}): ${cure}`, { cause })
    this.path = path
    this.why = why
    this.cure = cure
  }
}

/** Whether what was asked cannot be done now, or what became of it is not known; asked again, or elsewhere, it may be. */
export function mayPass(error: unknown): error is ServiceError | NotStored {
  if (error instanceof NotStored) return true
  return error instanceof ServiceError && (error.code === 'UNAVAILABLE' || error.code === 'UNKNOWN')
}
