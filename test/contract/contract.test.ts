/** Holds the proto files against the tables of the specification, both ways: nothing missing, nothing more. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { loadSchema } from '../../src/contract/load-schema.ts'
import { type FieldSchema, type MessageSchema, TIMESTAMP } from '../../src/contract/schema.ts'
import { componentKeys, configurationEnums, configurationExtensions, configurationMessages } from './configuration.ts'
import { enums, messages, operations } from './operations.ts'

const schema = loadSchema()
const prefix = 'servicegrpc.'

const SCALARS: Readonly<Record<string, string>> = {
  i32: 'int32',
  u32: 'uint32',
  u64: 'uint64',
  i64: 'int64',
  double: 'double',
  float: 'float',
  bool: 'bool',
  string: 'string',
  bytes: 'bytes',
}

interface Shape {
  type: string
  label: '' | 'optional' | 'repeated' | 'map'
  oneof: string
}

/** The expected fields of a table row, by name. */
function expectedFields(row: string, owner: string): Record<string, Shape> {
  const scope = owner.slice(0, owner.indexOf('.', prefix.length))
  const full = (type: string): string => {
    if (SCALARS[type] !== undefined) return SCALARS[type]
    if (type.startsWith('google.') || type.startsWith(prefix)) return type
    // The logging level is the only type that the configuration takes from another package.
    return type === 'Level' ? 'servicegrpc.logging.Level' : `${scope}.${type}`
  }
  const fields: Record<string, Shape> = {}
  for (const entry of row.split(';').map((part) => part.trim())) {
    if (entry === '') continue
    const [head = '', ...rest] = entry.split(' ')
    let type = rest.join(' ') || 'string'
    let label: Shape['label'] = ''
    const map = /^map<string, (.+)>$/.exec(type)
    if (map?.[1] !== undefined) {
      label = 'map'
      type = map[1]
    } else if (type.endsWith('[]')) {
      label = 'repeated'
      type = type.slice(0, -2)
    } else if (head.endsWith('?')) label = 'optional'
    const path = head.replace('?', '').split('/')
    const name = path.pop() as string
    fields[name] = { type: full(type), label, oneof: path[0] ?? '' }
  }
  return fields
}

function actualFields(message: MessageSchema): Record<string, Shape> {
  return Object.fromEntries(message.fields.map((field) => [field.name, shape(field)]))
}

function shape(field: FieldSchema): Shape {
  const { type } = field
  const label = field.mapKey !== undefined ? 'map' : field.repeated ? 'repeated' : field.optional ? 'optional' : ''
  if (field.mapKey !== undefined) expect(field.mapKey).toBe('string')
  return {
    type: type.kind === 'scalar' ? type.scalar : type.kind === 'enum' ? type.enum.name : type.message.name,
    label,
    oneof: field.oneof ?? '',
  }
}

function camelCase(key: string): string {
  return key
    .split('_')
    .map((word) => (word === 'id' ? 'ID' : `${word.charAt(0).toUpperCase()}${word.slice(1)}`))
    .join('')
}

const expectedMessages: Record<string, string> = {
  ...Object.fromEntries(Object.entries(messages).map(([name, row]) => [prefix + name, row])),
  ...Object.fromEntries(Object.entries(configurationMessages).map(([name, row]) => [`${prefix}pipeline.${name}`, row])),
  'servicegrpc.pipeline.Component': componentKeys.map((key) => `${key}? ${camelCase(key)}`).join('; '),
}

/** Field numbers from here on are extensions'. */
const FIRST_EXTENSION = 1001
const extensions: Record<string, string> = {
  [`${prefix}logging.Options`]: 'past_only? bool',
  ...Object.fromEntries(
    Object.entries(configurationExtensions).map(([name, row]) => [`${prefix}pipeline.${name}`, row]),
  ),
}

const expectedEnums: Record<string, string> = {
  ...Object.fromEntries(Object.entries(enums).map(([name, row]) => [prefix + name, row])),
  ...Object.fromEntries(Object.entries(configurationEnums).map(([name, row]) => [`${prefix}pipeline.${name}`, row])),
}

describe('operations', () => {
  test('services and methods are those of the specification', () => {
    const actual = schema.services.map((service) => [service.name, service.methods.map((method) => method.name).sort()])
    const expected = Object.entries(operations).map(([name, methods]) => [name, Object.keys(methods).sort()])
    expect(Object.fromEntries(actual)).toEqual(Object.fromEntries(expected))
  })

  for (const service of schema.services) {
    for (const method of service.methods) {
      test(`${service.name}/${method.name}`, () => {
        expect({
          kind: method.requestStream ? 'bidi' : method.responseStream ? 'server' : 'unary',
          request: method.request.name,
          response: method.response.name,
          http: method.http.map((rule) => `${rule.verb} ${rule.path}${rule.body ? ' *' : ''}`),
        }).toEqual(
          ((expected) => ({
            kind: expected?.kind,
            request: prefix + expected?.request,
            response: prefix + expected?.response,
            http: expected?.http,
          }))(operations[service.name]?.[method.name]),
        )
        for (const rule of method.http) {
          for (const [, parameter = ''] of rule.path.matchAll(/\{(\w+)\}/g)) {
            expect(method.request.byName.has(parameter), `${rule.path} names no field of the request`).toBe(true)
          }
        }
      })
    }
  }
})

describe('messages', () => {
  test('are those of the specification, no more and no fewer', () => {
    const actual = [...schema.messages.keys()].filter((name) => name !== TIMESTAMP)
    expect(actual.sort()).toEqual(Object.keys(expectedMessages).sort())
  })

  test.each(Object.keys(expectedMessages))('%s', (name) => {
    const message = schema.messages.get(name)
    expect(message, 'missing').toBeDefined()
    if (message === undefined) return
    const specified = expectedFields(expectedMessages[name] ?? '', name)
    const extended = expectedFields(extensions[name] ?? '', name)
    expect(actualFields(message)).toEqual({ ...specified, ...extended })
    for (const { name: field, number } of message.fields) {
      expect(number >= FIRST_EXTENSION, `number ${number} of ${field}`).toBe(field in extended)
    }
    const numbers = message.fields.map((field) => field.number)
    expect(new Set(numbers).size, 'field numbers are distinct').toBe(numbers.length)
  })

  test('extensions are optional, and docs/extensions.md lists all of them and no others', () => {
    const page = readFileSync(new URL('../../docs/extensions.md', import.meta.url), 'utf8')
    const listed = [...page.matchAll(/^\| `(\w+)` +\| `(\w+)` /gm)].map(([, owner, field]) => `${owner}.${field}`)
    const wanted = Object.entries(extensions).flatMap(([name, row]) =>
      Object.entries(expectedFields(row, name)).map(([field, { label }]) => {
        expect(label, field).toBe('optional')
        return `${name.slice(name.lastIndexOf('.') + 1)}.${field}`
      }),
    )
    expect(listed.sort()).toEqual(wanted.sort())
  })

  test('no component is listed twice', () => {
    expect(new Set(componentKeys).size).toBe(componentKeys.length)
  })
})

describe('enums', () => {
  test('are those of the specification, no more and no fewer', () => {
    expect([...schema.enums.keys()].sort()).toEqual(Object.keys(expectedEnums).sort())
  })

  test.each(Object.keys(expectedEnums))('%s', (name) => {
    const values = (expectedEnums[name] ?? '').split(' ')
    expect(schema.enums.get(name)?.values).toEqual(Object.fromEntries(values.map((value, index) => [value, index])))
  })
})
