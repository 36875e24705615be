/** Texts that say two things or nothing: not UTF-8, a key given twice, an empty id; refused by every operation, naming the field. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import * as grpc from '@grpc/grpc-js'
import protobuf from 'protobufjs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { loadOperations, type Operation } from '../../src/contract/operations.ts'
import type { FieldSchema, MessageSchema } from '../../src/contract/schema.ts'
import { penstock } from '../cli/cli.ts'
import { type RunningNode, runNode, settingsOf, temporaryDirectory, traffic } from './running-node.ts'

const pass = (bytes: Buffer): Buffer => bytes
const directory = temporaryDirectory()
let node: RunningNode
let client: grpc.Client
beforeAll(async () => {
  node = await runNode(join(directory, 'node'), { hub: 'true' })
  client = new grpc.Client(node.node.grpc as string, grpc.credentials.createInsecure())
})
afterAll(async () => {
  client.close()
  await node.node.close()
})

interface Refusal {
  code: number
  details: string
}

/** What an operation answers to these bytes: its failure, or nothing. */
function refusal({ grpcPath, kind }: Operation, bytes: Uint8Array): Promise<Refusal | undefined> {
  return new Promise((resolve) => {
    const request = Buffer.from(bytes)
    if (kind === 'unary') {
      client.makeUnaryRequest(grpcPath, pass, pass, request, (error) => resolve(error ?? undefined))
      return
    }
    const call = client.makeServerStreamRequest(grpcPath, pass, pass, request)
    call.on('error', resolve)
    call.on('metadata', () => {
      resolve(undefined)
      call.cancel()
    })
  })
}

const BAD = Buffer.from([0x66, 0xff, 0x66])
const REPLACEMENT = '\ufffd'

/** Every place in a message where a string can stand: the message's bytes with `text` there, and its pointer. */
function* positions(
  message: MessageSchema,
  text: Uint8Array,
  depth = 4,
): Generator<{ pointer: string; bytes: Uint8Array }> {
  for (const field of message.fields) for (const place of inField(field, text, depth)) yield place
}

function* inField(
  field: FieldSchema,
  text: Uint8Array,
  depth: number,
): Generator<{ pointer: string; bytes: Uint8Array }> {
  const { type, key, number, repeated, mapKey } = field
  const tag = (number << 3) | 2
  const put = (bytes: Uint8Array, before: Uint8Array = new Uint8Array(0)) =>
    Buffer.concat([before, protobuf.Writer.create().uint32(tag).bytes(bytes).finish()])
  const values =
    type.kind === 'message'
      ? depth === 0
        ? []
        : [...positions(type.message, text, depth - 1)]
      : type.kind === 'scalar' && type.scalar === 'string'
        ? [{ pointer: '', bytes: text }]
        : []
  if (mapKey !== undefined) {
    const entry = (name: Uint8Array, value: Uint8Array) =>
      protobuf.Writer.create().uint32(10).bytes(name).uint32(18).bytes(value).finish()
    if (mapKey === 'string') yield { pointer: `/${key}`, bytes: put(entry(text, new Uint8Array(0))) }
    for (const { pointer, bytes } of values) {
      yield { pointer: `/${key}/a~1b${pointer}`, bytes: put(entry(Buffer.from('a/b'), bytes)) }
    }
  } else {
    for (const { pointer, bytes } of values) {
      // In a list it is the second.
      if (repeated) yield { pointer: `/${key}/1${pointer}`, bytes: put(bytes, put(new Uint8Array(0))) }
      else yield { pointer: `/${key}${pointer}`, bytes: put(bytes) }
    }
  }
}

