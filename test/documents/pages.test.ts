/** The documents that a real node serves about itself: what a linter says, what is in them, and how they are asked for. */
import { createConfig, lintFromString } from '@redocly/openapi-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { loadOperations } from '../../src/contract/operations.ts'
import { type RunningNode, runNode, temporaryDirectory } from '../api/running-node.ts'
import { penstock } from '../cli/cli.ts'
import { operations as expected } from '../contract/operations.ts'

// biome-ignore lint/suspicious/noExplicitAny: JSON as it came over the wire
type Json = any

let node: RunningNode
beforeAll(async () => {
  node = await runNode(temporaryDirectory())
})
afterAll(() => node.node.close())

const url = (path: string) => `http://${node.node.http}${path}`
const get = async (path: string): Promise<Json> => await (await fetch(url(path))).json()

/** What a linter finds, as `rule at pointer`. */
async function problemsOf(name: string): Promise<string[]> {
  const config = await createConfig({
    extends: ['recommended'],
    rules: {
      // Of "at most one of these" the members are declared beside the list.
      'no-required-schema-properties-undefined': 'off',
      // The schemas of configurations are what is in a text (contentSchema).
      'no-unused-components': 'off',
    },
  })
  const source = await (await fetch(url(`/v1/${name}.json`))).text()
  const problems = await lintFromString({ source, absoluteRef: `/${name}.json`, config })
  return problems.map(({ ruleId, message, location }) => `${ruleId} at ${location[0]?.pointer}: ${message}`)
}

test('a linter has nothing to say of the OpenAPI document, but that a WebSocket answers with 101', async () => {
  const socket = '#/paths/~1v1~1streams~1hub-server~1authentication-requests/get/responses'
  expect(await problemsOf('openapi')).toEqual([
    `operation-2xx-response at ${socket}: Operation must have at least one \`2XX\` response.`,
  ])
})

test('a linter has nothing to say of the AsyncAPI document', async () => {
  expect(await problemsOf('asyncapi')).toEqual([])
})

test('the linter finds what is wrong', async () => {
  const config = await createConfig({ extends: ['recommended'] })
  const document = await get('/v1/openapi.json')
  document.paths['/v1/nodes'].get.responses['200'].content['application/json'].example.nodes[0].online = 'yes'
  delete document.info.title
  const problems = await lintFromString({ source: JSON.stringify(document), absoluteRef: '/wrong.json', config })
  expect(problems.map(({ ruleId }) => ruleId)).toEqual(
    expect.arrayContaining(['struct', 'no-invalid-media-type-examples']),
  )
})

const camel = (path: string) => path.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase())

test('every HTTP form of every operation is there, with its path, parameters, body and statuses', async () => {
  const { paths } = await get('/v1/openapi.json')
  const forms: string[] = []
  for (const [service, operations] of Object.entries(expected)) {
    for (const [name, { kind, http }] of Object.entries(operations)) {
      for (const form of http) {
        const [verb = '', path = '', star] = form.split(' ')
        forms.push(`${verb} ${camel(path)}`)
        const operation = paths[camel(path)]?.[verb.toLowerCase()]
        expect(operation, form).toMatchObject({ tags: [service.split('.').at(-1)] })
        expect(operation.operationId.startsWith(name), form).toBe(true)
        const named = Array.from(camel(path).matchAll(/\{(\w+)\}/g), ([, parameter]) => parameter)
        const inPath = (operation.parameters ?? []).filter((each: Json) => each.in === 'path')
        expect(inPath.map((each: Json) => [each.name, each.required])).toEqual(named.map((each) => [each, true]))
        expect(operation.requestBody !== undefined, form).toBe(star === '*')
        const statuses = Object.keys(operation.responses)
        expect(statuses).toContain(kind === 'bidi' ? '101' : '200')
        expect(statuses).toEqual(
          expect.arrayContaining(['400', '401', '403', '404', '409', '429', '499', '500', '501', '503', '504']),
        )
        if (kind === 'server') expect(Object.keys(operation.responses['200'].content)).toEqual(['text/event-stream'])
      }
    }
  }
  const documented = Object.entries(paths).flatMap(([path, verbs]) =>
    Object.keys(verbs as object).map((verb) => `${verb.toUpperCase()} ${path}`),
  )
  expect(documented.sort()).toEqual(forms.sort())
})

test('operations are told apart by their ids, and their answers and bodies have examples', async () => {
  const { paths } = await get('/v1/openapi.json')
  const all = Object.values(paths).flatMap((verbs) => Object.values(verbs as object)) as Json[]
  const ids = all.map(({ operationId }) => operationId)
  expect(new Set(ids).size).toBe(ids.length)
  for (const { operationId, requestBody, responses } of all) {
    const content = Object.values(responses['200']?.content ?? {})[0] as Json
    if (content !== undefined) expect(content.example, operationId).toBeDefined()
    if (requestBody !== undefined) expect(requestBody.content['application/json'].example, operationId).toBeDefined()
  }
})

test('what a query can say is a parameter', async () => {
  const { paths } = await get('/v1/openapi.json')
  const inQuery = (path: string) =>
    paths[path].get.parameters.filter((each: Json) => each.in === 'query').map((each: Json) => each.name)
  expect(inQuery('/v1/streams/nodes/{nodeId}/pipeline-runs/{runId}/logs')).toEqual([
    'options.lines',
    'options.pastOnly',
  ])
  expect(inQuery('/v1/streams/nodes/{nodeId}/pipeline-runs/{runId}/capture')).toEqual([
    'component',
    'side',
    'snapLength',
  ])
  expect(inQuery('/v1/nodes')).toEqual(['serviceFilters'])
})

