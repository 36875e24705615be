/** What real nodes answer to every operation, against the schemas of the documents that they serve. */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import {
  type Client,
  connect,
  createClient,
  PenstockError,
  type SocketLike,
} from '../../clients/typescript/src/index.ts'
import { loadOperations } from '../../src/contract/operations.ts'
import { type RunningNode, runNode, temporaryDirectory } from '../api/running-node.ts'
import { until } from '../harness/waiting.ts'

// biome-ignore lint/suspicious/noExplicitAny: JSON as it came over the wire
type Json = any

let hub: RunningNode
let edge: RunningNode
let document: Json
let validators: Ajv2020

beforeAll(async () => {
  hub = await runNode(temporaryDirectory(), { hub: 'true', 'node-name': 'hub' })
  edge = await runNode(temporaryDirectory(), { 'node-name': 'edge' })
  document = await (await fetch(`http://${hub.node.http}/v1/openapi.json`)).json()
  for (const schema of Object.values<Json>(document.components.schemas)) {
    // Answers of a later version may hold more; those of this one hold nothing that is not told.
    if (schema.properties !== undefined) schema.additionalProperties = false
  }
  validators = new Ajv2020({ strict: false, allErrors: true })
  for (const format of ['int32', 'date-time']) {
    validators.addFormat(format, format === 'int32' ? true : (text) => !Number.isNaN(Date.parse(text)))
  }
  validators.addSchema(document, 'openapi')
})
afterAll(async () => {
  await edge.node.close()
  await hub.node.close()
})

/** Names of operations of which an answer has been held against its schema, and the statuses of each. */
const seen = new Map<string, Set<number>>()

function check(schema: Json, value: unknown, what: string): void {
  const reference = JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"openapi#/'))
  const validate: ValidateFunction = validators.compile(reference)
  expect(validate(value), `${what}: ${JSON.stringify(validate.errors)} in ${JSON.stringify(value)}`).toBe(true)
}

/** The operation of the document that a request is one of. */
function documented(method: string, url: string): Json {
  const parts = new URL(url).pathname.split('/')
  for (const [path, verbs] of Object.entries<Json>(document.paths)) {
    const pattern = path.split('/')
    const isIt =
      pattern.length === parts.length &&
      pattern.every((part, i) => part === parts[i] || (/^\{\w+\}$/.test(part) && parts[i] !== 'search'))
    if (isIt && verbs[method.toLowerCase()] !== undefined) return verbs[method.toLowerCase()]
  }
  throw new Error(`${method} ${url} is not in the document`)
}

/** A fetch that holds what comes back against the document. */
const checkedFetch: typeof fetch = async (input, init) => {
  const url = String(input)
  const operation = documented(init?.method ?? 'GET', url)
  const body = init?.body as string | undefined
  if (body !== undefined)
    check(
      operation.requestBody.content['application/json'].schema,
      JSON.parse(body),
      `request of ${operation.operationId}`,
    )
  const response = await fetch(input, init)
  const { status } = response
  const known = operation.responses[status]
  expect(known, `${operation.operationId} answered ${status}`).toBeDefined()
  const answer = known.$ref === undefined ? known : document.components.responses[known.$ref.split('/').at(-1)]
  const type = response.headers.get('content-type') ?? ''
  expect(Object.keys(answer.content), `${operation.operationId} ${status}`).toEqual([type])
  const { schema } = answer.content[type]
  const note = () => seen.set(operation.operationId, (seen.get(operation.operationId) ?? new Set()).add(status))
  if (type === 'application/json') {
    const text = await response.text()
    check(schema, JSON.parse(text), `${operation.operationId} ${status}`)
    note()
    return new Response(text, { status, headers: response.headers })
  }
  let left = ''
  const decoder = new TextDecoder()
  const checked = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      left += decoder.decode(chunk, { stream: true })
      const events = left.split('\n\n')
      left = events.pop() as string
      for (const event of events) {
        if (!event.startsWith('data: ')) continue
        check(schema.contentSchema, JSON.parse(event.slice(6)), operation.operationId)
        note()
      }
      controller.enqueue(chunk)
    },
  })
  return new Response(response.body?.pipeThrough(checked) ?? null, { status, headers: response.headers })
}

const webSocket = (url: string, protocols: string[]) => new WebSocket(url, protocols) as unknown as SocketLike
const clientOf = ({ node }: RunningNode): Client =>
  createClient({ ...connect({ url: `http://${node.http}` }), fetch: checkedFetch, webSocket })

