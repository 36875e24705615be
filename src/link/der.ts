/** As much of DER (ITU-T X.690) as a certificate takes to be written. */

/** One value: its tag, its length, its content. */
function der(tag: number, ...content: readonly Uint8Array[]): Buffer {
  const length = content.reduce((sum, part) => sum + part.length, 0)
  if (length < 0x80) return Buffer.concat([Buffer.from([tag, length]), ...content])
  const bytes: number[] = []
  for (let rest = length; rest > 0; rest = Math.floor(rest / 256)) bytes.unshift(rest % 256)
  return Buffer.concat([Buffer.from([tag, 0x80 | bytes.length, ...bytes]), ...content])
}

export const sequence = (...content: readonly Uint8Array[]): Buffer => der(0x30, ...content)
export const set = (...content: readonly Uint8Array[]): Buffer => der(0x31, ...content)
export const octets = (content: Uint8Array): Buffer => der(0x04, content)
export const utf8 = (text: string): Buffer => der(0x0c, Buffer.from(text))
export const yes: Uint8Array = der(0x01, Buffer.from([0xff]))
/** A context-specific value, `[number]`, that holds others. */
export const context = (number: number, ...content: readonly Uint8Array[]): Buffer => der(0xa0 | number, ...content)
/** A context-specific value, `[number]`, of plain bytes. */
export const plain = (number: number, content: Uint8Array): Buffer => der(0x80 | number, content)

/** A number of at least 0 from its big-endian bytes. */
export function integer(bytes: Uint8Array): Buffer {
  let start = 0
  while (start < bytes.length - 1 && bytes[start] === 0) start++
  const digits = bytes.subarray(start)
  return (digits[0] as number) < 0x80 ? der(0x02, digits) : der(0x02, Buffer.from([0]), digits)
}

/** A bit string; `unused` bits of the last byte do not count. */
export function bits(bytes: Uint8Array, unused = 0): Buffer {
  return der(0x03, Buffer.from([unused]), bytes)
}

/** An object identifier in dotted form. */
export function oid(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number)
  const bytes: number[] = []
  for (const number of [40 * first + second, ...rest]) {
    const digits = [number & 0x7f]
    for (let left = number >> 7; left > 0; left >>= 7) digits.unshift(0x80 | (left & 0x7f))
    bytes.push(...digits)
  }
  return der(0x06, Buffer.from(bytes))
}

/** A time of a certificate: two digits of the year until 2049, four after (RFC 5280, section 4.1.2.5). */
export function time(date: Date): Buffer {
  const text = `${date.toISOString().replace(/[-:T]/g, '').slice(0, 14)}Z`
  return date.getUTCFullYear() < 2050 ? der(0x17, Buffer.from(text.slice(2))) : der(0x18, Buffer.from(text))
}

export function pem(label: string, bytes: Uint8Array): string {
  const lines = Buffer.from(bytes)
    .toString('base64')
    .replace(/.{64}(?=.)/g, '$&\n')
  return `-----BEGIN ${label}-----\n${lines}\n-----END ${label}-----\n`
}
