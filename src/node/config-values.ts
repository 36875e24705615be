/** The kinds of values in the node's configuration: how each is read and what is said when it cannot be. */
import { isIP } from 'node:net'
import { resolve } from 'node:path'
import { domainToASCII } from 'node:url'
import { withoutBrackets } from '../contract/address.ts'
import type { NodeMetadataItem } from '../contract/types.ts'
import { hubAddress, MAX_ADDRESS_LENGTH } from '../link/hub-address.ts'
import { readBase64 } from '../text/base64.ts'
import { readDuration, writeDuration } from '../text/durations.ts'
import { isObject, setOwn } from '../text/json-object.ts'
import { readSize, writeSize } from '../text/sizes.ts'

/** Reads a value as YAML gave it, whole numbers as bigint; `base` is the directory that relative paths start from. */
export type Read<T> = (value: unknown, base: string) => { value: T } | { problem: string }

/**
 * How a value is typed where everything is text, in flags and variables: as it is, as a duration, as a flag that says true when it is bare, or
 * as YAML.
 */
export type Form = 'text' | 'duration' | 'switch' | 'yaml'

/** One kind of values. */
export interface Kind<T> {
  readonly form: Form
  readonly read: Read<T>
  /** The value as others may see it; absent: as it is. */
  readonly shown?: (value: unknown) => unknown
}

/** What `hubServer.cluster.name` may be long, characters. */
const MAX_CLUSTER_NAME_LENGTH = 64

export type TlsSetting = 'none' | 'auto' | { certificate: string; key: string }

export const bad = (problem: string) => ({ problem })

/** A kind whose values have no whole numbers that a double does not hold. */
function kind<T>(form: Form, read: Read<T>): Kind<T> {
  const number = (value: unknown) => (typeof value === 'bigint' ? Number(value) : value)
  return { form, read: (value, base) => read(Array.isArray(value) ? value.map(number) : number(value), base) }
}

export const text: Kind<string> = {
  form: 'text',
  read: (value) =>
    ['string', 'number', 'bigint'].includes(typeof value) ? { value: String(value) } : bad('must be text'),
}

export const boolean = kind<boolean>('switch', (value) =>
  typeof value === 'boolean' ? { value } : bad('must be true or false'),
)

export const path = kind<string>('text', (value, base) =>
  typeof value === 'string' && value !== '' ? { value: resolve(base, value) } : bad('must be a path'),
)

export const list = kind<string[]>('yaml', (value) => {
  const items = typeof value === 'string' ? value.split(',').map((item) => item.trim()) : value
  if (!Array.isArray(items) || !items.every((item) => typeof item === 'string' && item !== '')) {
    return bad('must be a list of names, as in [a.example, b.example]')
  }
  return { value: items }
})

/** Names and addresses of hosts, as a Host header has them. */
export const hostnames = kind<string[]>('yaml', (value) => {
  const items = list.read(value, '')
  if ('problem' in items) return items
  const read: string[] = []
  for (const item of items.value) {
    const name = hostnameOf(item)
    if (name === undefined) {
      return bad(
        `${JSON.stringify(item)} is no name of a host: write it without scheme, port and path and without *, as in node.example`,
      )
    }
    read.push(name)
  }
  return { value: read }
})