describe('a string that is not UTF-8', () => {
  const operations = loadOperations().filter(({ kind }) => kind !== 'bidi')
  const withStrings = operations.filter(({ request }) => [...positions(request, BAD)].length > 0)
  test.each(withStrings.map((operation) => [operation.name, operation] as const))('%s', async (_name, operation) => {
    for (const { pointer, bytes } of positions(operation.request, BAD)) {
      const refused = await refusal(operation, bytes)
      expect(refused, pointer).toMatchObject({
        code: grpc.status.INVALID_ARGUMENT,
        details: expect.stringMatching(new RegExp(`^${pointer}: (the key )?must be UTF-8$`)),
      })
    }
  })

  test('the places include keys of maps, values of maps and members of members', () => {
    const all = withStrings.flatMap(({ request }) => [...positions(request, BAD)].map(({ pointer }) => pointer))
    expect(all).toEqual(
      expect.arrayContaining([
        '/jsonConfig',
        '/metadataFilters',
        '/metadataFilters/a~1b/stringValue',
        '/metadata/items',
      ]),
    )
  })

  test('U+FFFD itself is a character like any other', async () => {
    const id = await node.create(traffic(), { name: REPLACEMENT })
    expect((await node.get(id)).name).toBe(REPLACEMENT)
    const byName = loadOperations().find(({ name }) => name === 'getPipelineByName') as Operation
    const request = protobuf.Writer.create().uint32(10).string(node.node.id).uint32(18).string(REPLACEMENT).finish()
    expect(await refusal(byName, request)).toBe(undefined)
  })

  test('over HTTP: in a path, in a query, in a body', async () => {
    for (const path of ['/pipelines/%ff', '/pipelines-by-name/a%e9', '/pipelines/%ED%A0%80']) {
      expect(await node.call('GET', path), path).toMatchObject({ status: 400, body: { code: 3 } })
    }
    for (const query of [
      'metadataFilters[%ff].stringValue=x',
      'metadataFilters[a].stringValue=%e9',
      'serviceFilters=%ff',
    ]) {
      const answer = await node.call('GET', `http://${node.node.http}/v1/nodes?${query}`)
      expect(answer, query).toMatchObject({ status: 400, body: { code: 3, message: expect.stringContaining('UTF-8') } })
    }
    const body = { metadataFilters: { '\ud800': { stringValue: 'x' } } }
    expect(await node.call('POST', `http://${node.node.http}/v1/nodes/search`, body)).toMatchObject({
      status: 400,
      body: { code: 3, message: expect.stringContaining('lone surrogates') },
    })
  })

  test('half of a surrogate pair in a configuration', async () => {
    const jsonConfig = '{"engine_config":{"pipeline":{"a\\ud800":{"splitter":{"input":"x","outputs":["x"]}}}}}'
    expect(await node.call('POST', '/pipelines', { name: 'half', jsonConfig })).toMatchObject({
      status: 400,
      body: { message: expect.stringContaining('lone surrogates') },
    })
  })
})

describe('a text made to be dear', () => {
  /** As long as a body may be, nearly. */
  const LENGTH = 4_000_000
  const deep = (levels: number, inner: string) => '['.repeat(levels) + inner + ']'.repeat(levels)
  const many = (count: number, member: string) => `{${Array(count).fill(member).join(',')}}`
  const tooDeep = /nested deeper than 1,000 levels/

  test.each([
    ['brackets', '['.repeat(LENGTH), tooDeep],
    ['objects without an end', '{"a":'.repeat(LENGTH / 5), tooDeep],
    ['keys given twice far below', deep(LENGTH / 2 - 1_000, many(200, '"a":1')), tooDeep],
    [
      'keys given twice, a line each',
      '\n'.repeat(LENGTH - 4_000) + many(200, '"name":1'),
      /^\/name: the key is given twice/,
    ],
    [
      'keys given twice below long ones',
      `{"${'k'.repeat(9_000)}":`.repeat(400) + many(90, '"a":1') + '}'.repeat(400),
      /twice/,
    ],
    ['a string without an end', `{"name":"${'\\\\'.repeat(LENGTH / 2 - 10)}`, /the text ends too early/],
  ])('%s: is refused, and the node goes on', async (_, body, why) => {
    const answer = await fetch(`http://${node.node.http}/v1/nodes/search`, { method: 'POST', body })
    expect(answer.status).toBe(400)
    const { message } = (await answer.json()) as { message: string }
    expect(message).toMatch(why)
    expect(message.length).toBeLessThan(300_000)
    expect((await fetch(`http://${node.node.http}/v1/nodes/search`, { method: 'POST', body: '{}' })).status).toBe(200)
  })

  test('a configuration of halves of pairs', async () => {
    const jsonConfig = `{"x":${deep(900, Array(100_000).fill('"\\ud800"').join(','))}}`
    const answer = await node.call('POST', '/pipelines', { name: 'halves', jsonConfig })
    expect(answer).toMatchObject({ status: 400, body: { code: 3 } })
    expect(answer.body.message).toContain('lone surrogates')
  })
})

