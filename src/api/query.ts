/** Requests from path parameters and query strings: `metadataFilters[region].stringValue=eu`, repeated keys, dots. */

import type { FieldSchema, MessageSchema } from '../contract/schema.ts'
import { setOwn } from '../text/json-object.ts'
import { nearest } from '../text/names.ts'
import { below, type Problem } from '../text/pointer.ts'
import { REPLACEMENT } from './http-routes.ts'

/**
 * Adds the parameters of a raw query string (without `?`) to `target`, a JSON object of `message` as decodeJson reads it.
 * Names are lowerCamelCase or snake_case; problems carry the pointer of the field meant. `given`: keys of fields that the path says already, as
 * of decodeJson.
 */
export function readQuery(
  message: MessageSchema,
  query: string,
  target: Record<string, unknown>,
  problems: Problem[],
  given: ReadonlySet<string>,
): void {
  for (const pair of query.split('&')) {
    if (pair === '') continue
    const equals = pair.indexOf('=')
    const name = decode(equals < 0 ? pair : pair.slice(0, equals))
    const value = decode(equals < 0 ? '' : pair.slice(equals + 1))
    if (name === undefined || value === undefined) {
      problems.push({
        pointer: '',
        message: `the query parameter ${JSON.stringify(pair)} is not percent-encoded UTF-8`,
      })
      continue
    }
    setParameter(message, name, value, target, problems, given)
  }
}

function decode(text: string): string | undefined {
  if (text.includes(REPLACEMENT)) return undefined
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return undefined
  }
}

/** One step of a parameter's name: a field, with the key of a map. */
interface Step {
  name: string
  key: string | undefined
}

/** `a.b[k].c` as steps; undefined when it is malformed. A key ends at the `]` before a dot or the end, so it may hold any other. */
function steps(name: string): Step[] | undefined {
  const result: Step[] = []
  const step = /([^.[\]]+)(?:\[(.*?)\](?=\.|$))?(\.|$)/gsy
  while (step.lastIndex < name.length) {
    const match = step.exec(name)
    if (match === null) return undefined
    result.push({ name: match[1] as string, key: match[2] })
    if (match[3] === '.' && step.lastIndex === name.length) return undefined
  }
  return result.length === 0 ? undefined : result
}

function setParameter(
  message: MessageSchema,
  name: string,
  text: string,
  target: Record<string, unknown>,
  problems: Problem[],
  given: ReadonlySet<string>,
): void {
  const fail = (pointer: string, message: string): void => {
    problems.push({ pointer, message: `query parameter ${JSON.stringify(name)}: ${message}` })
  }
  const path = steps(name)
  if (path === undefined) {
    fail('', 'must be names joined by dots, a map key in brackets: `map[key].field`')
    return
  }
  let scope: MessageSchema | undefined = message
  let object = target
  let pointer = ''
  for (const [index, { name: step, key }] of path.entries()) {
    const field: FieldSchema | undefined = scope?.byName.get(step)
    if (scope === undefined || field === undefined) {
      const keys = scope?.fields.map((known) => known.key).filter((key) => index > 0 || !given.has(key)) ?? []
      const guess = nearest(step, keys)
      const known = keys.length === 0 ? 'none are taken here' : `known are ${keys.join(', ')}`
      fail(pointer, `unknown field ${JSON.stringify(step)}; ${guess === undefined ? known : `did you mean ${guess}?`}`)
      return
    }
    pointer = below(pointer, field.key)
    if ((key !== undefined) !== (field.mapKey !== undefined)) {
      fail(pointer, key === undefined ? `is a map: write ${field.key}[key]` : 'is no map: leave the brackets out')
      return
    }
    const isLast = index === path.length - 1
    const type: FieldSchema['type'] = field.type
    if (type.kind === 'message' ? isLast : !isLast) {
      fail(pointer, type.kind === 'message' ? 'name one of its fields after a dot' : 'has no fields of its own')
      return
    }
    if (key !== undefined) {
      object = child(object, field.key)
      pointer = below(pointer, key)
    }
    const slot = key ?? field.key
    if (!isLast) {
      if (field.repeated) {
        fail(pointer, 'a list of messages cannot be written in a query; use the body form')
        return
      }
      object = child(object, slot)
      scope = type.kind === 'message' ? type.message : undefined
    } else if (field.repeated) {
      const list = Object.hasOwn(object, slot) ? (object[slot] as unknown[]) : []
      list.push(leaf(field, text))
      setOwn(object, slot, list)
    } else if (Object.hasOwn(object, slot)) {
      fail(pointer, 'is given twice')
    } else setOwn(object, slot, leaf(field, text))
  }
}

function child(object: Record<string, unknown>, key: string): Record<string, unknown> {
  if (!Object.hasOwn(object, key)) setOwn(object, key, {})
  return object[key] as Record<string, unknown>
}

/** A leaf as JSON would hold it: everything but bool can be written as a string there. */
function leaf({ type }: FieldSchema, text: string): unknown {
  if (type.kind !== 'scalar') return text
  if (type.scalar === 'bool') return text === 'true' ? true : text === 'false' ? false : text
  // A plus that was not percent-encoded reads as a space.
  return type.scalar === 'bytes' ? text.replaceAll(' ', '+') : text
}
