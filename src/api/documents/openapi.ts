/** The HTTP API as an OpenAPI document (spec.openapis.org/oas/v3.1.1), made from the operations and the schema of configurations. */
import { type Code, codeNumbers } from '../../contract/errors.ts'
import { type JsonSchema, MessageSchemas } from '../../contract/json-schema.ts'
import type { HttpBinding, Operation } from '../../contract/operations.ts'
import { words } from '../../contract/reach.ts'
import type { FieldSchema, MessageSchema, Schema } from '../../contract/schema.ts'
import { STATUS_LINES } from '../errors.ts'
import { needsBody, ruled } from './body-rules.ts'
import { CONFIG_SCHEMA_NAME, configComponents } from './config-components.ts'
import { answerExample, bodyExample, errorExample, parameterExample } from './examples.ts'

export interface DocumentParts {
  readonly schema: Schema
  readonly operations: readonly Operation[]
  /** JSON Schema of pipeline configurations. */
  readonly configSchema: JsonSchema
  /** Of the node. */
  readonly version: string
}

const BASE = '#/components/schemas/'

/** Codes by HTTP status, lowest status first: what a failed call can be answered with. */
const CODES_BY_STATUS = new Map<string, Code[]>()
for (const [code, line] of Object.entries(STATUS_LINES).sort(([, a], [, b]) => (a < b ? -1 : 1))) {
  const status = line.slice(0, 3)
  CODES_BY_STATUS.set(status, [...(CODES_BY_STATUS.get(status) ?? []), code as Code])
}

/** Failures that are none of an operation, by HTTP status. */
const BEFORE_THE_OPERATION: Readonly<Record<string, string>> = {
  '413': 'The body is longer than 4 MiB (RESOURCE_EXHAUSTED).',
}

/** The OpenAPI 3.1 document, as plain data. */
export function openApi({ schema, operations, configSchema, version }: DocumentParts): JsonSchema {
  const messages = new MessageSchemas(schema, BASE, { jsonConfig: { $ref: BASE + CONFIG_SCHEMA_NAME } })
  const paths: Record<string, Record<string, JsonSchema>> = {}
  const bodies: Record<string, JsonSchema> = {}
  for (const operation of operations) {
    for (const [index, binding] of operation.http.entries()) {
      const path = publicPath(operation.request, binding.path)
      paths[path] ??= {}
      paths[path][binding.verb.toLowerCase()] = operationObject(operation, index, messages, bodies)
    }
  }
  return {
    openapi: '3.1.1',
    info: info(version),
    servers: [{ url: '/', description: 'The node that serves this document.' }],
    security: [{}, { bearer: [] }],
    tags: schema.services.map(({ name, comment }) => ({ name: shortName(name), description: words(comment) })),
    paths,
    components: {
      securitySchemes: {
        bearer: bearerScheme(),
      },
      schemas: { ...messages.all(), ...bodies, Error: errorSchema(), ...configComponents(configSchema) },
      responses: Object.fromEntries([...CODES_BY_STATUS.keys()].map((status) => [`E${status}`, errorResponse(status)])),
    },
  }
}

/** Who may call. */
export function bearerScheme(): JsonSchema {
  return {
    type: 'http',
    scheme: 'bearer',
    description: 'A token of `penstock token create`. Callers on the machine of the node need none unless it says so.',
  }
}

export function info(version: string): JsonSchema {
  return {
    title: 'penstock node',
    version,
    description:
      'The API of a node: its hub, its pipelines, their runs, logs and metrics. Bodies are proto3 JSON: 64-bit integers are strings, bytes are base64, timestamps RFC 3339; answers have every field, unset optional ones are left out.',
    license: { name: 'Apache-2.0', url: 'https://www.apache.org/licenses/LICENSE-2.0' },
  }
}

/** `servicegrpc.hub.HubServerService` without its package. */
function shortName(service: string): string {
  return service.slice(service.lastIndexOf('.') + 1)
}

/** A path with its parameters as JSON has their names: `/v1/nodes/{nodeId}`. */
export function publicPath(request: MessageSchema, path: string): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => `{${request.byName.get(name)?.key ?? name}}`)
}

/** The fields that a path names. */
export function fieldsInPath(request: MessageSchema, path: string): FieldSchema[] {
  return Array.from(path.matchAll(/\{(\w+)\}/g), ([, name]) => request.byName.get(name as string) as FieldSchema)
}

function operationObject(
  operation: Operation,
  index: number,
  messages: MessageSchemas,
  bodies: Record<string, JsonSchema>,
): JsonSchema {
  const binding = operation.http[index] as HttpBinding
  const { request, name, service, comment } = operation
  const inPath = fieldsInPath(request, binding.path)
  const rest = request.fields.filter((field) => !inPath.includes(field))
  const parameters = [
    ...inPath.map((field) => parameter(field, 'path', messages)),
    ...(binding.body || binding.transport === 'websocket'
      ? []
      : rest
          // Another form of the path is for the other members.
          .filter((field) => field.oneof === undefined || !inPath.some(({ oneof }) => oneof === field.oneof))
          .flatMap((field) => queryParameters(field, messages))),
  ]
  const [summary = name] = words(comment).split(/(?<=\.)\s/)
  const operationId = index === 0 ? name : `${name}${furtherName(binding, inPath)}`
  return {
    operationId,
    tags: [shortName(service)],
    summary: summary === '' ? name : summary.replace(/\.$/, ''),
    ...(comment === '' ? {} : { description: words(comment) }),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(binding.body ? { requestBody: requestBody(operation, operationId, inPath, messages, bodies) } : {}),
    responses: responses(operation, binding, messages),
  }
}

