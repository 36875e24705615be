/** JSON values that are never changed in place: members are found in either casing that configurations have, and keep the one they were given in. */

export type Json = null | boolean | number | string | readonly Json[] | JsonObject

export interface JsonObject {
  readonly [key: string]: Json
}

/** Steps from a value to one inside it: names of fields in snake_case, and indexes of lists. */
export type Path = readonly (string | number)[]

export function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function isList(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value)
}

/**
 * The value of a JSON text. Throws where it is none, and where a number is beyond the largest: that would be written back as null, which stands
 * for no value.
 */
export function readJson(text: string): Json {
  return JSON.parse(text, (name, value: Json) => {
    if (value !== Number.POSITIVE_INFINITY && value !== Number.NEGATIVE_INFINITY) return value
    throw new RangeError(`the number of ${JSON.stringify(name)} is beyond the largest that is read, some 1.8e308`)
  })
}

/** lowerCamelCase as protoc's json_name derives it from snake_case: `parity_2d_encoder` is `parity2dEncoder`. */
export function camelCase(name: string): string {
  return name.replace(/_+(.?)/g, (_, next: string) => next.toUpperCase())
}

/** The key under which `object` has the field `name`, in either casing; `name` when it has none. */
function keyOf(object: JsonObject, name: string): string {
  if (Object.hasOwn(object, name)) return name
  const camel = camelCase(name)
  return Object.hasOwn(object, camel) ? camel : name
}

/** The field `name` of `value`, in either casing; undefined: no such field, or null, which stands for none. */
export function fieldOf(value: Json | undefined, name: string): Json | undefined {
  if (!isObject(value)) return undefined
  const key = keyOf(value, name)
  return Object.hasOwn(value, key) ? (value[key] ?? undefined) : undefined
}

/** The value that `path` leads to; undefined: none. */
export function valueAt(value: Json | undefined, path: Path): Json | undefined {
  return path.reduce<Json | undefined>((at, step) => {
    if (typeof step === 'string') return fieldOf(at, step)
    return isList(at) ? (at[step] ?? undefined) : undefined
  }, value)
}

/** `object` with `key`, spelt exactly so, in its place or at the end; undefined takes it away. */
export function withMember(object: JsonObject, key: string, value: Json | undefined): JsonObject {
  if (value === undefined) return Object.fromEntries(Object.entries(object).filter(([name]) => name !== key))
  // Not by assignment: that of "__proto__" is no member.
  return Object.fromEntries([...new Map([...Object.entries(object), [key, value]])])
}

/** `object` with the member `from` called `to`, in its place; one that is called `to` already gives way. */
export function withRenamed(object: JsonObject, from: string, to: string): JsonObject {
  const others = Object.entries(object).filter(([name]) => name === from || name !== to)
  return Object.fromEntries(others.map(([name, value]) => [name === from ? to : name, value]))
}

/**
 * `value` with `to` at `path`; undefined takes the member or the item of the list away. What is missing on the way is made; an
 * index at the end of a list adds an item. Throws TypeError where something that is no object or list stands on the way.
 */
export function withValueAt(value: Json | undefined, path: Path, to: Json | undefined): Json | undefined {
  const [step, ...rest] = path
  if (step === undefined) return to
  if (typeof step === 'number') {
    const list = value ?? []
    if (!isList(list)) throw new TypeError(`there is no list for item ${step}`)
    const item = withValueAt(list[step], rest, to)
    return item === undefined
      ? list.filter((_, i) => i !== step)
      : [...list.slice(0, step), item, ...list.slice(step + 1)]
  }
  const object = value ?? {}
  if (!isObject(object)) throw new TypeError(`there is no object for ${step}`)
  const key = keyOf(object, step)
  const before = Object.hasOwn(object, key) ? object[key] : undefined
  if (before === undefined && to === undefined) return object
  return withMember(object, key, withValueAt(before ?? undefined, rest, to))
}

/** The JSON pointer (RFC 6901) of `path`. */
export function pointerOf(path: Path): string {
  return path.map((step) => `/${String(step).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
}

/** The steps of a pointer, all as text; of the empty one none. */
export function stepsOf(pointer: string): string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
}
