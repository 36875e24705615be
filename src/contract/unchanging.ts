/** Objects that never change once they are made, so that what is encoded from them is encoded once. */

const texts = new WeakMap<object, string>()

/** Promises that `value`, and everything in it, stays as it is. Returns it. */
export function unchanging<T extends object>(value: T): T {
  texts.set(value, '')
  return value
}

/** `encode(value)`, kept with the value when it is unchanging. */
export function textOf<T extends object>(value: T, encode: (value: T) => string): string {
  const known = texts.get(value)
  if (known === undefined) return encode(value)
  if (known !== '') return known
  const text = encode(value)
  texts.set(value, text)
  return text
}
