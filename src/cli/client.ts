/** The REST API as the commands call it: typed operations, server-sent events, failures that say what to do. */
import type { IncomingMessage } from 'node:http'
import { text } from 'node:stream/consumers'
import { createParser } from 'eventsource-parser'
import type * as T from '../contract/types.ts'
import { messageOf } from '../text/error-message.ts'
import { ApiFailure, failureOf } from './api-failure.ts'
import { ApiConnection, type Credentials } from './connection.ts'
import { Failure } from './failure.ts'
import type {
  AuthenticationRequest,
  ConnectionState,
  CreateSettings,
  JsonForm,
  LocalNode,
  Node,
  NodeFilters,
  Pipeline,
  Run,
  TelemetrySample,
  UpdateSettings,
} from './messages.ts'
import { RequestSocket } from './request-socket.ts'

const statusOf = ({ statusCode, statusMessage }: IncomingMessage): string => `${statusCode} ${statusMessage}`

const path = (...segments: string[]): string => `/v1/${segments.map(encodeURIComponent).join('/')}`

/** Default address of a node's HTTP listener. */
export const DEFAULT_URL = 'http://127.0.0.1:8769'

export class ApiClient {
  readonly #connection: ApiConnection
  readonly #advice: string | undefined

  /** `url` is the node's HTTP or HTTPS address. */
  constructor(url: string, credentials: Credentials = {}) {
    this.#connection = new ApiConnection(url, credentials)
    this.#advice = credentials.advice
  }

  get url(): string {
    return this.#connection.url
  }

  /** One call; `body` undefined sends none. */
  async call<R>(method: string, target: string, body?: unknown, signal?: AbortSignal): Promise<R> {
    try {
      return await this.#send<R>(method, target, body, signal)
    } catch (error) {
      throw this.#advised(error)
    }
  }

  /** UNAUTHENTICATED, with what to do about it. */
  #advised(error: unknown): unknown {
    if (this.#advice === undefined || !(error instanceof ApiFailure) || error.code !== 'UNAUTHENTICATED') return error
    error.message = `${error.message}\n  ${this.#advice}`
    return error
  }