/** In lower case, an internationalised name in its ASCII form (RFC 5891), an IPv6 address in its shortest; without a trailing dot. */
function hostnameOf(text: string): string | undefined {
  const address = withoutBrackets(text)
  if (isIP(address) === 4) return address
  if (isIP(address) === 6) {
    return URL.canParse(`http://[${address}]`) ? new URL(`http://[${address}]`).hostname.slice(1, -1) : undefined
  }
  // It would take away what is behind a slash, and decode what is behind a %.
  if (/[/?#@:\\%\s]/.test(text)) return undefined
  const name = domainToASCII(text).replace(/\.$/, '')
  // RFC 1123, section 2.1; underscores are in use, though not of the letter.
  const isName =
    name.length <= 253 && name.split('.').every((label) => /^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$/.test(label))
  return isName ? name : undefined
}

/** Origins of web pages as browsers send them: `https://host`, `https://host:port`. */
export const origins = kind<string[]>('yaml', (value) => {
  const items = list.read(value, '')
  if ('problem' in items) return bad('must be a list of origins, as in [https://a.example, https://b.example:8443]')
  const read: string[] = []
  for (const item of items.value) {
    if (item === '*') return bad('* would serve the pages of everybody: name each origin, as in https://a.example')
    if (item === 'null') {
      return bad('null is the origin of every sandboxed page and every file: serve the page from an origin of its own')
    }
    const origin = originOf(item)
    if (origin === undefined) {
      return bad(
        `${JSON.stringify(item)} is no origin: write scheme, host and perhaps port, without a path, as in https://a.example:8443`,
      )
    }
    read.push(origin)
  }
  return { value: read }
})

/** The origin as browsers write it: lower case, without the scheme's own port. */
function originOf(text: string): string | undefined {
  if (!/^https?:\/\/[^/?#@\\\s*]+$/i.test(text)) return undefined
  try {
    return new URL(text).origin
  } catch {
    return undefined
  }
}

export function oneOf<const T extends string>(...choices: readonly T[]): Kind<T> {
  return kind('text', (value) => {
    const choice = choices.find((known) => known === value)
    return choice === undefined ? bad(`must be one of ${choices.join(', ')}`) : { value: choice }
  })
}

/** One of a few whole numbers. */
export function oneOfNumbers<const T extends number>(...choices: readonly T[]): Kind<number> {
  return kind('yaml', (value) => {
    const choice = choices.find((known) => known === value)
    return choice === undefined ? bad(`must be one of ${choices.join(', ')}`) : { value: choice }
  })
}

/** Part of the names of streams in NATS, which are subjects and directories there. */
export const clusterName = kind<string>('text', (value) =>
  typeof value === 'string' && /^[A-Za-z0-9_-]+$/.test(value) && value.length <= MAX_CLUSTER_NAME_LENGTH
    ? { value }
    : bad(`must be 1 to ${MAX_CLUSTER_NAME_LENGTH} letters, digits, - and _`),
)

/** `127.0.0.1:8769`, `[::1]:8769`, `node.example:8769`, or `none`; port 0 lets the system choose. */
export const address = kind<string>('text', (value) => {
  if (value === 'none') return { value }
  const match = typeof value === 'string' ? /^(\[[0-9a-fA-F:.]+\]|[^\s:[\]]+):(\d{1,5})$/.exec(value) : null
  if (match === null || Number(match[2]) > 65_535) return bad('must be host:port, as in 127.0.0.1:8769, or none')
  return { value: value as string }
})

/** The two parts of `host:port`, an IPv6 address without its brackets. */
export function hostAndPort(text: string): { address: string; port: number } {
  const colon = text.lastIndexOf(':')
  return { address: withoutBrackets(text.slice(0, colon)), port: Number(text.slice(colon + 1)) }
}

/** Whether of two `host:port` or `none` only one can be listened on: the same port, of the same host or of one that is all of them. */
export function isSameListener(one: string, other: string): boolean {
  if (one === 'none' || other === 'none') return false
  const [a, b] = [hostAndPort(one), hostAndPort(other)]
  if (a.port !== b.port || a.port === 0) return false
  const takes = (every: string, host: string) =>
    every === host || (every === '0.0.0.0' && isIP(host) === 4) || (every === '::' && isIP(host) !== 0)
  const [first, second] = [a.address.toLowerCase(), b.address.toLowerCase()]
  return takes(first, second) || takes(second, first)
}

/** `https://hub.example:8769`, perhaps with the path of a proxy. */
export const hubUrl = kind<string>('text', (value) => {
  if (typeof value !== 'string') return bad('must be an address, as in https://hub.example:8769')
  try {
    const { href } = hubAddress(value)
    return href.length > MAX_ADDRESS_LENGTH
      ? bad(`must have ${MAX_ADDRESS_LENGTH} characters at most`)
      : { value: href }
  } catch (error) {
    return bad((error as TypeError).message)
  }
})

/** `500ms`, `10s`, `5m`, `1h30m`, as milliseconds within [least, most]. */
export function duration(least: number, most: number): Kind<number> {
  return kind('duration', (value) => {
    const sum = typeof value === 'string' ? readDuration(value) : undefined
    if (sum === undefined) return bad('must be a duration, as in 500ms, 10s or 5m')
    if (sum < least || sum > most) return bad(`must be between ${writeDuration(least)} and ${writeDuration(most)}`)
    return { value: sum }
  })
}

/** A whole number within [least, most]. */
export function whole(least: number, most: number): Kind<number> {
  return kind('yaml', (value) =>
    Number.isInteger(value) && (value as number) >= least && (value as number) <= most
      ? { value: value as number }
      : bad(`must be a whole number from ${least} to ${most}`),
  )
}

/** `512KiB`, `4MiB`, `1GiB` or a number of bytes, as bytes within [least, most]. */
export function size(least: number, most: number): Kind<number> {
  return kind('text', (value) => {
    const bytes = typeof value === 'number' ? value : typeof value === 'string' ? readSize(value) : undefined
    if (bytes === undefined || !Number.isInteger(bytes)) return bad('must be a size, as in 512KiB, 4MiB or 65536')
    if (bytes < least || bytes > most) return bad(`must be between ${writeSize(least)} and ${writeSize(most)}`)
    return { value: bytes }
  })
}

export const tls = kind<TlsSetting>('yaml', (value, base) => {
  if (value === 'none' || value === 'auto') return { value }
  const { certificate, key, ...others } = (isObject(value) ? value : {}) as Record<string, unknown>
  if (typeof certificate !== 'string' || typeof key !== 'string' || Object.keys(others).length > 0) {
    return bad('must be none, auto, or {certificate: FILE, key: FILE}')
  }
  return { value: { certificate: resolve(base, certificate), key: resolve(base, key) } }
})

/** Text, whole numbers, fractions (`1.0` too) and booleans keep their type; bytes are written `{bytesValue: BASE64}`. */
export const metadata: Kind<Record<string, NodeMetadataItem>> = {
  form: 'yaml',
  read: (value) => {
    if (!isObject(value)) return bad('must be a map, as in {region: eu, rack: 4}')
    const items: Record<string, NodeMetadataItem> = {}
    for (const [key, item] of Object.entries(value)) {
      if (typeof item === 'bigint' && BigInt.asIntN(64, item) !== item) {
        return bad(`${key}: a whole number has 64 bits at most: write ${item}.0 for a fraction, or quote it for text`)
      }
      const read = metadataItem(item)
      if (read === undefined) return bad(`${key} must be text, a number, true or false, or {bytesValue: BASE64}`)
      setOwn(items, key, read)
    }
    return { value: items }
  },
  shown: (items) =>
    Object.fromEntries(
      Object.entries(items as Record<string, NodeMetadataItem>).map(([key, item]) => [key, shownItem(item)]),
    ),
}

/** An item as proto3 JSON has it. */
function shownItem({ intValue, doubleValue, bytesValue, ...item }: NodeMetadataItem): unknown {
  if (intValue !== undefined) return { intValue: String(intValue) }
  if (doubleValue !== undefined)
    return { doubleValue: Number.isFinite(doubleValue) ? doubleValue : String(doubleValue) }
  return bytesValue === undefined ? item : { bytesValue: Buffer.from(bytesValue).toString('base64') }
}

function metadataItem(item: unknown): NodeMetadataItem | undefined {
  if (typeof item === 'string') return { stringValue: item }
  if (typeof item === 'boolean') return { boolValue: item }
  if (typeof item === 'bigint') return { intValue: item }
  if (typeof item === 'number') return { doubleValue: item }
  if (isObject(item) && Object.keys(item).length === 1 && typeof item.bytesValue === 'string') {
    const bytesValue = readBase64(item.bytesValue)
    return bytesValue && { bytesValue }
  }
  return undefined
}
