/** The REST API as the commands call it: typed operations, server-sent events, failures that say what to do. */
import type * as T from '../services/types.ts'
import { Failure, messageOf } from './failure.ts'

/** A message as JSON carries it: dates, 64-bit integers and bytes are strings. */
export type Wire<M> = M extends Date | bigint | Uint8Array
  ? string
  : M extends string | number | boolean | undefined | null
    ? M
    : M extends readonly (infer U)[]
      ? Wire<U>[]
      : { [K in keyof M]: Wire<M[K]> }

export type Pipeline = Wire<T.Pipeline>
export type TelemetrySample = Wire<T.TelemetrySample>
export type LogMessage = Wire<T.LogMessage>
export type Node = Wire<T.Node>
/** What create and update send, without the node id. */
export type CreateSettings = Omit<Wire<T.CreatePipelineRequest>, 'nodeId'>
export type UpdateSettings = Omit<Wire<T.UpdatePipelineRequest>, 'nodeId' | 'id'>

const CODES = [
  'OK',
  'CANCELLED',
  'UNKNOWN',
  'INVALID_ARGUMENT',
  'DEADLINE_EXCEEDED',
  'NOT_FOUND',
  'ALREADY_EXISTS',
  'PERMISSION_DENIED',
  'RESOURCE_EXHAUSTED',
  'FAILED_PRECONDITION',
  'ABORTED',
  'OUT_OF_RANGE',
  'UNIMPLEMENTED',
  'INTERNAL',
  'UNAVAILABLE',
  'DATA_LOSS',
  'UNAUTHENTICATED',
]

/** The node answered with an error. */
export class ApiFailure extends Failure {
  /** Name of the google.rpc.Code. */
  readonly code: string

  constructor(code: number, message: string) {
    super(message)
    this.code = CODES[code] ?? 'UNKNOWN'
  }
}

function failureOf(body: unknown, status: string): ApiFailure {
  const { code, message } = (typeof body === 'object' && body !== null ? body : {}) as Record<string, unknown>
  const known = typeof code === 'number' && typeof message === 'string'
  return known ? new ApiFailure(code, message) : new ApiFailure(2, `unexpected answer: ${status}`)
}

const path = (...segments: string[]): string => `/v1/${segments.map(encodeURIComponent).join('/')}`

/** Default address of a node's HTTP listener. */
export const DEFAULT_URL = 'http://127.0.0.1:8769'

export class ApiClient {
  readonly url: string
  private readonly token: string | undefined

  /** `url` is the node's HTTP address; `token` a bearer token, needed from other machines. */
  constructor(url: string, token?: string) {
    this.url = url.replace(/\/+$/, '')
    this.token = token
  }

  private async fetch(method: string, target: string, body: unknown, signal?: AbortSignal): Promise<Response> {
    const headers: Record<string, string> = {}
    if (body !== undefined) headers['content-type'] = 'application/json'
    if (this.token) headers.authorization = `Bearer ${this.token}`
    try {
      return await fetch(this.url + target, {
        method,
        headers,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        ...(signal ? { signal } : {}),
      })
    } catch (error) {
      if (signal?.aborted) throw error
      const cause = (error as Error).cause as (NodeJS.ErrnoException & { errors?: Error[] }) | undefined
      const why = cause?.message || cause?.errors?.[0]?.message || messageOf(error)
      throw new Failure(
        `no penstock node answers at ${this.url} (${why}): start one with "penstock up", ` +
          'or say where it is with --url or PENSTOCK_URL',
      )
    }
  }

  /** One call; `body` undefined sends none. */
  async call<R>(method: string, target: string, body?: unknown): Promise<R> {
    const response = await this.fetch(method, target, body)
    const text = await response.text()
    let value: unknown
    try {
      value = text === '' ? {} : JSON.parse(text)
    } catch {
      value = undefined
    }
    if (!response.ok || value === undefined) throw failureOf(value, `${response.status} ${response.statusText}`)
    return value as R
  }

  /** Opens an event stream; ends when the server ends it or `signal` aborts, throws what an error event says. */
  async *stream<R>(target: string, signal: AbortSignal): AsyncGenerator<R> {
    try {
      const response = await this.fetch('GET', target, undefined, signal)
      if (!response.ok || !response.body) {
        const body = await response.json().catch(() => undefined)
        throw failureOf(body, `${response.status} ${response.statusText}`)
      }
      for await (const { event, data } of parseEvents(response.body)) {
        if (event === 'error') throw failureOf(JSON.parse(data), data)
        yield JSON.parse(data) as R
      }
    } catch (error) {
      if (signal.aborted) return
      if (error instanceof Failure) throw error
      throw new Failure(`the stream from ${this.url} broke off: ${messageOf(error)}`)
    }
  }