/** What tells a further form of an operation from its first one: getNodesSearch, stopPipelineByRunId. */
function furtherName({ verb, body }: HttpBinding, inPath: readonly FieldSchema[]): string {
  if (body) return verb === 'POST' ? 'Search' : verb
  const last = inPath.at(-1)?.key ?? verb
  return `By${last.charAt(0).toUpperCase()}${last.slice(1)}`
}

function parameter(
  field: FieldSchema,
  place: 'path' | 'query',
  messages: MessageSchemas,
  name = field.key,
): JsonSchema {
  const { description, ...schema } = messages.field(field, 'request')
  const example = parameterExample(name)
  return {
    name,
    in: place,
    ...(place === 'path' ? { required: true } : {}),
    ...(description === undefined ? {} : { description }),
    ...(field.repeated ? { style: 'form', explode: true } : {}),
    schema,
    ...(example === undefined ? {} : { example }),
  }
}

/** The parameters of a field in a query: those of a message after a dot. A map has no fixed names: the form with a body takes it. */
function queryParameters(field: FieldSchema, messages: MessageSchemas, prefix = ''): JsonSchema[] {
  const name = `${prefix}${field.key}`
  if (field.mapKey !== undefined) return []
  if (field.type.kind !== 'message') return [parameter(field, 'query', messages, name)]
  return field.type.message.fields.flatMap((inner) => queryParameters(inner, messages, `${name}.`))
}

/** A body that is a request without the fields of its path is one of `bodies`, by the name that generated clients show. */
function requestBody(
  { name, request }: Operation,
  operationId: string,
  inPath: readonly FieldSchema[],
  messages: MessageSchemas,
  bodies: Record<string, JsonSchema>,
): JsonSchema {
  let schema = ruled(name, messages.body(request, new Set(inPath.map((field) => field.name))))
  if (inPath.length > 0) {
    const bodyName = `${operationId.charAt(0).toUpperCase()}${operationId.slice(1)}Body`
    bodies[bodyName] = schema
    schema = { $ref: `${BASE}${bodyName}` }
  }
  const example = bodyExample(name)
  return {
    required: needsBody(name),
    content: { 'application/json': { schema, ...(example === undefined ? {} : { example }) } },
  }
}

function responses(operation: Operation, { transport, body }: HttpBinding, messages: MessageSchemas): JsonSchema {
  const failures = Object.fromEntries(
    [...CODES_BY_STATUS.keys()].map((status) => [status, { $ref: `#/components/responses/E${status}` }]),
  )
  const tooLong = body ? { '413': failure(BEFORE_THE_OPERATION['413'] as string) } : {}
  return { ...success(operation, transport, messages), ...sorted({ ...failures, ...tooLong }) }
}

function success(
  { name, response }: Operation,
  transport: HttpBinding['transport'],
  messages: MessageSchemas,
): JsonSchema {
  const schema = messages.answer(response)
  const example = answerExample(name)
  const shown = example === undefined ? {} : { example }
  if (transport === 'rest') {
    return { '200': { description: 'Done.', content: { 'application/json': { schema, ...shown } } } }
  }
  if (transport === 'websocket') {
    const description =
      'The WebSocket is open (RFC 6455); /v1/asyncapi.json says what goes over it. A token comes as the subprotocol `penstock.bearer.TOKEN` beside `penstock`.'
    return { '101': { description }, '426': failure('The request does not ask for a WebSocket.') }
  }
  const events = {
    type: 'string',
    description:
      'Server-sent events. The `data` of each is a message as JSON; an event of the type `error` has the Error that ends the stream. `: ready` is the first line, `: keep-alive` is written after 15 s of silence.',
    contentMediaType: 'application/json',
    contentSchema: schema,
  }
  return {
    '200': {
      description: 'The stream stands.',
      content: {
        'text/event-stream': {
          schema: events,
          ...(example === undefined ? {} : { example: `: ready\n\ndata: ${JSON.stringify(example)}\n\n` }),
        },
      },
    },
  }
}

function sorted(responses: JsonSchema): JsonSchema {
  return Object.fromEntries(Object.entries(responses).sort(([a], [b]) => (a < b ? -1 : 1)))
}

function errorResponse(status: string): JsonSchema {
  const codes = CODES_BY_STATUS.get(status) ?? []
  return failure(`${codes.join(', ')}.`, errorExample(codes[0] as Code))
}

function failure(description: string, example?: unknown): JsonSchema {
  const content = { schema: { $ref: `${BASE}Error` }, ...(example === undefined ? {} : { example }) }
  return { description, content: { 'application/json': content } }
}

export function errorSchema(): JsonSchema {
  return {
    type: 'object',
    description: 'Why a call failed.',
    properties: {
      code: {
        type: 'integer',
        enum: Object.values(codeNumbers).filter((number) => number !== 0),
        description: `google.rpc.Code: ${Object.entries(codeNumbers)
          .filter(([, number]) => number !== 0)
          .map(([name, number]) => `${number} ${name}`)
          .join(', ')}.`,
      },
      message: { type: 'string', description: 'For people: what was wrong and what to do about it.' },
      details: {
        type: 'array',
        description: 'google.rpc messages; of a request that is wrong one BadRequest with every problem.',
        items: {
          type: 'object',
          properties: {
            '@type': { type: 'string' },
            fieldViolations: {
              type: 'array',
              items: {
                type: 'object',
                properties: {
                  field: { type: 'string', description: 'JSON pointer of the field; empty: the whole request.' },
                  description: { type: 'string' },
                },
                required: ['field', 'description'],
              },
            },
          },
          required: ['@type'],
        },
      },
    },
    required: ['code', 'message', 'details'],
  }
}
