/** A request object from the three parts of an HTTP request: path, query, JSON body. */
import { invalidArgument } from '../contract/errors.ts'
import { decodeJson, refuse } from '../contract/json-decode.ts'
import type { Problem } from '../text/pointer.ts'
import type { HttpRoute } from './http-routes.ts'
import { parseJson } from './json-parse.ts'
import { readQuery } from './query.ts'

/** Requests that their path says all of, by its parameters: a path asked for again is not read again. */
const ofPath = new WeakMap<Readonly<Record<string, string>>, Readonly<Record<string, unknown>>>()

/**
 * Reads the service object of a request, which is the same object for the same `path` where that is all there is to it: not to be changed. `path` holds the decoded path parameters by field name, `query` the raw query string, `body` the
 * raw body (empty: none). Throws INVALID_ARGUMENT with every problem.
 */
export function readRequest(
  { operation, binding }: HttpRoute,
  path: Readonly<Record<string, string>>,
  query: string,
  body: string,
): Readonly<Record<string, unknown>> {
  if (query !== '' || body !== '') return readParts({ operation, binding }, path, query, body)
  let request = ofPath.get(path)
  if (request === undefined) {
    request = Object.freeze(readParts({ operation, binding }, path, '', ''))
    ofPath.set(path, request)
  }
  return request
}

function readParts(
  { operation, binding }: HttpRoute,
  path: Readonly<Record<string, string>>,
  query: string,
  body: string,
): Record<string, unknown> {
  const { request } = operation
  const problems: Problem[] = []
  let object: Record<string, unknown> = {}
  const given = new Set(Object.keys(path).map((name) => request.byName.get(name)?.key ?? name))
  if (body.trim() !== '') {
    const parsed = parseJson(body)
    if (!binding.body && !isEmptyObject(parsed)) {
      throw invalidArgument('', `${binding.verb} ${binding.path} takes no body; leave it out or send {}`)
    }
    // What is no object is refused there, and never comes back.
    if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) return decodeJson(request, parsed)
    object = parsed as Record<string, unknown>
  }
  if (binding.body && query !== '') {
    problems.push({ pointer: '', message: 'takes its fields from the body; leave the query out' })
  } else if (query !== '') readQuery(request, query, object, problems, given)
  for (const name in path) {
    const value = path[name]
    const key = request.byName.get(name)?.key ?? name
    leaveOut(object, name, value, problems)
    if (key !== name) leaveOut(object, key, value, problems)
    object[key] = value
  }
  refuse(problems)
  return decodeJson(request, object, given)
}

/** Takes a field that the path names as well out of `object`; a value other than the path's is a problem. */
function leaveOut(object: Record<string, unknown>, spelling: string, value: unknown, problems: Problem[]): void {
  if (!Object.hasOwn(object, spelling)) return
  if (object[spelling] !== value) {
    problems.push({ pointer: `/${spelling}`, message: 'differs from the value in the path; leave it out' })
  }
  delete object[spelling]
}

function isEmptyObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length === 0
}