  getLocalNodeId(): Promise<Wire<T.GetLocalNodeIdResponse>> {
    return this.call('GET', '/v1/hub-client/local-node-id')
  }

  async getNodes(): Promise<Node[]> {
    return (await this.call<Wire<T.GetNodesResponse>>('GET', '/v1/nodes')).nodes
  }

  async getPipelines(node: string): Promise<Pipeline[]> {
    return (await this.call<Wire<T.GetPipelinesResponse>>('GET', path('nodes', node, 'pipelines'))).pipelines
  }

  async getPipelineById(node: string, id: string): Promise<Pipeline> {
    const answer = await this.call<Wire<T.GetPipelineByIdResponse>>('GET', path('nodes', node, 'pipelines', id))
    return answer.pipeline as Pipeline
  }

  async getPipelineByName(node: string, name: string): Promise<Pipeline> {
    const target = path('nodes', node, 'pipelines-by-name', name)
    return (await this.call<Wire<T.GetPipelineByNameResponse>>('GET', target)).pipeline as Pipeline
  }

  async createPipeline(node: string, settings: CreateSettings): Promise<Pipeline> {
    const target = path('nodes', node, 'pipelines')
    return (await this.call<Wire<T.CreatePipelineResponse>>('POST', target, settings)).pipeline as Pipeline
  }

  async updatePipeline(node: string, id: string, settings: UpdateSettings): Promise<Pipeline> {
    const target = path('nodes', node, 'pipelines', id)
    return (await this.call<Wire<T.UpdatePipelineResponse>>('PUT', target, settings)).pipeline as Pipeline
  }

  async deletePipeline(node: string, id: string): Promise<void> {
    await this.call('DELETE', path('nodes', node, 'pipelines', id))
  }

  /** Gives the id of the new run. */
  async startPipeline(node: string, id: string): Promise<string> {
    const target = path('nodes', node, 'pipelines', id, 'start')
    return (await this.call<Wire<T.StartPipelineResponse>>('POST', target, {})).runId
  }

  async stopPipeline(node: string, id: string): Promise<void> {
    await this.call('POST', path('nodes', node, 'pipelines', id, 'stop'), {})
  }

  async stopRun(node: string, run: string): Promise<void> {
    await this.call('POST', path('nodes', node, 'pipeline-runs', run, 'stop'), {})
  }

  streamPipelines(node: string, signal: AbortSignal): AsyncGenerator<Wire<T.StreamPipelinesEvent>> {
    return this.stream(path('streams', 'nodes', node, 'pipelines'), signal)
  }

  /** `lines`: past lines sent first. */
  openLogStream(
    node: string,
    run: string,
    lines: number,
    signal: AbortSignal,
  ): AsyncGenerator<Wire<T.LogStreamMessages>> {
    const target = path('streams', 'nodes', node, 'pipeline-runs', run, 'logs')
    return this.stream(lines > 0 ? `${target}?options.lines=${lines}` : target, signal)
  }

  openTelemetryStream(node: string, run: string, signal: AbortSignal): AsyncGenerator<TelemetrySample> {
    return this.stream(path('streams', 'nodes', node, 'pipeline-runs', run, 'telemetry'), signal)
  }
}

/** Reads server-sent events (WHATWG HTML, 9.2) from a byte stream; comments are skipped. */
export async function* parseEvents(body: AsyncIterable<Uint8Array>): AsyncGenerator<{ event: string; data: string }> {
  const decoder = new TextDecoder()
  let pending = ''
  let event = ''
  let data: string[] = []
  for await (const chunk of body) {
    pending += decoder.decode(chunk, { stream: true })
    // A CR at the very end may be half of a CRLF.
    const end = pending.endsWith('\r') ? pending.length - 1 : pending.length
    const lines = pending.slice(0, end).split(/\r\n|\n|\r/)
    pending = (lines.pop() as string) + pending.slice(end)
    for (const line of lines) {
      if (line === '') {
        if (data.length > 0) yield { event: event || 'message', data: data.join('\n') }
        event = ''
        data = []
        continue
      }
      const colon = line.indexOf(':')
      const field = colon < 0 ? line : line.slice(0, colon)
      const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '')
      if (field === 'data') data.push(value)
      else if (field === 'event') event = value
    }
  }
}
