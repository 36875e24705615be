/** Objects that never change once they are made, so that what is encoded from them is encoded once. */

/** What has been encoded from an object. */
interface Encodings {
  text: string | undefined
  utf8: Uint8Array | undefined
  bytes: Uint8Array | undefined
}

const encodings = new WeakMap<object, Encodings>()

/** Promises that `value`, and everything in it, stays as it is. Returns it. */
export function unchanging<T extends object>(value: T): T {
  encodings.set(value, { text: undefined, utf8: undefined, bytes: undefined })
  return value
}

/** `encode(value)`, kept with the value when it is unchanging. */
export function textOf<T extends object>(value: T, encode: (value: T) => string): string {
  const known = encodings.get(value)
  if (known === undefined) return encode(value)
  known.text ??= encode(value)
  return known.text
}

/** `encode(value)` as UTF-8, kept with the value and owned by it; as text, and nothing is kept, when the value may change. */
export function utf8Of<T extends object>(value: T, encode: (value: T) => string): string | Uint8Array {
  const known = encodings.get(value)
  if (known === undefined) return encode(value)
  known.utf8 ??= new TextEncoder().encode(encode(value))
  return known.utf8
}

/** `encode(value)`, kept with the value and owned by it; undefined, and nothing is encoded, when the value may change. */
export function bytesOf<T extends object>(value: T, encode: (value: T) => Uint8Array): Uint8Array | undefined {
  const known = encodings.get(value)
  if (known === undefined) return undefined
  known.bytes ??= encode(value)
  return known.bytes
}
