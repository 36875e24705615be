/** JSON objects whose keys come from outside. */
import { camelCase } from './names.ts'

/** Sets an own property, whatever its name: `__proto__` is a key like any other in data. */
export function setOwn(target: Record<string, unknown>, key: string, value: unknown): void {
  if (key === '__proto__') {
    Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true })
  } else target[key] = value
}

/** Neither null nor a list nor a value without keys. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** The name of the member of an object or list that `token` means, written in either casing; undefined: there is none. */
export function memberNamed(container: object, token: string): string | undefined {
  if (Object.hasOwn(container, token)) return token
  return Object.keys(container).find((name) => camelCase(name) === camelCase(token))
}
