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

/** `memberNamed` for objects and lists that do not change: of each the names are read once, however many tokens are looked for in it. */
export class Members {
  /** By the names in lowerCamelCase, of several the first. */
  readonly #names = new WeakMap<object, ReadonlyMap<string, string>>()

  named(container: object, token: string): string | undefined {
    if (Object.hasOwn(container, token)) return token
    let names = this.#names.get(container)
    if (names === undefined) {
      const keys = Object.keys(container).reverse()
      names = new Map(keys.map((name) => [camelCase(name), name]))
      this.#names.set(container, names)
    }
    return names.get(camelCase(token))
  }
}
