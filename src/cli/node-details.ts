/** Nodes as people read and write them: a row of a table, metadata as `key=value`. */
import type { Node } from '@penstock/client'
import { setOwn } from '../text/json-object.ts'
import { readJson } from '../text/json-text.ts'
import { UsageFailure } from './failure.ts'
import { named, paint } from './terminal.ts'

type Item = Node['metadata'] extends { items: Record<string, infer I> } | undefined ? I : never
export type MetadataItems = Record<string, Item>

const SERVICES = { HUB_SERVER: 'hub', PIPELINES: 'pipelines' } as const

const services = ({ services }: Node): string => services.map((service) => SERVICES[service]).join(', ')

/** `region=eu rack:=4`, as `metadataItems` reads it. */
export function metadataText(node: Node): string {
  return Object.entries(node.metadata?.items ?? {})
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, item]) => named(`${key}${itemText(item)}`))
    .join(' ')
}

function itemText(item: Item): string {
  if (item.stringValue !== undefined) return `=${item.stringValue}`
  if (item.bytesValue !== undefined) return `:={"bytesValue":"${item.bytesValue}"}`
  const value = item.intValue ?? item.doubleValue ?? item.boolValue
  // A whole number of type double keeps its type when it is read again.
  return `:=${item.doubleValue !== undefined && Number.isInteger(value) ? `${value}.0` : value}`
}

/** Reads `key=text` and `key:=value`, where value is JSON: 4, 2.5, true, "text" or {"bytesValue": "BASE64"}. */
export function metadataItems(given: readonly string[]): MetadataItems {
  const items: MetadataItems = {}
  for (const assignment of given) {
    const [, key, typed, value] = /^([^=]+?)(:?)=(.*)$/s.exec(assignment) ?? []
    if (key === undefined || value === undefined) {
      throw new UsageFailure(`"${assignment}" is no metadata: write it key=text or key:=4`)
    }
    setOwn(items, key, typed === '' ? { stringValue: value } : typedItem(assignment, value))
  }
  return items
}

function typedItem(assignment: string, text: string): Item {
  // Beyond 2^53 JSON numbers would lose digits.
  if (/^-?\d+$/.test(text)) return { intValue: text }
  const { value, problems } = readJson(text)
  if (problems.length > 0) {
    throw new UsageFailure(`"${assignment}": after := comes JSON; ${problems[0]?.message}`)
  }
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) {
      throw new UsageFailure(`"${assignment}": the number is too large: ${Number.MAX_VALUE} is the largest there is`)
    }
    return { doubleValue: value }
  }
  if (typeof value === 'boolean') return { boolValue: value }
  if (typeof value === 'string') return { stringValue: value }
  const bytes = (value as { bytesValue?: unknown } | null | undefined)?.bytesValue
  if (typeof bytes === 'string') return { bytesValue: bytes }
  throw new UsageFailure(`"${assignment}": after := comes a number, true, false, "text" or {"bytesValue": "BASE64"}`)
}

/** `now`, `12 s ago`, `3 h ago`. */
export function ago(timestamp: string | undefined, now = Date.now()): string {
  if (timestamp === undefined) return ''
  const seconds = Math.max(0, Math.round((now - Date.parse(timestamp)) / 1000))
  if (seconds < 2) return 'now'
  for (const [unit, size] of [
    ['d', 86_400],
    ['h', 3_600],
    ['min', 60],
  ] as const) {
    if (seconds >= 2 * size) return `${Math.floor(seconds / size)} ${unit} ago`
  }
  return `${seconds} s ago`
}

export const NODE_COLUMNS = [
  { title: 'NAME' },
  { title: 'ID', whole: true },
  { title: 'ONLINE' },
  { title: 'SERVICES' },
  { title: 'LAST SEEN' },
  { title: 'METADATA', wrap: true },
]

/** One row under NODE_COLUMNS. */
export function nodeRow(node: Node): string[] {
  const online = node.online ? paint('yes', 'green') : paint('no', 'red')
  return [
    named(node.name),
    node.id,
    online,
    services(node),
    node.online ? 'now' : ago(node.lastSeen),
    metadataText(node),
  ]
}
