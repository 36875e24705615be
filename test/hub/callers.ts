import * as grpc from '@grpc/grpc-js'
import type { Fetch } from '@penstock/client'
import { nodeFetch } from '@penstock/client/node'
import { WebSocket } from 'ws'
import { decodeBinary } from '../../src/contract/binary-decode.ts'
import { encodeBinary } from '../../src/contract/binary-encode.ts'
import { codeName } from '../../src/contract/errors.ts'
import type { OperationName } from '../../src/contract/handlers.ts'
import { decodeJson } from '../../src/contract/json-decode.ts'
import { jsonEncoder } from '../../src/contract/json-encode.ts'
import { loadOperations, type Operation } from '../../src/contract/operations.ts'
import { type ConfigSources, loadConfig } from '../../src/node/config.ts'
import { createLog } from '../../src/node/log.ts'
import { type NodeOptions, startNode } from '../../src/node/node.ts'
import { RunningNode } from '../api/running-node.ts'
import { registry, testPool } from '../dataplane/running.ts'

// biome-ignore lint/suspicious/noExplicitAny: whatever the operation answers
type Reply = any

const operations = new Map<string, Operation>(loadOperations().map((operation) => [operation.name, operation]))

function operationOf(name: OperationName): Operation {
  return operations.get(name) as Operation
}

export { freeAddress } from '../../src/cli/free-address.ts'

/** Starts a node in this process, as the command line would with these flags and this configuration file. */
export async function startReal(
  directory: string,
  flags: Record<string, string> = {},
  file?: ConfigSources['file'],
  more: Pick<NodeOptions, 'shared' | 'clock' | 'log'> = {},
): Promise<RunningNode> {
  const {
    config,
    chosen,
    file: configFile,
  } = loadConfig({
    ...(file === undefined ? {} : { file }),
    flags: { 'data-dir': directory, http: '127.0.0.1:0', grpc: '127.0.0.1:0', ...flags },
  })
  const lines: string[] = []
  const log = createLog({ level: 'info', format: 'json', destination: { write: (line) => void lines.push(line) } })
  return new RunningNode(
    await startNode(config, {
      ...{
        log,
        pool: testPool(),
        registry,
        file: configFile,
        chosen: new Map([...chosen, ['access.loopback', 'this test']]),
      },
      ...more,
    }),
    lines,
  )
}

/** What a caller is told of a failure. */
export class Failed extends Error {
  readonly code: string
  /** Of HTTP. */
  readonly status: number | undefined
  constructor(code: number, message: string, status?: number) {
    super(message)
    this.code = codeName(code)
    this.status = status
  }
}

/** Messages of a stream one by one; `next` throws Failed when the stream failed, Error('the stream ended') when it just ended. */
export class Stream {
  readonly #messages: Reply[] = []
  #end: Error | undefined
  #wake: () => void = () => {}
  readonly #close: () => void

  constructor(close: () => void) {
    this.#close = close
  }

  push(message: Reply): void {
    this.#messages.push(message)
    this.#wake()
  }

  end(error: Error = new Error('the stream ended')): void {
    this.#end ??= error
    this.#wake()
  }

