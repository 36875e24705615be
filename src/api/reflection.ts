/**
 * gRPC server reflection (https://github.com/grpc/grpc/blob/master/doc/server-reflection.md) of the files of descriptors.ts. @grpc/reflection would
 * make one file of each package, without what it imports and without options, which other makers' clients cannot load.
 */
import type * as grpc from '@grpc/grpc-js'
import { decodeBinary } from '../contract/binary-decode.ts'
import { encodeBinary } from '../contract/binary-encode.ts'
import { codeNumbers, ServiceError } from '../contract/errors.ts'
import { readSchema } from '../contract/load-schema.ts'
import type { MessageSchema } from '../contract/schema.ts'
import { type DescribedFile, describedFiles } from './descriptors.ts'
import { grpcFailure } from './errors.ts'

/** What a client asks: one member, `host` apart. */
interface Question {
  readonly fileByFilename?: string
  readonly fileContainingSymbol?: string
  readonly fileContainingExtension?: { readonly containingType: string; readonly extensionNumber: number }
  readonly allExtensionNumbersOfType?: string
  readonly listServices?: string
}

const VERSIONS = ['v1', 'v1alpha'] as const

export class Reflection {
  readonly #files: ReadonlyMap<string, DescribedFile>
  readonly #bySymbol: ReadonlyMap<string, DescribedFile>
  readonly #messages: ReadonlySet<string>

  /** Reads the proto files. */
  constructor() {
    const files = describedFiles()
    this.#files = new Map(files.map((file) => [file.name, file]))
    this.#bySymbol = new Map(files.flatMap((file) => file.symbols.map((symbol) => [symbol, file] as const)))
    this.#messages = new Set(files.flatMap((file) => file.messages))
  }

  /** Adds its service, in both versions, whose messages are the same. */
  addToServer(server: Pick<grpc.Server, 'addService'>): void {
    const { messages } = readSchema('grpc.reflection.v1')
    const [request, response] = ['Request', 'Response'].map((kind) =>
      messages.get(`grpc.reflection.v1.ServerReflection${kind}`),
    ) as [MessageSchema, MessageSchema]
    for (const version of VERSIONS) {
      server.addService(
        {
          ServerReflectionInfo: {
            path: `/grpc.reflection.${version}.ServerReflection/ServerReflectionInfo`,
            requestStream: true,
            responseStream: true,
            requestSerialize: (question: object) => encodeBinary(request, question),
            requestDeserialize: (bytes) => bytes,
            responseSerialize: (answer: object) => encodeBinary(response, answer),
            responseDeserialize: (bytes) => decodeBinary(response, bytes),
          },
        },
        {
          ServerReflectionInfo: (stream: grpc.ServerDuplexStream<Buffer, object>) => {
            stream.on('data', (bytes) => {
              try {
                // Questions wait until their answers are read.
                if (!stream.write(this.#answer(decodeBinary(request, bytes)))) stream.pause()
              } catch (error) {
                stream.emit('error', grpcFailure(error as ServiceError))
              }
            })
            stream.on('drain', () => stream.resume())
            stream.on('end', () => stream.end())
          },
        },
      )
    }
  }

  /** A question that cannot be answered is no failure of the stream: its answer says so. */
  #answer(question: Record<string, unknown>): object {
    const about = { validHost: question.host, originalRequest: question }
    try {
      return { ...about, ...this.#found(question) }
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error
      return { ...about, errorResponse: { errorCode: codeNumbers[error.code], errorMessage: error.message } }
    }
  }

  #found(question: Question): object {
    const { fileByFilename, fileContainingSymbol, fileContainingExtension, allExtensionNumbersOfType } = question
    if (fileByFilename !== undefined) {
      return this.#withImports(this.#files.get(fileByFilename), `no file ${fileByFilename}`)
    }
    if (fileContainingSymbol !== undefined) {
      return this.#withImports(this.#bySymbol.get(fileContainingSymbol), `no symbol ${fileContainingSymbol}`)
    }
    if (fileContainingExtension !== undefined) {
      const { containingType, extensionNumber } = fileContainingExtension
      const [file] = this.#extending(containingType).filter(({ number }) => number === extensionNumber)
      return this.#withImports(file?.file, `no extension ${extensionNumber} of ${containingType}`)
    }
    if (allExtensionNumbersOfType !== undefined) {
      if (!this.#messages.has(allExtensionNumbersOfType)) {
        throw new ServiceError('NOT_FOUND', `this node has no message ${allExtensionNumbersOfType}`)
      }
      const extensionNumber = this.#extending(allExtensionNumbersOfType).map(({ number }) => number)
      return { allExtensionNumbersResponse: { baseTypeName: allExtensionNumbersOfType, extensionNumber } }
    }
    if (question.listServices !== undefined) {
      const names = [...this.#files.values()].flatMap(({ services }) => services)
      return { listServicesResponse: { service: names.sort().map((name) => ({ name })) } }
    }
    throw new ServiceError(
      'INVALID_ARGUMENT',
      'the request asks for nothing; set one of file_by_filename, file_containing_symbol, file_containing_extension, all_extension_numbers_of_type and list_services',
    )
  }

  /** `file` and after it all that it imports, directly or not. Throws NOT_FOUND where there is none: this node has `what`. */
  #withImports(file: DescribedFile | undefined, what: string): object {
    if (file === undefined) throw new ServiceError('NOT_FOUND', `this node has ${what}`)
    const all = new Set([file])
    // A set goes on to what is added to it meanwhile.
    for (const { imports } of all) for (const name of imports) all.add(this.#files.get(name) as DescribedFile)
    return { fileDescriptorResponse: { fileDescriptorProto: [...all].map(({ bytes }) => bytes) } }
  }

  #extending(message: string): { number: number; file: DescribedFile }[] {
    return [...this.#files.values()].flatMap((file) =>
      file.extensions.filter(([extended]) => extended === message).map(([, number]) => ({ number, file })),
    )
  }
}
