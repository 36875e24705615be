/** Bytes as text, in base64 (RFC 4648). */

/** The bytes of a text in either alphabet, padded or not, as the proto3 JSON mapping asks of readers; undefined when it is none. */
export function readBase64(text: string): Buffer | undefined {
  if (!/^[A-Za-z0-9+/_-]*={0,2}$/.test(text)) return undefined
  // Of a single character there is less than a byte.
  return text.replace(/=+$/, '').length % 4 === 1 ? undefined : Buffer.from(text, 'base64')
}