  async next(): Promise<Reply> {
    while (this.#messages.length === 0) {
      if (this.#end !== undefined) throw this.#end
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
    return this.#messages.shift()
  }

  get waiting(): number {
    return this.#messages.length
  }

  close(): void {
    this.#close()
  }
}

export interface Caller {
  readonly transport: string
  unary(name: OperationName, request?: object, signal?: AbortSignal): Promise<Reply>
  /** Resolves once the stream is ready. */
  stream(name: OperationName, request?: object): Promise<Stream>
  /** `answer` sends one message. Failures of single messages and of the stream arrive as messages `{ error: Failed }` where the transport can. */
  converse(name: OperationName): Promise<{ stream: Stream; answer(message: object): void; raw(text: string): void }>
  close(): void
}

/** What is used of an answer over HTTP. */
interface HttpAnswer {
  readonly status: number
  readonly body: unknown
  text(): Promise<string>
}

/**
 * REST, server-sent events and WebSockets. `form`: which of an operation's HTTP forms, counted from 0; `certificate`: of the server, in PEM, where it
 * speaks TLS.
 */
export function httpCaller({ node }: RunningNode, form = 0, certificate?: Buffer): Caller {
  const base = `${certificate === undefined ? 'http' : 'https'}://${node.http}`
  const fetching: Fetch = certificate === undefined ? fetch : nodeFetch({ ca: certificate.toString() })
  const begin = async (name: OperationName, request: object, signal?: AbortSignal): Promise<HttpAnswer> => {
    const operation = operationOf(name)
    const binding = operation.http[Math.min(form, operation.http.length - 1)] as Operation['http'][number]
    const rest = JSON.parse(jsonEncoder(operation.request)(request)) as Record<string, unknown>
    const path = binding.path.replaceAll(/\{(\w+)\}/g, (_all, field: string) => {
      const key = field.replaceAll(/_(\w)/g, (_match, letter: string) => letter.toUpperCase())
      const value = String(rest[key])
      delete rest[key]
      return encodeURIComponent(value)
    })
    const answer: HttpAnswer = await fetching(`${base}${path}${binding.body ? '' : queryOf(rest)}`, {
      method: binding.verb,
      headers: binding.body ? { 'content-type': 'application/json' } : {},
      ...(binding.body ? { body: JSON.stringify(rest) } : {}),
      ...(signal === undefined ? {} : { signal }),
    })
    const { status } = answer
    if (status === 200) return answer
    const { code, message } = JSON.parse(await answer.text()) as { code: number; message: string }
    throw new Failed(code, message, status)
  }
  return {
    transport: form === 0 ? 'HTTP' : 'HTTP body form',
    async unary(name, request = {}, signal) {
      const answer = await begin(name, request, signal)
      return decodeJson(operationOf(name).response, JSON.parse(await answer.text()))
    },
    async stream(name, request = {}) {
      const abort = new AbortController()
      const answer = await begin(name, request, abort.signal)
      const stream = new Stream(() => abort.abort())
      await new Promise<void>((ready) => void readEvents(answer, operationOf(name), stream, ready))
      return stream
    },
    converse(name) {
      const operation = operationOf(name)
      const socket = new WebSocket(
        `${base.replace('http', 'ws')}${operation.http[0]?.path}`,
        certificate === undefined ? {} : { ca: certificate },
      )
      const stream = new Stream(() => socket.close())
      socket.on('message', (data) => {
        const { result, error } = JSON.parse(String(data)) as { result?: unknown; error?: Reply }
        if (error !== undefined) stream.push({ error: new Failed(error.code, error.message) })
        else stream.push(decodeJson(operation.response, result))
      })
      socket.on('close', (code) => stream.end(code >= 4000 ? new Failed(code - 4000, 'closed') : undefined))
      socket.on('error', (error) => stream.end(error))
      const answer = (message: object) => socket.send(jsonEncoder(operation.request)(message))
      return new Promise((resolve) => {
        const done = () => resolve({ stream, answer, raw: (text) => socket.send(text) })
        socket.on('open', done)
        socket.on('error', done)
      })
    },
    close: () => {},
  }
}

/** A query holding these fields: lists by repeating, maps as `key[name].member`. */
function queryOf(fields: Record<string, unknown>): string {
  const query = new URLSearchParams()
  for (const [key, value] of Object.entries(fields)) {
    if (Array.isArray(value)) for (const item of value) query.append(key, String(item))
    else if (typeof value === 'object' && value !== null) {
      for (const [name, item] of Object.entries(value)) {
        if (typeof item !== 'object') query.append(`${key}.${name}`, String(item))
        else for (const [member, text] of Object.entries(item)) query.append(`${key}[${name}].${member}`, String(text))
      }
    } else query.append(key, String(value))
  }
  const text = query.toString()
  return text === '' ? '' : `?${text}`
}

/** `ready` is called at its first comment, and when it ends without one. */
async function readEvents(
  { body }: HttpAnswer,
  operation: Operation,
  stream: Stream,
  ready: () => void,
): Promise<void> {
  const decoder = new TextDecoder()
  let text = ''
  try {
    for await (const chunk of body as AsyncIterable<Uint8Array>) {
      text += decoder.decode(chunk, { stream: true })
      for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
        const block = text.slice(0, end).trim()
        text = text.slice(end + 2)
        if (block.startsWith(':')) {
          ready()
          continue
        }
        const data = JSON.parse(block.slice(block.indexOf('data:') + 5))
        if (block.startsWith('event: error')) stream.end(new Failed(data.code, data.message))
        else stream.push(decodeJson(operation.response, data))
      }
    }
    stream.end()
  } catch (error) {
    stream.end(error as Error)
  } finally {
    ready()
  }
}

const asIs = (bytes: Buffer) => bytes

/** `certificate`: of the server, in PEM, where it speaks TLS. */
export function grpcCaller({ node }: RunningNode, certificate?: Buffer): Caller {
  const { createInsecure, createSsl } = grpc.credentials
  const credentials = certificate === undefined ? createInsecure() : createSsl(certificate)
  const client = new grpc.Client(node.grpc as string, credentials)
  const encode = ({ request }: Operation, message: object) => encodeBinary(request, message)
  return {
    transport: 'gRPC',
    unary(name, request = {}, signal) {
      const operation = operationOf(name)
      return new Promise((resolve, reject) => {
        const call = client.makeUnaryRequest(
          operation.grpcPath,
          asIs,
          asIs,
          encode(operation, request),
          (error, reply) => {
            if (error !== null) reject(new Failed(error.code, error.details))
            else resolve(decodeBinary(operation.response, reply as Buffer))
          },
        )
        signal?.addEventListener('abort', () => call.cancel())
      })
    },
    stream(name, request = {}) {
      const operation = operationOf(name)
      const call = client.makeServerStreamRequest(operation.grpcPath, asIs, asIs, encode(operation, request))
      return new Promise((resolve, reject) => {
        const stream = new Stream(() => call.cancel())
        call.on('metadata', () => resolve(stream))
        call.on('data', (bytes: Buffer) => stream.push(decodeBinary(operation.response, bytes)))
        call.on('end', () => stream.end())
        call.on('error', (error: grpc.ServiceError) => {
          reject(new Failed(error.code, error.details))
          stream.end(new Failed(error.code, error.details))
        })
      })
    },
    converse(name) {
      const operation = operationOf(name)
      const call = client.makeBidiStreamRequest(operation.grpcPath, asIs, asIs)
      return new Promise((resolve) => {
        const stream = new Stream(() => call.cancel())
        const answer = (message: object) => call.write(encode(operation, message))
        const done = () => resolve({ stream, answer, raw: (text) => call.write(Buffer.from(text)) })
        call.on('metadata', done)
        call.on('data', (bytes: Buffer) => stream.push(decodeBinary(operation.response, bytes)))
        call.on('end', () => stream.end())
        call.on('error', (error: grpc.ServiceError) => {
          stream.end(new Failed(error.code, error.details))
          done()
        })
      })
    },
    close: () => client.close(),
  }
}
