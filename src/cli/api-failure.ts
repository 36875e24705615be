/** Errors that the API answers with. */
import { codeName } from '../contract/errors.ts'
import type { Problem } from '../text/pointer.ts'
import { Failure } from './failure.ts'

/** The node answered with an error. */
export class ApiFailure extends Failure {
  /** Name of the google.rpc.Code. */
  readonly code: string
  /** What is wrong with the request, each with its JSON pointer. */
  readonly problems: readonly Problem[]

  constructor(code: number, message: string, problems: readonly Problem[] = []) {
    super(message)
    this.code = codeName(code)
    this.problems = problems
  }
}

export function failureOf(body: unknown, status: string): ApiFailure {
  const { code, message, details } = (typeof body === 'object' && body !== null ? body : {}) as Record<string, unknown>
  const known = typeof code === 'number' && typeof message === 'string'
  return known ? new ApiFailure(code, message, problemsOf(details)) : new ApiFailure(2, `unexpected answer: ${status}`)
}

/** The violations of a google.rpc.BadRequest among the details of a failure. */
function problemsOf(details: unknown): Problem[] {
  type Detail = { fieldViolations?: { field?: string; description?: string }[] } | null
  const violations = (Array.isArray(details) ? (details as Detail[]) : []).flatMap(
    (detail) => detail?.fieldViolations ?? [],
  )
  return violations.map(({ field = '', description = '' }) => ({ pointer: field, message: description }))
}
