/** A client of the pipelines operations over gRPC, made from the protos. */
import * as grpc from '@grpc/grpc-js'
import { readProtoFiles } from '../../src/contract/proto-files.ts'
import type { RunningNode } from './running-node.ts'

// biome-ignore lint/suspicious/noExplicitAny: messages as protobufjs decodes them
export type Reply = any

const service = readProtoFiles('servicegrpc').root.lookupService('servicegrpc.pipeline.PipelinesService')

/** Path, encoder and decoder of a method, straight from the proto. */
function methodOf(name: string) {
  const method = service.methods[name]
  method?.resolve()
  const { resolvedRequestType: request, resolvedResponseType: response } = method as NonNullable<typeof method>
  return {
    path: `/servicegrpc.pipeline.PipelinesService/${name}`,
    encode: (message: object) => Buffer.from(request?.encode(request.fromObject(message)).finish() as Uint8Array),
    decode: (bytes: Buffer): Reply =>
      response?.toObject(response.decode(bytes), { enums: String, longs: String, oneofs: true, arrays: true }),
  }
}

export class GrpcClient {
  readonly #client: grpc.Client
  readonly #nodeId: string

  constructor({ node }: RunningNode) {
    this.#client = new grpc.Client(node.grpc as string, grpc.credentials.createInsecure())
    this.#nodeId = node.id
  }

  call(name: string, request: Record<string, unknown> = {}): Promise<Reply> {
    return new Promise<Reply>((resolve, reject) => {
      const { path, encode, decode } = methodOf(name)
      this.#client.makeUnaryRequest(path, encode, decode, { node_id: this.#nodeId, ...request }, (error, reply) =>
        error ? reject(error) : resolve(reply),
      )
    })
  }

  /** The messages of a server stream, one by one; throws the stream's error. */
  follow(name: string, request: Record<string, unknown> = {}) {
    const { path, encode, decode } = methodOf(name)
    const stream = this.#client.makeServerStreamRequest(path, encode, decode, { node_id: this.#nodeId, ...request })
    stream.on('error', () => {})
    return { messages: stream[Symbol.asyncIterator](), stream }
  }

  close(): void {
    this.#client.close()
  }
}