  async #send<R>(method: string, target: string, body?: unknown, signal?: AbortSignal): Promise<R> {
    const response = await this.#connection.request(method, target, body, signal)
    const content = await text(response)
    let value: unknown
    try {
      value = content === '' ? {} : JSON.parse(content)
    } catch {
      value = undefined
    }
    if (response.statusCode !== 200 || value === undefined) throw failureOf(value, statusOf(response))
    return value as R
  }

  /** Opens an event stream; ends when the server ends it or `signal` aborts, throws what an error event says. */
  async *stream<R>(target: string, signal: AbortSignal): AsyncGenerator<R> {
    try {
      yield* this.#read<R>(await this.#open(target, signal), signal)
    } catch (error) {
      if (!signal.aborted) throw error
    }
  }

  /** Fulfilled once the stream stands; throws what the node answers instead. */
  async #open(target: string, signal: AbortSignal): Promise<IncomingMessage> {
    const response = await this.#connection.request('GET', target, undefined, signal)
    if (response.statusCode === 200) return response
    let body: unknown
    try {
      body = JSON.parse(await text(response))
    } catch {}
    throw this.#advised(failureOf(body, statusOf(response)))
  }

  async *#read<R>(response: IncomingMessage, signal: AbortSignal): AsyncGenerator<R> {
    try {
      for await (const { event, data } of parseEvents(response)) {
        if (event === 'error') throw failureOf(JSON.parse(data), data)
        yield JSON.parse(data) as R
      }
    } catch (error) {
      if (signal.aborted) return
      if (error instanceof Failure) throw error
      throw new Failure(`the stream from ${this.url} broke off: ${messageOf(error)}`)
    }
  }

  getLocalNodeId(): Promise<LocalNode> {
    return this.call('GET', '/v1/hub-client/local-node-id')
  }

  /** Empty filters do not filter. */
  async getNodes(filters: NodeFilters = {}, signal?: AbortSignal): Promise<Node[]> {
    return (await this.call<JsonForm<T.GetNodesResponse>>('POST', '/v1/nodes/search', filters, signal)).nodes
  }

  streamNodes(signal: AbortSignal): AsyncGenerator<JsonForm<T.StreamNodesResponse>> {
    return this.stream(path('streams', 'nodes'), signal)
  }

  async getNode(node: string): Promise<Node> {
    return (await this.call<JsonForm<T.GetNodeResponse>>('GET', path('nodes', node))).node as Node
  }

  async setNode(node: string, details: { name: string; metadata: Node['metadata'] }): Promise<Node> {
    return (await this.call<JsonForm<T.SetNodeResponse>>('PUT', path('nodes', node), details)).node as Node
  }

  async removeNode(node: string): Promise<void> {
    await this.call('DELETE', path('nodes', node))
  }

  /** Waits for the operator's answer; aborting `signal` withdraws the request. UNAUTHENTICATED is what a rejected node is told. */
  async authenticateByRequest(hubServerAddress: string, signal: AbortSignal): Promise<void> {
    await this.#send('POST', '/v1/hub-client/authenticate-by-request', { hubServerAddress }, signal)
  }

  async disconnect(): Promise<void> {
    await this.call('POST', '/v1/hub-client/disconnect', {})
  }

  streamConnectionState(signal: AbortSignal): AsyncGenerator<JsonForm<T.StreamConnectionStateResponse>> {
    return this.stream('/v1/streams/hub-client/connection-state', signal)
  }

  /** The state now. */
  async connectionState(): Promise<ConnectionState> {
    const over = new AbortController()
    try {
      for await (const { state } of this.streamConnectionState(over.signal)) return state
      throw new Failure('the stream of the connection state ended before it began')
    } finally {
      over.abort()
    }
  }

  async getPendingAuthenticationRequests(): Promise<AuthenticationRequest[]> {
    const target = '/v1/hub-server/authentication-requests'
    return (await this.call<{ requests: AuthenticationRequest[] }>('GET', target)).requests
  }

  /** Opens the WebSocket on which nodes that ask to join are shown and answered. */
  async authenticationByRequests(): Promise<RequestSocket> {
    const socket = await this.#connection.webSocket('/v1/streams/hub-server/authentication-requests')
    try {
      return await RequestSocket.open(socket)
    } catch (error) {
      throw this.#advised(error)
    }
  }

  createToken(name: string): Promise<JsonForm<T.CreateTokenResponse>> {
    return this.call('POST', '/v1/access/tokens', { name })
  }

  async getTokens(): Promise<JsonForm<T.Token>[]> {
    return (await this.call<JsonForm<T.GetTokensResponse>>('GET', '/v1/access/tokens')).tokens
  }

  async revokeToken(name: string): Promise<void> {
    await this.call('DELETE', path('access', 'tokens', name))
  }

  async getPipelines(node: string, signal?: AbortSignal): Promise<Pipeline[]> {
    const target = path('nodes', node, 'pipelines')
    return (await this.call<JsonForm<T.GetPipelinesResponse>>('GET', target, undefined, signal)).pipelines
  }

  async getPipelineById(node: string, id: string): Promise<Pipeline> {
    const answer = await this.call<JsonForm<T.GetPipelineByIdResponse>>('GET', path('nodes', node, 'pipelines', id))
    return answer.pipeline as Pipeline
  }

  async getPipelineByName(node: string, name: string): Promise<Pipeline> {
    const target = path('nodes', node, 'pipelines-by-name', name)
    return (await this.call<JsonForm<T.GetPipelineByNameResponse>>('GET', target)).pipeline as Pipeline
  }

  /** The record of a run; undefined when the node that is asked leaves it out. */
  async getRun(node: string, id: string): Promise<Run | undefined> {
    const target = path('nodes', node, 'pipeline-runs', id)
    const { run, pipeline } = await this.call<JsonForm<T.GetPipelineByRunIdResponse>>('GET', target)
    return run ?? (pipeline?.currentRun?.id === id ? pipeline.currentRun : undefined)
  }

  /** The pipeline that a run belongs to; DEADLINE_EXCEEDED, after 2 s, where there is no such run. */
  async getPipelineByRunId(node: string, run: string): Promise<Pipeline> {
    const target = path('nodes', node, 'pipeline-runs', run)
    return (await this.call<JsonForm<T.GetPipelineByRunIdResponse>>('GET', target)).pipeline as Pipeline
  }

  async createPipeline(node: string, settings: CreateSettings): Promise<Pipeline> {
    const target = path('nodes', node, 'pipelines')
    return (await this.call<JsonForm<T.CreatePipelineResponse>>('POST', target, settings)).pipeline as Pipeline
  }

  async updatePipeline(node: string, id: string, settings: UpdateSettings): Promise<Pipeline> {
    const target = path('nodes', node, 'pipelines', id)
    return (await this.call<JsonForm<T.UpdatePipelineResponse>>('PUT', target, settings)).pipeline as Pipeline
  }

  /** What creating such a pipeline would be refused for, and what in it is hardly meant. */
  validatePipeline(node: string, settings: CreateSettings): Promise<JsonForm<T.ValidatePipelineResponse>> {
    return this.call('POST', path('nodes', node, 'pipelines').concat(':validate'), settings)
  }

  explainUpdate(node: string, id: string, settings: UpdateSettings): Promise<JsonForm<T.ExplainUpdateResponse>> {
    return this.call('POST', path('nodes', node, 'pipelines', id, 'explain-update'), settings)
  }

  async deletePipeline(node: string, id: string): Promise<void> {
    await this.call('DELETE', path('nodes', node, 'pipelines', id))
  }

  /** Gives the id of the new run. */
  async startPipeline(node: string, id: string): Promise<string> {
    const target = path('nodes', node, 'pipelines', id, 'start')
    return (await this.call<JsonForm<T.StartPipelineResponse>>('POST', target, {})).runId
  }

  async stopPipeline(node: string, id: string): Promise<void> {
    await this.call('POST', path('nodes', node, 'pipelines', id, 'stop'), {})
  }

  async stopRun(node: string, run: string): Promise<void> {
    await this.call('POST', path('nodes', node, 'pipeline-runs', run, 'stop'), {})
  }

  /** Resolves once every change from then on is told. */
  async streamPipelines(node: string, signal: AbortSignal): Promise<AsyncGenerator<JsonForm<T.StreamPipelinesEvent>>> {
    return this.#read(await this.#open(path('streams', 'nodes', node, 'pipelines'), signal), signal)
  }

  /** `lines`: past lines sent first. */
  openLogStream(
    node: string,
    run: string,
    lines: number,
    signal: AbortSignal,
  ): AsyncGenerator<JsonForm<T.LogStreamMessages>> {
    const target = path('streams', 'nodes', node, 'pipeline-runs', run, 'logs')
    return this.stream(lines > 0 ? `${target}?options.lines=${lines}` : target, signal)
  }

  openTelemetryStream(node: string, run: string, signal: AbortSignal): AsyncGenerator<TelemetrySample> {
    return this.stream(path('streams', 'nodes', node, 'pipeline-runs', run, 'telemetry'), signal)
  }

  /** `input`: what comes to the component, instead of what leaves it. */
  openCaptureStream(
    node: string,
    run: string,
    { component, input, snapLength }: { component: string; input: boolean; snapLength: number | undefined },
    signal: AbortSignal,
  ): AsyncGenerator<JsonForm<T.CapturedPackets>> {
    const query = new URLSearchParams({ component, side: input ? 'INPUT' : 'OUTPUT' })
    if (snapLength !== undefined) query.set('snapLength', String(snapLength))
    return this.stream(`${path('streams', 'nodes', node, 'pipeline-runs', run, 'capture')}?${query}`, signal)
  }
}

/** Reads server-sent events (WHATWG HTML, 9.2) from a byte stream; comments are skipped. */
export async function* parseEvents(body: AsyncIterable<Uint8Array>): AsyncGenerator<{ event: string; data: string }> {
  const decoder = new TextDecoder()
  let events: { event: string; data: string }[] = []
  const parser = createParser({ onEvent: ({ event = 'message', data }) => events.push({ event, data }) })
  let held = ''
  for await (const chunk of body) {
    // The parser keeps an event that ends with a lone CR at the end of a chunk until the next line ends: it is given LF only.
    const text = held + decoder.decode(chunk, { stream: true })
    held = text.endsWith('\r') ? '\r' : ''
    parser.feed(text.slice(0, text.length - held.length).replace(/\r\n?/g, '\n'))
    const whole = events
    events = []
    yield* whole
  }
}
