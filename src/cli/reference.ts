/** Reads a component's schema and metrics as flat lists, for tables and reference pages. */
import type { AnyComponent } from '../dataplane/engine/component.ts'
import { entryReference } from '../dataplane/engine/entry-metrics.ts'
import type { MetricDeclaration } from '../dataplane/engine/metrics.ts'
import type { SchemaNode } from '../dataplane/engine/schema.ts'

export interface Field {
  /** `good_loss_prob`, `outputs[]`, `flows[].input`. */
  name: string
  type: string
  unit: string
  range: string
  /** '' when there is none. */
  default: string
  required: boolean
  /** A running component takes changes over. */
  live: boolean
  description: string
}

const digits = (value: number): string =>
  Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(6)))

function rangeOf(node: SchemaNode): string {
  const range = boundsOf(node)
  return node.zeroUnset ? `${range}; 0: unset` : range
}

function boundsOf(node: SchemaNode): string {
  if (node.enumeration) return Object.keys(node.enumeration).join(', ')
  const low = node.exclusiveMinimum === undefined ? node.minimum : undefined
  const high = node.exclusiveMaximum === undefined ? node.maximum : undefined
  const natural =
    node.proto === 'u64' ||
    (node.proto === 'u32' && low === 0 && high === 4294967295) ||
    (node.proto === 'i32' && low === -2147483648 && high === 2147483647)
  if (natural) return ''
  if (node.exclusiveMinimum !== undefined) {
    return `> ${digits(node.exclusiveMinimum)}${high === undefined ? '' : ` to ${digits(high)}`}`
  }
  if (low !== undefined && high !== undefined) return `${digits(low)} to ${digits(high)}`
  if (low !== undefined) return `≥ ${digits(low)}`
  if (high !== undefined) return `≤ ${digits(high)}`
  if (node.type === 'array' && node.minItems !== undefined && node.maxItems !== undefined) {
    const each = node.items ? rangeOf(node.items) : ''
    return `${node.minItems} to ${node.maxItems} entries${each && `, each ${each}`}`
  }
  return ''
}

function typeOf(node: SchemaNode): string {
  if (node.port) return node.port
  if (node.type === 'array')
    return `list of ${node.items?.type === 'object' ? 'objects' : typeOf(node.items as SchemaNode)}`
  if (node.type === 'object') return 'object'
  return node.proto ?? String(node.type ?? 'any')
}

/** Every field of a component's configuration, nested ones after their parent. */
export function fieldsOf(definition: AnyComponent): Field[] {
  const fields: Field[] = []
  const live = new Set<string>((definition.live ?? []) as string[])
  const walk = (node: SchemaNode, prefix: string, isLive: boolean): void => {
    for (const [key, child] of Object.entries(node.properties ?? {})) {
      const name = prefix + key
      const fieldLive = prefix === '' ? live.has(key) : isLive
      fields.push({
        name,
        type: typeOf(child),
        unit: child.unit ?? '',
        range: rangeOf(child),
        default: child.default === undefined ? '' : JSON.stringify(child.default),
        required: (node.required?.includes(key) ?? false) && child.default === undefined,
        live: fieldLive && !child.port && !definition.fixed?.includes(name),
        description: child.description ?? '',
      })
      if (child.properties) walk(child, `${name}.`, fieldLive)
      else if (child.items?.properties) walk(child.items, `${name}[].`, fieldLive)
    }
  }
  walk(definition.config as SchemaNode, '', false)
  return fields
}

export interface MetricReference {
  name: string
  kind: string
  unit: string
  help: string
  /** What it says of packets: created, consumed, drop, intended, held; '' for others. */
  role: string
}

/** The metrics that a component declares itself; those of places numbered from 0 as one: `stream_0..63_ssrc`; those of a list's entries as `carriers_0.._rtt`. */
export function metricsOf(definition: AnyComponent): MetricReference[] {
  const found = new Map<string, MetricReference & { places: number }>()
  for (const [name, { type, unit, help, role }] of Object.entries(
    definition.metrics as Record<string, MetricDeclaration>,
  )) {
    const pattern = name.replace(/_\d+_/, '_#_')
    const known = found.get(pattern)
    if (known) known.places++
    else found.set(pattern, { name, kind: type, unit, help, role: role ?? '', places: 1 })
  }
  const own = [...found.values()].map(({ places, ...metric }) => ({
    ...metric,
    name: places === 1 ? metric.name : metric.name.replace('_0_', `_0..${places - 1}_`),
  }))
  const ofEntries = entryReference(definition).map(([name, { type, unit, help }]) => ({
    ...{ name, kind: type, unit, help },
    role: '',
  }))
  return [...own, ...ofEntries]
}