/** The first message of a stream, which is left then. */
async function first<Message>(stream: AsyncGenerator<Message, void, undefined>): Promise<Message> {
  for await (const message of stream) return message
  throw new Error('the stream has ended')
}

const config = (seed: number) =>
  JSON.stringify({
    engine_config: {
      pipeline: {
        source: { throughput_traffic_source: { output: 'a', throughput_mbit: 1, payload_size: 200 } },
        loss: { uniform_loss: { input: 'a', output: 'b', loss_prob: 0.1, seed } },
        sink: { traffic_sink: { input: 'b' } },
      },
    },
    kpis: { metrics: [{ id: 'rate', value: { expression: 'rate({sink/input_bytes}) * 8', unit: 'bit/s' } }] },
  })

test('the hub: joining, nodes, streams of both, leaving', async () => {
  const [atHub, atEdge] = [clientOf(hub), clientOf(edge)]
  expect((await atEdge.getLocalNodeId({})).isAuthenticated).toBe(false)
  await expect(atEdge.getNodes({})).rejects.toMatchObject({ code: 'FAILED_PRECONDITION', status: 400 })

  const requests = await atHub.authenticationByRequests()
  const nodes = atHub.streamNodes({ serviceFilters: ['PIPELINES'] })
  expect((await nodes.next()).value?.initialResponse?.nodes).toHaveLength(1)
  const joining = atEdge.authenticateByRequest({ hubServerAddress: `http://${hub.node.http}` })
  for await (const request of requests) {
    check({ $ref: '#/components/schemas/AuthenticationByRequestRequest' }, request, 'request to join')
    expect((await atHub.getPendingAuthenticationRequests({})).requests).toEqual([request])
    requests.send({ requestId: request.requestId, accept: true })
    break
  }
  await joining
  seen.set('authenticationByRequests', new Set([101]))
  expect((await nodes.next()).value?.updateResponse?.authenticatedNode?.name).toBe('edge')
  await nodes.return()

  expect((await atEdge.getNodes({ metadataFilters: { region: { stringValue: 'eu' } } })).nodes).toEqual([])
  const metadata = { items: { region: { stringValue: 'eu' }, floor: { intValue: '3' }, key: { bytesValue: 'AAE=' } } }
  await atHub.setNode({ nodeId: edge.node.id, name: 'renamed', metadata })
  expect((await atHub.getNode({ nodeId: edge.node.id })).node).toMatchObject({ name: 'renamed', metadata })
  const states = atEdge.streamConnectionState({})
  expect((await states.next()).value).toEqual({ state: 'CONNECTED' })
  await states.return()
  await atHub.removeNode({ nodeId: edge.node.id })
  await atEdge.disconnect({})
})

test('pipelines: from their creation to their end, with their streams', async () => {
  const client = clientOf(hub)
  const nodeId = hub.node.id
  const changes = client.streamPipelines({ nodeId })
  const firstChange = changes.next()
  const settings = { nodeId, name: 'first', jsonConfig: config(1), restartPolicy: { onFailure: { maxRestarts: 2 } } }
  expect(await client.validatePipeline(settings)).toMatchObject({ valid: true })
  expect(await client.validatePipeline({ ...settings, jsonConfig: '{}' })).toMatchObject({ valid: false })
  const { pipeline } = await client.createPipeline(settings)
  const id = pipeline?.id as string
  expect((await firstChange).value).toMatchObject({ create: { pipeline: { id } } })
  await changes.return()

  const { runId } = await client.startPipeline({ nodeId, name: 'first' })
  const logs = await first(client.openLogStream({ nodeId, runId, options: { lines: '10' } }))
  expect(logs.messages.length).toBeGreaterThan(0)
  const sample = await first(client.openTelemetryStream({ nodeId, runId }))
  expect(sample.kpis.map((kpi) => kpi.id)).toEqual(['rate'])
  const captured = client.openCaptureStream({ nodeId, runId, component: 'sink', side: 'INPUT', snapLength: 8 })
  expect((await captured.next()).value?.links).toHaveLength(1)
  expect((await captured.next()).value?.packets[0]?.length).toBeGreaterThan(0)
  await captured.return()

  const update = { ...settings, id, jsonConfig: config(2), instructionsTimeout: 20 }
  expect((await client.explainUpdate(update)).restart.length).toBeGreaterThan(0)
  await expect(client.updatePipeline(update)).rejects.toMatchObject({ code: 'FAILED_PRECONDITION' })
  await client.updatePipeline({ ...update, forceRestart: true, cpuPin: undefined })
  expect((await client.getPipelines({ nodeId })).pipelines).toHaveLength(1)
  expect((await client.getPipelineById({ nodeId, id })).pipeline?.jsonConfig).toBe(config(2))
  const now = (await client.getPipelineByName({ nodeId, name: 'first' })).pipeline?.currentRun?.id as string
  expect((await client.getPipelineByRunId({ nodeId, id: now })).run?.state).toBe('RUNNING')
  await client.stopPipeline({ nodeId, runId: now })
  await until(async () => (await client.getPipelineById({ nodeId, id })).pipeline?.currentRun?.outcome === 'STOPPED')
  // By id and by name as well.
  await client.startPipeline({ nodeId, id })
  await client.stopPipeline({ nodeId, name: 'first' })
  await expect(client.stopPipeline({ nodeId, id })).rejects.toBeInstanceOf(PenstockError)
  await client.deletePipeline({ nodeId, id })
  await expect(client.getPipelineById({ nodeId, id })).rejects.toMatchObject({ code: 'NOT_FOUND', status: 404 })
})

