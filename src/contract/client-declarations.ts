/** Writes from the protos what the TypeScript client (clients/typescript) declares: messages as proto3 JSON, one function an operation. */
import type { Operation } from './operations.ts'
import { oneofsOf, reachedBy, requestName, typeName, words } from './reach.ts'
import { type EnumSchema, type FieldSchema, type MessageSchema, type Schema, TIMESTAMP } from './schema.ts'

/** The text of clients/typescript/src/types.ts. */
export function clientTypes(schema: Schema): string {
  const { requests, answers, enums } = reachedBy(schema)
  const nameOfRequest = (message: MessageSchema): string => requestName(message, answers)
  return [
    '/** Messages and enums of the API as JSON; generated from the protos by `npm run types`. */',
    "/** A number; those that JSON has not are strings. */\nexport type Double = number | 'NaN' | 'Infinity' | '-Infinity'",
    ...[...enums].map(enumText),
    ...[...answers].map((message) => messageText(message, typeName(message.name), typeName, false)),
    ...[...requests].map((message) =>
      messageText(message, nameOfRequest(message), (_, inner) => nameOfRequest(inner), true),
    ),
  ]
    .join('\n\n')
    .concat('\n')
}

/** The text of clients/typescript/src/operations.ts. */
export function clientOperations(schema: Schema, operations: readonly Operation[]): string {
  const { answers } = reachedBy(schema)
  const names = operations.flatMap(({ request, response }) => [requestName(request, answers), typeName(response.name)])
  return `/** One function an operation; generated from the protos by \`npm run types\`. */
import { type CallOptions, call } from './call.ts'
import type { Connection } from './connection.ts'
import { type Exchange, openSocket, type SocketOptions } from './socket.ts'
import { type MessageStream, type StreamOptions, stream } from './stream.ts'
import type { ${[...new Set(names)].sort().join(', ')} } from './types.ts'

${operations.map((operation) => functionText(operation, requestName(operation.request, answers))).join('\n\n')}
`
}

function functionText(operation: Operation, request: string): string {
  const { name, comment, kind, http } = operation
  const answer = typeName(operation.response.name)
  const forms = http.map(
    ({ verb, path, body }) => `'${verb} ${publicPath(operation.request, path)}${body ? ' *' : ''}'`,
  )
  const head = `${doc(comment, '')}export function ${name}(connection: Connection, `
  if (kind === 'bidi') {
    return `${head}options?: SocketOptions): Promise<Exchange<${request}, ${answer}>> {
  return openSocket(connection, ${forms[0]}, options)
}`
  }
  const empty = operation.request.fields.every((field) => !isDemanded(field)) ? ' = {}' : ''
  const [options, result, send] =
    kind === 'unary'
      ? ['CallOptions', `Promise<${answer}>`, 'call']
      : ['StreamOptions', `MessageStream<${answer}>`, 'stream']
  const parts = kind === 'unary' ? `[${partsOf(operation.response).join(', ')}], ` : ''
  return `${head}request: ${request}${empty}, options?: ${options}): ${result} {
  return ${send}(connection, [${forms.join(', ')}], ${parts}request, options)
}`
}

/**
 * What an answer is known by as a node's: the first of its lists, which are there when they are empty too, and of its texts, which are ids and secrets.
 * Fields that come to be added stand behind it, and nodes of earlier builds do not have them.
 */
function partsOf({ fields }: MessageSchema): string[] {
  const parts = [...fields]
    .sort((a, b) => a.number - b.number)
    .flatMap(({ key, repeated, mapKey, presence, type }) => {
      if (repeated) return [`'${key}[]'`]
      const isText = type.kind === 'scalar' && type.scalar === 'string'
      return isText && !presence && mapKey === undefined ? [`'${key}'`] : []
    })
  return parts.slice(0, 1)
}

function publicPath(request: MessageSchema, path: string): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => `{${request.byName.get(name)?.key ?? name}}`)
}

/** Whether a request without the field is refused, or means nothing: texts, and numbers that name something. */
function isDemanded({ presence, repeated, mapKey, type }: FieldSchema): boolean {
  if (presence || repeated || mapKey !== undefined || type.kind !== 'scalar') return false
  return type.scalar === 'string' || type.scalar === 'uint64'
}

function doc(comment: string, indent: string): string {
  const text = words(comment)
  return text === '' ? '' : `${indent}/** ${text} */\n`
}

function enumText({ comment, name, values }: EnumSchema): string {
  const names = Object.keys(values).map((value) => `'${value}'`)
  return `${doc(comment, '')}export type ${typeName(name)} = ${names.join(' | ')}`
}

type NameOf = (fullName: string, message: MessageSchema) => string

function messageText(message: MessageSchema, name: string, nameOf: NameOf, isRequest: boolean): string {
  const { comment, fields } = message
  if (fields.length === 0) return `${doc(comment, '')}export type ${name} = Record<string, never>`
  const oneofs = oneofsOf(message)
  const members = [...oneofs.values()].flat()
  const lines = fields.filter((field) => !members.includes(field)).map((field) => fieldText(field, nameOf, isRequest))
  const ofOneofs = [...oneofs].map(
    ([oneof, own]) =>
      `  // At most one of these (${oneof}).\n${own.map((field) => fieldText(field, nameOf, isRequest)).join('')}`,
  )
  return `${doc(comment, '')}export interface ${name} {\n${lines.join('')}${ofOneofs.join('')}}`
}

function fieldText(field: FieldSchema, nameOf: NameOf, isRequest: boolean): string {
  const plain = valueText(field, nameOf)
  const type = field.mapKey !== undefined ? `Record<string, ${plain}>` : field.repeated ? `${plain}[]` : plain
  const isOptional = isRequest ? !isDemanded(field) : field.presence
  // In a request `undefined` is what is left out.
  return `${doc(field.comment, '  ')}  ${field.key}${isOptional ? '?' : ''}: ${type}${isOptional && isRequest ? ' | undefined' : ''}\n`
}

function valueText({ type }: FieldSchema, nameOf: NameOf): string {
  if (type.kind === 'enum') return typeName(type.enum.name)
  if (type.kind === 'message') {
    return type.message.name === TIMESTAMP ? 'string' : nameOf(type.message.name, type.message)
  }
  switch (type.scalar) {
    case 'bool':
      return 'boolean'
    case 'double':
    case 'float':
      return 'Double'
    case 'int32':
    case 'uint32':
      return 'number'
    default:
      // 64-bit integers are digits, bytes are base64.
      return 'string'
  }
}
