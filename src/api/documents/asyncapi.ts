/** The event streams and the WebSocket as an AsyncAPI document (asyncapi.com/docs/reference/specification/v3.0.0). */
import { type JsonSchema, MessageSchemas } from '../../contract/json-schema.ts'
import type { HttpBinding, Operation } from '../../contract/operations.ts'
import { words } from '../../contract/reach.ts'
import { answerExample } from './examples.ts'
import { bearerScheme, type DocumentParts, errorSchema, fieldsInPath, info, publicPath } from './openapi.ts'

const SCHEMAS = '#/components/schemas/'

/** The AsyncAPI 3.0 document, as plain data: what a client of the node receives, and sends over the WebSocket. */
export function asyncApi({ schema, operations, version }: Omit<DocumentParts, 'configSchema'>): JsonSchema {
  const messages = new MessageSchemas(schema, SCHEMAS)
  const streams = operations.filter(({ kind }) => kind !== 'unary')
  const channels: Record<string, JsonSchema> = {}
  const actions: Record<string, JsonSchema> = {}
  for (const stream of streams) {
    channels[stream.name] = channel(stream)
    actions[stream.name] = action(stream, 'receive', 'message')
    if (stream.kind === 'bidi') actions[`${stream.name}Send`] = action(stream, 'send', 'request')
  }
  const document = {
    asyncapi: '3.0.0',
    info: info(version),
    servers: {
      events: { host: '127.0.0.1:8769', protocol: 'http', description: 'Server-sent events.' },
      socket: { host: '127.0.0.1:8769', protocol: 'ws', description: 'The WebSocket.' },
    },
    defaultContentType: 'application/json',
    channels,
    operations: actions,
    components: {
      securitySchemes: { bearer: bearerScheme() },
      schemas: { ...messages.all(), Error: errorSchema() },
      messages: Object.fromEntries(
        streams.flatMap((stream) => {
          const answer = messages.answer(stream.response)
          if (stream.kind === 'server') return [[`${stream.name}Event`, eventMessage(stream, answer)]]
          return [
            [`${stream.name}Frame`, frameMessage(stream, answer)],
            [`${stream.name}Request`, { title: 'Frame to the node', payload: messages.request(stream.request) }],
          ]
        }),
      ),
    },
  }
  return referencesAlone(document) as JsonSchema
}

/** AsyncAPI 3 has nothing beside a reference: what JSON Schema would read there is left out. */
function referencesAlone(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(referencesAlone)
  if (typeof value !== 'object' || value === null) return value
  if ('$ref' in value) return { $ref: value.$ref }
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, referencesAlone(item)]))
}

function channel({ name, kind, request, http, comment }: Operation): JsonSchema {
  const { path } = http[0] as HttpBinding
  const parameters = fieldsInPath(request, path)
  const isSocket = kind === 'bidi'
  const part = (key: string): JsonSchema => ({ $ref: `#/components/messages/${name}${key}` })
  return {
    address: publicPath(request, path),
    title: name,
    ...(comment === '' ? {} : { description: words(comment) }),
    servers: [{ $ref: `#/servers/${isSocket ? 'socket' : 'events'}` }],
    ...(parameters.length === 0
      ? {}
      : {
          parameters: Object.fromEntries(
            parameters.map((field) => [field.key, field.comment === '' ? {} : { description: words(field.comment) }]),
          ),
        }),
    messages: isSocket ? { message: part('Frame'), request: part('Request') } : { message: part('Event') },
    ...(isSocket ? { bindings: { ws: { method: 'GET' } } } : {}),
  }
}

function action({ name, comment }: Operation, kind: 'receive' | 'send', message: string): JsonSchema {
  return {
    action: kind,
    channel: { $ref: `#/channels/${name}` },
    ...(comment === '' ? {} : { summary: words(comment).split(/(?<=\.)\s/)[0] as string }),
    messages: [{ $ref: `#/channels/${name}/messages/${message}` }],
    security: [{ $ref: '#/components/securitySchemes/bearer' }],
  }
}

function eventMessage({ name }: Operation, answer: JsonSchema): JsonSchema {
  return {
    name: 'message',
    title: 'The data of an event',
    summary: 'An event of the type `error` has an Error in its place, and is the last one.',
    payload: answer,
    examples: [{ payload: answerExample(name) }],
  }
}

function frameMessage({ name }: Operation, answer: JsonSchema): JsonSchema {
  return {
    title: 'Frame of the node',
    summary:
      'An error stands for a frame that was refused, or, before the close code 4000 + code, for the failure of the whole.',
    payload: {
      oneOf: [
        { type: 'object', properties: { result: answer }, required: ['result'], additionalProperties: false },
        {
          type: 'object',
          properties: { error: { $ref: `${SCHEMAS}Error` } },
          required: ['error'],
          additionalProperties: false,
        },
      ],
    },
    examples: [{ payload: { result: answerExample(name) } }],
  }
}