describe('a key that is given twice', () => {
  /** Two components of one name; without the second the configuration would be good. */
  const twice = `{"engine_config": {"pipeline": {
  "source": {"throughput_traffic_source": {"output": "b", "throughput_mbit": 1}},
  "sink": {"traffic_sink": {"input": "a"}},
  "source": {"throughput_traffic_source": {"output": "a", "throughput_mbit": 1}}
}}}`
  const raw = async (path: string, body: string) => {
    const response = await fetch(path, { method: 'POST', body, headers: { 'content-type': 'application/json' } })
    return { status: response.status, body: (await response.json()) as { message: string; details: unknown[] } }
  }

  test('in a request', async () => {
    const { jsonConfig } = settingsOf(traffic())
    const body = `{"name": "one", "jsonConfig": ${JSON.stringify(jsonConfig)}, "name": "two"}`
    const answer = await raw(`${node.url}/pipelines`, body)
    expect(answer.status).toBe(400)
    expect(answer.body.message).toMatch(
      /^\/name: the key is given twice, at line 1, column 2 and at line 1, column \d+;/,
    )
    expect(answer.body.details).toMatchObject([{ fieldViolations: [{ field: '/name' }] }])
    const search = '{"metadataFilters": {"a": {"stringValue": "x"}, "a": {"stringValue": "y"}}}'
    expect((await raw(`http://${node.node.http}/v1/nodes/search`, search)).body.message).toContain(
      '/metadataFilters/a: ',
    )
  })

  test('in a message of a WebSocket', async () => {
    const socket = new WebSocket(`ws://${node.node.http}/v1/streams/hub-server/authentication-requests`)
    await new Promise((resolve) => socket.once('open', resolve))
    const answered = new Promise<string>((resolve) => socket.once('message', (data) => resolve(String(data))))
    socket.send('{"requestId": "1", "accept": false, "accept": true}')
    expect(JSON.parse(await answered)).toMatchObject({
      error: { code: 3, message: expect.stringContaining('/accept: ') },
    })
    socket.close()
  })

  test('in a configuration, over the API', async () => {
    const answer = await node.call('POST', '/pipelines', { name: 'twice', jsonConfig: twice })
    expect(answer).toMatchObject({ status: 400, body: { code: 3 } })
    expect(answer.body.message).toContain(
      '/engine_config/pipeline/source: the key is given twice, at line 2, column 3 and at line 4, column 3',
    )
  })

  test.each([
    ['validate', []],
    ['run', ['-d', '1s']],
    ['simulate', ['-d', '1s']],
  ])('in a configuration, with penstock %s', async (command, more) => {
    const { code, stdout, stderr } = await penstock([command, '-', ...more], { input: twice })
    expect(code).toBe(1)
    expect(stdout + stderr).toContain('/engine_config/pipeline/source: the key is given twice')
  })

  test("in the node's own configuration file", async () => {
    const file = join(directory, 'twice.yaml')
    writeFileSync(file, 'node:\n  name: a\n  name: b\n')
    const { code, stderr } = await penstock(['config', 'check', '-c', file])
    expect(code).toBe(1)
    expect(stderr).toContain('twice.yaml:3: Map keys must be unique')
  })
})

test('a configuration file that is not UTF-8 is refused', async () => {
  const file = join(directory, 'latin1.json')
  writeFileSync(file, Buffer.from('{"engine_config": {"pipeline": {"\xe9": {}}}}', 'latin1'))
  const { code, stderr } = await penstock(['validate', file])
  expect(code).toBe(1)
  expect(stderr).toContain('latin1.json is not UTF-8 text')
})

describe('an empty id', () => {
  const operations = loadOperations().flatMap((operation) =>
    operation.http.filter(({ path }) => path.includes('{')).map((binding) => [operation, binding] as const),
  )
  test.each(operations.map(([operation, binding]) => [operation.name, binding.path, operation, binding] as const))(
    '%s, %s: INVALID_ARGUMENT over HTTP and gRPC',
    async (_name, path, operation, binding) => {
      const names = Array.from(path.matchAll(/\{(\w+)\}/g), ([, name]) => name as string)
      for (const empty of names) {
        const value = (name: string) => (name === empty ? '' : name === 'node_id' ? node.node.id : 'x')
        const answer = await fetch(
          `http://${node.node.http}${path.replaceAll(/\{(\w+)\}/g, (_, name: string) => value(name))}`,
          { method: binding.verb, ...(binding.body ? { body: '{}' } : {}) },
        )
        const key = operation.request.byName.get(empty)?.key
        const expected = { code: 3, message: `/${key}: must not be empty` }
        expect(await answer.json(), `${empty} over HTTP`).toMatchObject(expected)
        const writer = protobuf.Writer.create()
        for (const name of names) {
          writer.uint32(((operation.request.byName.get(name)?.number as number) << 3) | 2).string(value(name))
        }
        expect(await refusal(operation, writer.finish()), `${empty} over gRPC`).toMatchObject({
          code: 3,
          details: expected.message,
        })
      }
    },
  )

  test('no id at all: each operation names the ways it has', async () => {
    const request = protobuf.Writer.create().uint32(10).string(node.node.id).finish()
    const of = (name: string) => refusal(loadOperations().find((known) => known.name === name) as Operation, request)
    expect(await of('startPipeline')).toMatchObject({ code: 3, details: 'say which pipeline: by id or name' })
    expect(await of('stopPipeline')).toMatchObject({ code: 3, details: 'say which pipeline: by id, name or run id' })
  })
})

test('currentRun of a stopped pipeline is its last run, as the proto says', async () => {
  const id = await node.create(traffic())
  expect(await node.get(id)).toMatchObject({ started: false })
  expect((await node.get(id)).currentRun).toBe(undefined)
  const runId = await node.start(id)
  expect(await node.get(id)).toMatchObject({ started: true, currentRun: { id: runId, state: 'RUNNING' } })
  await node.call('POST', `/pipelines/${id}/stop`)
  const stopped = await node.when(id, ({ started }) => !started)
  expect(stopped.currentRun).toMatchObject({ id: runId, state: 'ENDED', outcome: 'STOPPED' })
  expect(Date.parse(stopped.currentRun.endedAt)).toBeGreaterThan(0)
  const pipeline = loadOperations()
    .find(({ name }) => name === 'getPipelineById')
    ?.response.byName.get('pipeline')?.type
  const comment = pipeline?.kind === 'message' ? pipeline.message.byName.get('currentRun')?.comment : ''
  expect(comment).toContain('Of a stopped one the last run, ENDED')
})