test('what the document says a body needs, the service does', async () => {
  const base = `http://${hub.node.http}/v1/nodes/${hub.node.id}/pipelines`
  const send = async (method: string, url: string, body: Json) =>
    (await fetch(url, { method, body: JSON.stringify(body) })).status
  const good = { name: 'rules', jsonConfig: config(1), instructionsTimeout: 5 }
  const { pipeline }: Json = await (await fetch(base, { method: 'POST', body: JSON.stringify(good) })).json()
  for (const [method, url] of [
    ['POST', base],
    ['PUT', `${base}/${pipeline.id}`],
  ] as const) {
    const { requestBody } = documented(method, url)
    expect(requestBody.required).toBe(true)
    const { schema } = requestBody.content['application/json']
    const validate = validators.compile(JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"openapi#/')))
    const statuses: Json[] = []
    for (const change of [
      {},
      { name: undefined },
      { name: '' },
      { name: 'x'.repeat(256) },
      { name: '😀'.repeat(256) },
      { name: 'x'.repeat(257) },
      { jsonConfig: undefined },
      { jsonConfig: '' },
      { instructionsTimeout: undefined },
      { instructionsTimeout: 0 },
      { instructionsTimeout: -1 },
      { instructionsTimeout: 1 },
    ]) {
      const body = { ...good, ...change }
      statuses.push([change, await send(method, url, body), validate(JSON.parse(JSON.stringify(body))) ? 200 : 400])
    }
    for (const [change, answered, documentedStatus] of statuses) {
      expect([method, change, answered]).toEqual([method, change, documentedStatus])
    }
    expect(await send(method, url, {})).toBe(400)
  }
  const { pipelines }: Json = await (await fetch(base)).json()
  for (const { id } of pipelines) await fetch(`${base}/${id}`, { method: 'DELETE' })
})

test('tokens', async () => {
  const client = clientOf(hub)
  const { secret } = await client.createToken({ name: 'page' })
  expect(secret).not.toBe('')
  await expect(client.createToken({ name: 'page' })).rejects.toMatchObject({ code: 'ALREADY_EXISTS', status: 409 })
  expect((await client.getTokens({})).tokens).toMatchObject([{ name: 'page' }])
  await client.revokeToken({ name: 'page' })
})

test('an answer of every operation that succeeded was held against its schema', () => {
  const good = [...seen].filter(([, statuses]) => statuses.has(200) || statuses.has(101)).map(([name]) => name)
  const missing = loadOperations().filter(
    ({ name }) => !good.some((id) => new RegExp(`^${name}(Search|By[A-Z]\\w*)?$`).test(id)),
  )
  expect(missing.map(({ name }) => name)).toEqual([])
})

test('an answer that is not as the document says is found', () => {
  expect(() => check({ $ref: '#/components/schemas/GetLocalNodeIdResponse' }, { nodeId: 'x' }, '')).toThrow(
    'isAuthenticated',
  )
  expect(() => check({ $ref: '#/components/schemas/StreamConnectionStateResponse' }, { state: 'AWAY' }, '')).toThrow(
    'enum',
  )
  const none = { nodeId: 'x', isAuthenticated: true, more: 1 }
  expect(() => check({ $ref: '#/components/schemas/GetLocalNodeIdResponse' }, none, '')).toThrow('additional')
})
