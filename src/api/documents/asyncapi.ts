/** The event streams and the WebSocket as an AsyncAPI document (asyncapi.com/docs/reference/specification/v3.0.0). */
import { type JsonSchema, MessageSchemas } from '../../contract/json-schema.ts'
import type { HttpBinding, Operation } from '../../contract/operations.ts'
import { words } from '../../contract/reach.ts'
import { STREAMS_PATH } from '../streams-socket.ts'
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
    if (!isBoth(stream)) continue
    channels[socketName(stream)] = socketChannel(stream)
    actions[socketName(stream)] = action(stream, 'receive', 'message', socketName(stream))
  }
  channels.streams = streamsChannel()
  for (const kind of ['receive', 'send'] as const) {
    actions[kind === 'receive' ? 'streams' : 'streamsSend'] = {
      action: kind,
      channel: { $ref: '#/channels/streams' },
      summary: 'Any number of streams over one WebSocket.',
      messages: [{ $ref: `#/channels/streams/messages/${kind === 'receive' ? 'message' : 'request'}` }],
      security: [{ $ref: '#/components/securitySchemes/bearer' }],
    }
  }
  const document = {
    asyncapi: '3.0.0',
    info: info(version),
    servers: {
      events: { host: '127.0.0.1:8769', protocol: 'http', description: 'Server-sent events.' },
      socket: { host: '127.0.0.1:8769', protocol: 'ws', description: 'WebSockets.' },
    },
    defaultContentType: 'application/json',
    channels,
    operations: actions,
    components: {
      securitySchemes: { bearer: bearerScheme() },
      schemas: { ...messages.all(), Error: errorSchema() },
      messages: Object.fromEntries([
        ['streamsFrame', streamsFrame()],
        ['streamsRequest', streamsRequest()],
        ...streams.flatMap((stream) => {
          const answer = messages.answer(stream.response)
          if (stream.kind === 'server') {
            const event = [`${stream.name}Event`, eventMessage(stream, answer)]
            return isBoth(stream) ? [event, [`${stream.name}Frame`, streamFrame(stream, answer)]] : [event]
          }
          return [
            [`${stream.name}Frame`, frameMessage(stream, answer)],
            [`${stream.name}Request`, { title: 'Frame to the node', payload: messages.request(stream.request) }],
          ]
        }),
      ]),
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

/** Whether it is an event stream that is a WebSocket too, for whoever asks with an upgrade. */
function isBoth({ kind, http }: Operation): boolean {
  return kind === 'server' && http[0]?.verb === 'GET'
}

function socketName({ name }: Operation): string {
  return `${name}Socket`
}

/** The channel of an event stream as a WebSocket. */
function socketChannel(stream: Operation): JsonSchema {
  return {
    ...channel(stream),
    title: `${stream.name} as a WebSocket`,
    servers: [{ $ref: '#/servers/socket' }],
    messages: { message: { $ref: `#/components/messages/${stream.name}Frame` } },
    bindings: { ws: { method: 'GET' } },
  }
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

function action(
  { name, comment }: Operation,
  kind: 'receive' | 'send',
  message: string,
  channelName: string = name,
): JsonSchema {
  return {
    action: kind,
    channel: { $ref: `#/channels/${channelName}` },
    ...(comment === '' ? {} : { summary: words(comment).split(/(?<=\.)\s/)[0] as string }),
    messages: [{ $ref: `#/channels/${channelName}/messages/${message}` }],
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
    payload: { oneOf: [holding('result', answer), holding('error', { $ref: `${SCHEMAS}Error` })] },
    examples: [{ payload: { result: answerExample(name) } }],
  }
}

/** A frame of an event stream that is read as a WebSocket. */
function streamFrame({ name }: Operation, answer: JsonSchema): JsonSchema {
  return {
    title: 'Frame of the node',
    summary:
      'An empty one says that the stream stands: the first, and one after 15 s of silence. An error is the last, before the close code 4000 + code.',
    payload: {
      oneOf: [
        holding('result', answer),
        holding('error', { $ref: `${SCHEMAS}Error` }),
        { type: 'object', additionalProperties: false },
      ],
    },
    examples: [{ payload: {} }, { payload: { result: answerExample(name) } }],
  }
}

function holding(key: string, schema: JsonSchema): JsonSchema {
  return { type: 'object', properties: { [key]: schema }, required: [key], additionalProperties: false }
}

/** The WebSocket of many streams. */
function streamsChannel(): JsonSchema {
  const part = (key: string): JsonSchema => ({ $ref: `#/components/messages/streams${key}` })
  return {
    address: STREAMS_PATH,
    title: 'streams',
    description:
      'Any number of streams over one WebSocket: each is opened with an id of the client’s choice and the path, with query, by which it would be read with GET.',
    servers: [{ $ref: '#/servers/socket' }],
    messages: { message: part('Frame'), request: part('Request') },
    bindings: { ws: { method: 'GET' } },
  }
}

const STREAM_ID = { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER }

function streamsRequest(): JsonSchema {
  const member = (key: string, properties: JsonSchema): JsonSchema =>
    holding(key, { type: 'object', properties, required: Object.keys(properties), additionalProperties: false })
  return {
    title: 'Frame to the node',
    summary: 'An id may be taken again once the node has told the end of its stream.',
    payload: {
      oneOf: [member('open', { id: STREAM_ID, path: { type: 'string' } }), member('close', { id: STREAM_ID })],
    },
    examples: [{ payload: { open: { id: 1, path: '/v1/streams/nodes' } } }, { payload: { close: { id: 1 } } }],
  }
}

function streamsFrame(): JsonSchema {
  const error = { $ref: `${SCHEMAS}Error` }
  const ofStream = (properties: JsonSchema): JsonSchema => ({
    type: 'object',
    properties: { id: STREAM_ID, ...properties },
    required: ['id', ...Object.keys(properties)],
    additionalProperties: false,
  })
  return {
    title: 'Frame of the node',
    summary:
      'With an id alone: the stream stands. With a result: a message as its own channel has it. With an error, or closed: the stream is over. Without an id: an error of a frame that was refused, or, with nothing at all, that the socket is still there, after 15 s of silence.',
    payload: {
      oneOf: [
        ofStream({}),
        ofStream({ result: { type: 'object' } }),
        ofStream({ error }),
        ofStream({ closed: { type: 'object', additionalProperties: false } }),
        holding('error', error),
        { type: 'object', additionalProperties: false },
      ],
    },
    examples: [{ payload: { id: 1 } }, { payload: { id: 1, closed: {} } }],
  }
}
