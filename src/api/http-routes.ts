/** From a method and a path to an operation: the HTTP forms of the contract as a tree of segments. */
import { ServiceError } from '../contract/errors.ts'
import type { HttpBinding, Operation } from '../contract/operations.ts'

export interface HttpRoute {
  readonly operation: Operation
  readonly binding: HttpBinding
}

interface Segment {
  readonly literals: Map<string, Segment>
  /** The segment that is a parameter. */
  parameter: Segment | undefined
  /** Routes that end here, by verb, with the names of their path parameters in order. */
  readonly routes: Map<string, HttpRoute & { readonly parameters: readonly string[] }>
}

export interface RouteFound {
  readonly kind: 'route'
  readonly route: HttpRoute
  readonly path: Readonly<Record<string, string>>
}

export type RouteMatch =
  | RouteFound
  /** The path is known, the method is not: those that are. */
  | { readonly kind: 'method'; readonly allow: readonly string[] }
  | { readonly kind: 'none' }
  /** A path parameter is not percent-encoded UTF-8. */
  | { readonly kind: 'malformed'; readonly segment: string }

/** What the HTTP library makes of bytes that are no UTF-8, such as a letter that a client has left in ISO 8859-1. */
export const REPLACEMENT = '\ufffd'

/** How many paths of each verb are remembered, and how long they may be. */
const MAX_RECENT_PATHS = 1_024
const MAX_RECENT_PATH_LENGTH = 256

/** The HTTP forms of all operations. */
export class HttpRoutes {
  readonly #root = segment()
  /** Matches of paths seen lately, by verb, then path: callers ask for the same ones again and again. */
  readonly #recent = new Map<string, Map<string, RouteFound>>()

  /** Throws when two operations claim the same method and path. */
  constructor(operations: readonly Operation[]) {
    for (const operation of operations) for (const binding of operation.http) this.#add({ operation, binding })
  }

  #add(route: HttpRoute): void {
    let at = this.#root
    const parameters: string[] = []
    for (const part of parts(route.binding.path)) {
      const parameter = /^\{(\w+)\}$/.exec(part)?.[1]
      if (parameter !== undefined) {
        parameters.push(parameter)
        at.parameter ??= segment()
        at = at.parameter
      } else {
        let next = at.literals.get(part)
        if (next === undefined) {
          next = segment()
          at.literals.set(part, next)
        }
        at = next
      }
    }
    const { verb, path } = route.binding
    if (at.routes.has(verb)) throw new Error(`two operations claim ${verb} ${path}`)
    at.routes.set(verb, { ...route, parameters })
  }

  /** Finds the route of an upper-case verb and a raw path, without its query. A literal segment goes before a parameter. */
  match(verb: string, path: string): RouteMatch {
    const known = this.recent(verb, path)
    if (known !== undefined) return known
    const match = this.#find(verb, path)
    if (match.kind === 'route' && path.length <= MAX_RECENT_PATH_LENGTH) this.#remember(verb, path, match)
    return match
  }

  /** What `match` found for the same verb and path lately; undefined: nothing, or it is not remembered. */
  recent(verb: string, path: string): RouteFound | undefined {
    return this.#recent.get(verb)?.get(path)
  }

  #remember(verb: string, path: string, match: RouteFound): void {
    const recent = this.#recent.get(verb)
    if (recent === undefined) this.#recent.set(verb, new Map([[path, match]]))
    else {
      if (recent.size >= MAX_RECENT_PATHS) recent.clear()
      recent.set(path, match)
    }
  }

  #find(verb: string, path: string): RouteMatch {
    const values: string[] = []
    const end = find(this.#root, parts(path), 0, values)
    if (end === undefined) return { kind: 'none' }
    const route = end.routes.get(verb) ?? (verb === 'HEAD' ? end.routes.get('GET') : undefined)
    if (route === undefined) {
      const verbs = [...end.routes.keys()]
      return { kind: 'method', allow: [...(verbs.includes('GET') ? ['HEAD'] : []), ...verbs, 'OPTIONS'].sort() }
    }
    const bound: Record<string, string> = {}
    for (const [index, name] of route.parameters.entries()) {
      const raw = values[index] as string
      if (raw.includes(REPLACEMENT)) return { kind: 'malformed', segment: raw }
      try {
        bound[name] = decodeURIComponent(raw)
      } catch {
        return { kind: 'malformed', segment: raw }
      }
    }
    return { kind: 'route', route, path: bound }
  }
}

function segment(): Segment {
  return { literals: new Map(), parameter: undefined, routes: new Map() }
}

function parts(path: string): string[] {
  return path.split('/').slice(1)
}

function find(at: Segment, path: readonly string[], index: number, values: string[]): Segment | undefined {
  if (index === path.length) return at.routes.size > 0 ? at : undefined
  const part = path[index] as string
  const literal = at.literals.get(part)
  if (literal !== undefined) {
    const end = find(literal, path, index + 1, values)
    if (end !== undefined) return end
  }
  // An empty segment is an empty value: the operation says what it thinks of it, as over gRPC.
  if (at.parameter === undefined) return undefined
  values.push(part)
  const end = find(at.parameter, path, index + 1, values)
  if (end === undefined) values.pop()
  return end
}

export const noSuchPath = (path: string): ServiceError =>
  new ServiceError('NOT_FOUND', `no such path: ${path.slice(0, 200)}`)

export const malformedSegment = (segment: string): ServiceError =>
  new ServiceError('INVALID_ARGUMENT', `the path segment ${segment} is not percent-encoded UTF-8`)
