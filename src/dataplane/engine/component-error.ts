/** An error of one component of a run: says which, wherever it was thrown. */
import { codeOf, wordsOf } from '../../text/error-message.ts'

export class ComponentError extends Error {
  /** The component's name in the configuration. */
  readonly component: string
  /** The system's code ('EADDRINUSE'), where the cause has one. */
  code?: string

  constructor(component: string, key: string, cause: unknown) {
    super(`component "${component}" (${key}): ${wordsOf(cause)}`, { cause })
    this.name = 'ComponentError'
    this.component = component
    const code = codeOf(cause)
    if (code !== undefined) this.code = code
  }
}

/** Turns what was thrown in a component into an error that names it. */
export type Blame = (thrown: unknown) => ComponentError

/** For the component `name`; what was thrown in another one, further down the graph, has its name already. */
export function blameOf(name: string, key: string): Blame {
  return (thrown) => (thrown instanceof ComponentError ? thrown : new ComponentError(name, key, thrown))
}

/** `call`, whose errors name the component. */
export function blaming<A extends unknown[], R>(blame: Blame, call: (...given: A) => R): (...given: A) => R {
  return (...given) => {
    try {
      return call(...given)
    } catch (error) {
      throw blame(error)
    }
  }
}

/** Whether the system refused a call: the message says what and why, and where in the code it was made helps nobody. */
export function refusedBySystem(error: unknown): boolean {
  const code = error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined
  return code !== undefined && !code.startsWith('ERR_')
}

/** What was thrown, for the log; with where, unless the system refused a call. */
export function causeOf(error: unknown): string {
  const cause = error instanceof ComponentError ? error.cause : error
  if (!(cause instanceof Error)) return String(cause)
  return refusedBySystem(cause) ? wordsOf(cause) : (cause.stack ?? cause.message)
}
