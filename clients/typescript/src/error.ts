/** What a call fails with. */
import type { Answer } from './fetch.ts'

/** What a node says of a failure (google.rpc.Code). */
export const CODES = [
  'OK',
  'CANCELLED',
  'UNKNOWN',
  'INVALID_ARGUMENT',
  'DEADLINE_EXCEEDED',
  'NOT_FOUND',
  'ALREADY_EXISTS',
  'PERMISSION_DENIED',
  'RESOURCE_EXHAUSTED',
  'FAILED_PRECONDITION',
  'ABORTED',
  'OUT_OF_RANGE',
  'UNIMPLEMENTED',
  'INTERNAL',
  'UNAVAILABLE',
  'DATA_LOSS',
  'UNAUTHENTICATED',
] as const

export type Code = Exclude<(typeof CODES)[number], 'OK'>

/** One thing that is wrong with a request, or with the configuration in it. */
export interface Problem {
  /** JSON pointer of the field, empty for the whole request. */
  readonly pointer: string
  readonly message: string
}

/** The JSON object of a failure. */
export interface ErrorBody {
  readonly code: number
  readonly message: string
  readonly details: readonly ErrorDetail[]
}

/** One detail: a google.rpc message, named by `@type`. */
export type ErrorDetail = { readonly '@type': string } & Readonly<Record<string, unknown>>

/**
 * What kept the node's own word from arriving: nobody answered, or not in time; the answer broke off; what answered is no node, but a proxy
 * before it or another program.
 */
export type Loss = 'NO_ANSWER' | 'BROKEN_OFF' | 'NOT_A_NODE'

/**
 * A call that failed. `code`, `loss`, `reason`, `details` and `problems` are for programs, `message` is for people. A node that was not reached,
 * or that broke off, is UNAVAILABLE; `cause` has what the platform said.
 */
export class PenstockError extends Error {
  override readonly name = 'PenstockError'
  readonly code: Code
  /** HTTP status of the answer; undefined when there was none, or when a stream that stood has failed. */
  readonly status: number | undefined
  /** Why this is not the node's own word; undefined when it is. */
  readonly loss: Loss | undefined
  /** Of a detail google.rpc.ErrorInfo the reason; undefined without one. */
  readonly reason: string | undefined
  readonly details: readonly ErrorDetail[]
  /** What is wrong with the request (google.rpc.BadRequest), every problem with its place. */
  readonly problems: readonly Problem[]

  constructor(
    code: Code,
    message: string,
    options: { status?: number; loss?: Loss; details?: readonly ErrorDetail[]; cause?: unknown } = {},
  ) {
    const { status, loss, details = [], cause } = options
    super(message, cause === undefined ? undefined : { cause })
    this.code = code
    this.status = status
    this.loss = loss
    this.details = details
    const reason = detailOf(details, 'google.rpc.ErrorInfo')?.reason
    this.reason = typeof reason === 'string' ? reason : undefined
    const violations = detailOf(details, 'google.rpc.BadRequest')?.fieldViolations
    this.problems = Array.isArray(violations)
      ? violations.map(({ field, description }) => ({ pointer: String(field), message: String(description) }))
      : []
  }
}

function detailOf(details: readonly ErrorDetail[], name: string): ErrorDetail | undefined {
  return details.find((detail) => detail['@type'].endsWith(`/${name}`))
}

/** The error that a node's JSON stands for. */
export function errorOf(body: ErrorBody, status?: number): PenstockError {
  const code = CODES[body.code]
  return new PenstockError(code === undefined || code === 'OK' ? 'UNKNOWN' : code, body.message, {
    details: body.details,
    ...(status === undefined ? {} : { status }),
  })
}

/** Whether `value` is what all messages are, a JSON object. */
export function isMessage(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Whether `value` is what a node answers a failed call with. */
export function isErrorBody(value: unknown): value is ErrorBody {
  if (!isMessage(value)) return false
  const { code, message, details } = value
  if (typeof code !== 'number' || typeof message !== 'string' || !Array.isArray(details)) return false
  return details.every((detail) => isMessage(detail) && typeof detail['@type'] === 'string')
}

/** The error of an answer that succeeded not: the node's own words, or what the status says when another (a proxy) has answered. */
export async function failureOf(answer: Pick<Answer, 'status' | 'statusText' | 'text'>): Promise<PenstockError> {
  const text = await answer.text().catch(() => '')
  try {
    const body: unknown = JSON.parse(text)
    if (isErrorBody(body)) return errorOf(body, answer.status)
  } catch {
    // Not JSON: not of a node.
  }
  return foreign(answer)
}

/** The error of an answer that no node gives. */
export function foreign({ status, statusText }: Pick<Answer, 'status' | 'statusText'>, cause?: unknown): PenstockError {
  const code = [502, 503, 504].includes(status) ? 'UNAVAILABLE' : 'UNKNOWN'
  const message = `the answer is ${status}${statusText && ` ${statusText}`} and not a node's`
  return new PenstockError(code, message, { status, loss: 'NOT_A_NODE', cause })
}
