/** Header names and values in the form that costs uWebSockets.js least: bytes, encoded once, where they are the same for every request. */

/** The UTF-8 bytes of a text in memory of their own. */
export function encoded(text: string): ArrayBuffer {
  const { buffer, byteOffset, byteLength } = new TextEncoder().encode(text)
  return buffer.slice(byteOffset, byteOffset + byteLength)
}

/** Headers that many answers have in common. */
export class FixedHeaders {
  readonly pairs: readonly (readonly [name: ArrayBuffer, value: ArrayBuffer])[]
  readonly fields: Readonly<Record<string, string>>

  constructor(fields: Readonly<Record<string, string>>) {
    this.fields = fields
    this.pairs = Object.entries(fields).map(([name, value]) => [encoded(name), encoded(value)] as const)
  }
}