test('every stream is a channel of the AsyncAPI document, an event stream a WebSocket besides', async () => {
  const { channels, operations } = await get('/v1/asyncapi.json')
  const streams = loadOperations().filter(({ kind }) => kind !== 'unary')
  const names = streams.flatMap(({ name, kind }) => (kind === 'server' ? [name, `${name}Socket`] : [name]))
  expect(Object.keys(channels).sort()).toEqual([...names, 'streams'].sort())
  expect(channels.streamNodesSocket).toMatchObject({
    address: '/v1/streams/nodes',
    servers: [{ $ref: '#/servers/socket' }],
    messages: { message: { $ref: '#/components/messages/streamNodesFrame' } },
  })
  expect(operations.streamNodesSocket).toMatchObject({
    action: 'receive',
    channel: { $ref: '#/channels/streamNodesSocket' },
    messages: [{ $ref: '#/channels/streamNodesSocket/messages/message' }],
  })
  for (const { name, http } of streams) expect(channels[name].address).toBe(camel(http[0]!.path))
  expect(operations.authenticationByRequestsSend.action).toBe('send')
  expect(channels.streams.address).toBe('/v1/streams')
  expect([operations.streams.action, operations.streamsSend.action]).toEqual(['receive', 'send'])
})

test('the schema of configurations is served as it is printed', async () => {
  const { pipelineConfigSchema } = await import('../../src/node/config-schema.ts')
  expect(await get('/v1/schema/pipeline-config.json')).toEqual(JSON.parse(JSON.stringify(pipelineConfigSchema())))
})

test('the impairment profiles are those of the command line', async () => {
  const { stdout } = await penstock(['impair', '--list', '-o', 'json'])
  expect(await get('/v1/impairment-profiles.json')).toEqual(JSON.parse(stdout))
})

const pages: [string, string][] = [
  ['/v1/openapi.json', 'application/json'],
  ['/v1/asyncapi.json', 'application/json'],
  ['/v1/schema/pipeline-config.json', 'application/schema+json'],
  ['/v1/impairment-profiles.json', 'application/json'],
  ['/docs/api', 'text/html; charset=utf-8'],
]

describe.each(pages)('%s', (path, type) => {
  test('GET and HEAD: the same head, with a tag', async () => {
    const [whole, head] = await Promise.all(['GET', 'HEAD'].map((method) => fetch(url(path), { method })))
    const heads = [whole, head].map((answer) => [
      answer?.status,
      ...['content-type', 'cache-control', 'etag', 'content-length', 'x-content-type-options'].map((name) =>
        answer?.headers.get(name),
      ),
    ])
    expect(heads[0]).toEqual([
      200,
      type,
      'no-cache',
      expect.stringMatching(/^"[\w-]{43}"$/),
      expect.stringMatching(/^\d+$/),
      'nosniff',
    ])
    expect(heads[1]).toEqual(heads[0])
    expect((await whole!.text()).length).toBeGreaterThan(1000)
    expect(await head!.text()).toBe('')
  })

  test('who has it is told that it has not changed', async () => {
    const etag = (await fetch(url(path), { method: 'HEAD' })).headers.get('etag')
    for (const tag of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
      const answer = await fetch(url(path), { headers: { 'if-none-match': tag as string } })
      expect([tag, answer.status, answer.headers.get('etag'), await answer.text()]).toEqual([tag, 304, etag, ''])
    }
    expect((await fetch(url(path), { headers: { 'if-none-match': '"other"' } })).status).toBe(200)
  })

  test('other methods are told which there are; what lies below is not there', async () => {
    const refused = await fetch(url(path), { method: 'POST', body: '{}' })
    expect([refused.status, refused.headers.get('allow')]).toEqual([405, 'GET, HEAD, OPTIONS'])
    const options = await fetch(url(path), { method: 'OPTIONS' })
    expect([options.status, options.headers.get('allow')]).toEqual([204, 'GET, HEAD, OPTIONS'])
    expect((await fetch(url(`${path}/more`))).status).toBe(404)
  })

  test('is for callers of the API only', async () => {
    const proxied = await fetch(url(path), { headers: { 'x-forwarded-for': '203.0.113.9' } })
    expect([proxied.status, proxied.headers.get('www-authenticate')]).toEqual([401, 'Bearer'])
    expect((await fetch(url(path), { headers: { 'sec-fetch-site': 'cross-site' } })).status).toBe(403)
  })
})

test('the page names every operation, runs nothing, and fetches nothing', async () => {
  const answer = await fetch(url('/docs/api'))
  const policy = answer.headers.get('content-security-policy') ?? ''
  expect(policy.split('; ')).toEqual([
    "default-src 'none'",
    expect.stringMatching(/^style-src 'sha256-[\w+/]{43}='$/),
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ])
  const html = await answer.text()
  for (const { name } of loadOperations()) expect(html).toContain(`<h3 id="${name}">`)
  expect(html).not.toMatch(/<(script|link|img|iframe|object|embed|base|form)\b/i)
  expect(html).not.toMatch(/\s(on\w+|src|style)=/i)
  const links = Array.from(html.matchAll(/href="([^"]*)"/g), ([, target]) => target as string)
  expect(links.filter((target) => !target.startsWith('#') && !target.startsWith('/v1/'))).toEqual([])
  const ids = new Set(Array.from(html.matchAll(/id="([^"]*)"/g), ([, id]) => id))
  for (const target of links) if (target.startsWith('#')) expect(ids).toContain(target.slice(1))
})
