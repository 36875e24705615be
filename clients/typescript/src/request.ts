/** From an operation's HTTP forms and a request to what is sent. */
import { type Connection, tokenOf } from './connection.ts'
import type { FetchInit } from './fetch.ts'

/** `GET /v1/nodes/{nodeId}`; ` *` at the end: the fields that are not in the path come as a JSON body, else in the query. */
export type Form = string

interface Parsed {
  readonly verb: string
  readonly path: string
  readonly hasBody: boolean
}

function parse(form: Form): Parsed {
  const [verb = '', path = '', star] = form.split(' ')
  return { verb, path, hasBody: star === '*' }
}

const parametersOf = (path: string): string[] => Array.from(path.matchAll(/\{(\w+)\}/g), ([, name]) => name as string)

/** The form to use: one whose path the request fills; with a body where fields are left that a query could not say. */
function choose(forms: readonly Form[], request: Readonly<Record<string, unknown>>): Parsed {
  const parsed = forms.map(parse)
  const filled = parsed.filter(({ path }) => parametersOf(path).every((name) => request[name] !== undefined))
  const form = filled.find(({ hasBody }) => hasBody) ?? filled[0]
  if (form !== undefined) return form
  const wanted = parsed.map(({ path }) => parametersOf(path).join(' and ')).join(', or ')
  throw new TypeError(`the request needs ${wanted}`)
}

/** The form that says a request by its path and query alone; undefined: its fields need a body. */
export function queryForm(forms: readonly Form[], request: object): Form | undefined {
  const named = forms.map(parse).flatMap(({ path }) => parametersOf(path))
  const isInPath = Object.keys(request).every((name) => named.includes(name))
  return forms.some((form) => parse(form).hasBody) && !isInPath ? undefined : forms.find((form) => !parse(form).hasBody)
}

/** Where and how to call. Throws TypeError when the request lacks what the path names, or has what no path can hold. */
export async function prepare(
  connection: Connection,
  forms: readonly Form[],
  request: object,
): Promise<{ url: string; init: FetchInit }> {
  const fields = request as Readonly<Record<string, unknown>>
  const { verb, path, hasBody } = choose(forms, fields)
  const named = parametersOf(path)
  const rest = Object.fromEntries(Object.entries(fields).filter(([name]) => !named.includes(name)))
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => segmentOf(name, String(fields[name])))
  const query = hasBody ? '' : queryOf(rest)
  const token = await tokenOf(connection)
  return {
    url: `${connection.url}${filled}${query}`,
    init: {
      method: verb,
      headers: {
        ...(hasBody ? { 'content-type': 'application/json' } : {}),
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      },
      ...(hasBody ? { body: JSON.stringify(rest) } : {}),
    },
  }
}

function segmentOf(name: string, value: string): string {
  // Written %2e too, fetch takes them as steps in the path and calls another one.
  if (value === '.' || value === '..') throw new TypeError(`${name} is ${value}, which the path of a URL cannot hold`)
  return encodeURIComponent(value)
}

/** `?options.lines=100`: members joined by dots, lists by repeating the name. */
function queryOf(fields: Readonly<Record<string, unknown>>): string {
  const query = new URLSearchParams()
  const add = (name: string, value: unknown): void => {
    if (value === undefined || value === null) return
    if (Array.isArray(value)) for (const item of value) add(name, item)
    else if (typeof value === 'object') for (const [key, item] of Object.entries(value)) add(`${name}.${key}`, item)
    else query.append(name, String(value))
  }
  for (const [name, value] of Object.entries(fields)) add(name, value)
  return query.size === 0 ? '' : `?${query}`
}
