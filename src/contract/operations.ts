/** Every operation as the protos define it: messages, kind, gRPC path and HTTP forms. */
import type { OperationName } from './handlers.ts'
import { loadSchema } from './load-schema.ts'
import type { MessageSchema, MethodSchema, Schema } from './schema.ts'

type HttpTransport = 'rest' | 'sse' | 'websocket'

/** One HTTP form of an operation. */
export interface HttpBinding {
  /** GET, POST, PUT or DELETE. */
  readonly verb: string
  /** `/v1/nodes/{node_id}`; parameters fill whole segments. */
  readonly path: string
  /** Whether the fields that are not in the path come as a JSON body; otherwise they come in the query. */
  readonly body: boolean
  readonly transport: HttpTransport
}

export interface Operation {
  readonly name: OperationName
  /** What it does, in the words of the proto file. */
  readonly comment: string
  /** Full name of the gRPC service. */
  readonly service: string
  /** `/servicegrpc.hub.HubServerService/getNodes` */
  readonly grpcPath: string
  readonly request: MessageSchema
  readonly response: MessageSchema
  /** One request and one response, one request and many messages, messages both ways. */
  readonly kind: 'unary' | 'server' | 'bidi'
  readonly http: readonly HttpBinding[]
  /** Keys of the fields that name what the operation is about, as some path does: never empty, whichever way they come. */
  readonly identifiers: readonly string[]
}

let loaded: readonly Operation[] | undefined

/** All operations, in the order of the proto files. */
export function loadOperations(): readonly Operation[] {
  loaded ??= readOperations(loadSchema())
  return loaded
}

function readOperations(schema: Schema): Operation[] {
  return schema.services.flatMap((service) =>
    service.methods.map((method): Operation => {
      if (method.requestStream && !method.responseStream) {
        throw new Error(`${service.name}.${method.name}: client-streaming operations have no form here`)
      }
      const kind = method.requestStream ? 'bidi' : method.responseStream ? 'server' : 'unary'
      const transport = kind === 'unary' ? 'rest' : kind === 'server' ? 'sse' : 'websocket'
      return {
        name: method.name as OperationName,
        comment: method.comment,
        service: service.name,
        grpcPath: `/${service.name}/${method.name}`,
        request: method.request,
        response: method.response,
        kind,
        http: method.http.map((rule) => ({ ...rule, transport })),
        identifiers: identifiersOf(method),
      }
    }),
  )
}

function identifiersOf({ request, http }: MethodSchema): string[] {
  const names = http.flatMap(({ path }) => Array.from(path.matchAll(/\{(\w+)\}/g), ([, name]) => name as string))
  return [...new Set(names)].map((name) => request.byName.get(name)?.key ?? name)
}
