/** Writes from the protos what is declared in TypeScript: what services receive and return (src/contract/types.ts), and the component keys. */
import { typeName } from './reach.ts'
import { type EnumSchema, type FieldSchema, type MessageSchema, type Schema, TIMESTAMP } from './schema.ts'

/** The text of src/dataplane/engine/component-keys.ts: the data plane reads no protos. */
export function componentKeys(schema: Schema): string {
  const { fields } = schema.messages.get('servicegrpc.pipeline.Component') as MessageSchema
  const keys = fields.map(({ name }) => `  '${name}',\n`).join('')
  return `/** The component keys of the configuration format; generated from the protos by declarations.ts. */

export const COMPONENT_KEYS = [
${keys}] as const
`
}

/** The text of src/contract/types.ts: every message and enum an operation can reach, and the operations by kind. */
export function declarations(schema: Schema): string {
  const requests = new Set<MessageSchema>()
  const reached = new Set<MessageSchema | EnumSchema>()
  const methods = schema.services.flatMap((service) => service.methods)
  for (const method of methods) reach(method.request, reached, requests)
  for (const method of methods) reach(method.response, reached)
  const parts = [
    '/** Requests and responses of every operation, as services see them; generated from the protos by declarations.ts. */',
  ]
  for (const type of reached) parts.push('values' in type ? enumText(type) : messageText(type, requests.has(type)))
  const unary = methods.filter((method) => !method.responseStream && !method.requestStream)
  const stream = methods.filter((method) => method.responseStream && !method.requestStream)
  const bidi = methods.filter((method) => method.responseStream && method.requestStream)
  for (const [name, comment, list] of [
    ['UnaryOperations', 'Operations with one request and one response.', unary],
    ['StreamOperations', 'Operations with one request and many messages.', stream],
    ['BidiOperations', 'Operations with messages both ways.', bidi],
  ] as const) {
    const lines = list.map(
      (method) =>
        `${doc(method.comment, '  ')}  ${method.name}: { request: ${typeName(method.request.name)}; response: ${typeName(method.response.name)} }\n`,
    )
    parts.push(`/** ${comment} */\nexport interface ${name} {\n${lines.join('')}}`)
  }
  return `${parts.join('\n\n')}\n`
}

function reach(message: MessageSchema, into: Set<MessageSchema | EnumSchema>, also?: Set<MessageSchema>): void {
  also?.add(message)
  if (into.has(message) || message.name === TIMESTAMP) return
  into.add(message)
  for (const field of message.fields) {
    if (field.type.kind === 'message') reach(field.type.message, into, also)
    else if (field.type.kind === 'enum') into.add(field.type.enum)
  }
}

function doc(comment: string, indent: string): string {
  const text = comment.replace(/\s*\n\s*/g, ' ').trim()
  return text === '' ? '' : `${indent}/** ${text} */\n`
}

function enumText(type: EnumSchema): string {
  const values = Object.keys(type.values).map((name) => `'${name}'`)
  return `${doc(type.comment, '')}export type ${typeName(type.name)} = ${values.join(' | ')}`
}

function messageText(message: MessageSchema, isRequest: boolean): string {
  const name = typeName(message.name)
  if (message.fields.length === 0) return `${doc(message.comment, '')}export type ${name} = Record<string, never>`
  const common = message.fields.filter((field) => field.oneof === undefined).map((field) => fieldText(field, isRequest))
  const oneofs = new Map<string, FieldSchema[]>()
  for (const field of message.fields) {
    if (field.oneof === undefined) continue
    const members = oneofs.get(field.oneof)
    if (members === undefined) oneofs.set(field.oneof, [field])
    else members.push(field)
  }
  const members = [...oneofs].map(([oneof, fields]) => {
    const lines = fields.map((field) => fieldText(field, isRequest))
    return fields.length === 1 ? lines[0] : `  // At most one of these (${oneof}).\n${lines.join('')}`
  })
  return `${doc(message.comment, '')}export interface ${name} {\n${common.join('')}${members.join('')}}`
}

function fieldText(field: FieldSchema, isRequest: boolean): string {
  const plain = valueText(field, isRequest)
  const type = field.mapKey !== undefined ? `Record<string, ${plain}>` : field.repeated ? `${bracket(plain)}[]` : plain
  const mark = field.presence ? '?' : ''
  return `${doc(field.comment, '  ')}  ${field.key}${mark}: ${type}${mark === '' ? '' : ' | undefined'}\n`
}

function bracket(type: string): string {
  return type.includes('|') ? `(${type})` : type
}

function valueText({ type }: FieldSchema, isRequest: boolean): string {
  if (type.kind === 'enum') return typeName(type.enum.name)
  if (type.kind === 'message') return type.message.name === TIMESTAMP ? 'Date' : typeName(type.message.name)
  if (type.scalar === 'string') return 'string'
  if (type.scalar === 'bool') return 'boolean'
  if (type.scalar === 'bytes') return 'Uint8Array'
  if (type.scalar === 'int64' || type.scalar === 'uint64') return isRequest ? 'bigint' : 'bigint | number'
  return 'number'
}
