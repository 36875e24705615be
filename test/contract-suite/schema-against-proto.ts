/** Compares a component's configuration schema with its proto message, field by field, both ways. */
import type { TSchema } from '@sinclair/typebox'
import type { FieldSchema, MessageSchema } from '../../src/contract/schema.ts'
import type { Annotations } from '../../src/dataplane/engine/schema.ts'

type Node = TSchema &
  Annotations & {
    properties?: Record<string, Node>
    patternProperties?: Record<string, Node>
    required?: string[]
    items?: Node
  }

const SCALARS: Readonly<Record<string, string>> = {
  int32: 'i32',
  uint32: 'u32',
  uint64: 'u64',
  double: 'double',
  float: 'float',
  bool: 'bool',
  string: 'string',
}

/** Where schema and message differ, in words; empty when they agree. */
export function differences(schema: TSchema, message: MessageSchema, at = ''): string[] {
  const node = schema as Node
  const properties = node.properties ?? {}
  const found: string[] = []
  for (const name of Object.keys(properties)) {
    if (!message.fields.some((field) => field.name === name)) found.push(`${at}/${name} is not in ${message.name}`)
  }
  for (const field of message.fields) {
    const property = properties[field.name]
    const where = `${at}/${field.name}`
    if (!property) {
      found.push(`${where} of ${message.name} is not in the schema`)
      continue
    }
    if (field.optional && node.required?.includes(field.name) && property.default === undefined) {
      found.push(`${where} is optional in ${message.name}, but the schema demands it`)
    }
    found.push(...fieldDifferences(property, field, where))
  }
  return found
}

function fieldDifferences(property: Node, field: FieldSchema, where: string): string[] {
  if (field.mapKey !== undefined) {
    const [values] = Object.values(property.patternProperties ?? {})
    return values ? valueDifferences(values, field, where) : [`${where} is a map, the schema has ${property.type}`]
  }
  if (field.repeated) {
    if (property.type !== 'array' || !property.items) return [`${where} is repeated, the schema has ${property.type}`]
    return valueDifferences(property.items, field, `${where}/0`)
  }
  return valueDifferences(property, field, where)
}

function valueDifferences(node: Node, { type }: FieldSchema, where: string): string[] {
  if (type.kind === 'message') {
    if (!node.properties) return [`${where} is a ${type.message.name}, the schema has no object there`]
    return differences(node, type.message, where)
  }
  if (type.kind === 'enum') {
    const short = type.enum.name.split('.').pop()
    const values = JSON.stringify(sorted(type.enum.values))
    if (node.proto !== short && node.proto !== type.enum.name) {
      return [`${where} is the enum ${short}, the schema says ${node.proto}`]
    }
    if (JSON.stringify(sorted(node.enumeration ?? {})) !== values) {
      return [`${where}: values of ${short} are ${values}, the schema has ${JSON.stringify(node.enumeration)}`]
    }
    return []
  }
  const expected = SCALARS[type.scalar] ?? type.scalar
  return node.proto === expected ? [] : [`${where} is ${expected}, the schema says ${node.proto}`]
}

function sorted(values: Readonly<Record<string, number>>): [string, number][] {
  return Object.entries(values).sort((a, b) => a[1] - b[1])
}
