/** Answers that are longer than any message of the link: twenty-four pipelines of 1 MiB on a node, read through its hub. */
import { join as joinPath } from 'node:path'
import * as grpc from '@grpc/grpc-js'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { decodeBinary } from '../../src/contract/binary-decode.ts'
import { encodeBinary } from '../../src/contract/binary-encode.ts'
import { loadOperations, type Operation } from '../../src/contract/operations.ts'
import { MAX_ANSWER_BYTES } from '../../src/hub/link-answers.ts'
import { MAX_MESSAGE_BYTES } from '../../src/link/messages.ts'
import { type RunningNode, temporaryDirectory, traffic } from '../api/running-node.ts'
import { penstock, scratch } from '../cli/cli.ts'
import { httpCaller, startReal } from './callers.ts'

const root = temporaryDirectory()
const directory = scratch()
const pass = (bytes: Buffer): Buffer => bytes
const operation = loadOperations().find(({ name }) => name === 'getPipelines') as Operation
const COUNT = 24
let hub: RunningNode
let member: RunningNode
const clients: grpc.Client[] = []

/** A configuration of nearly 1 MiB, of which no two are alike. */
function configuration(number: number): string {
  const variables = [{ id: 'v', description: `${number} `.padEnd(1_000_000, `"h\u00e9" ${number} `).slice(0, 700_000) }]
  return JSON.stringify({ engine_config: { pipeline: traffic() }, variables })
}
const configurations = new Map(Array.from({ length: COUNT }, (_, i) => [`large-${i}`, configuration(i)]))

beforeAll(async () => {
  hub = await startReal(joinPath(root, 'hub'), { hub: 'true' })
  member = await startReal(joinPath(root, 'member'))
  const { stream, answer } = await httpCaller(hub).converse('authenticationByRequests')
  const joined = httpCaller(member).unary('authenticateByRequest', { hubServerAddress: `http://${hub.node.http}` })
  answer({ requestId: (await stream.next()).requestId, accept: true })
  await joined
  stream.close()
  for (const [name, jsonConfig] of configurations) await member.create({}, { name, jsonConfig })
}, 60_000)
afterAll(async () => {
  for (const client of clients) client.close()
  await member.node.close()
  await hub.node.close()
  directory.dispose()
})

const throughHub = () => `http://${hub.node.http}/v1/nodes/${member.node.id}/pipelines`

interface Listed {
  pipelines: { name: string; jsonConfig: string }[]
}

function expectAll({ pipelines }: Listed): void {
  expect(new Map(pipelines.map(({ name, jsonConfig }) => [name, jsonConfig]))).toEqual(configurations)
}

function overGrpc(options: grpc.ClientOptions): Promise<Listed> {
  const client = new grpc.Client(hub.node.grpc as string, grpc.credentials.createInsecure(), options)
  clients.push(client)
  const request = encodeBinary(operation.request, { nodeId: member.node.id })
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(operation.grpcPath, pass, pass, request, (error, bytes) => {
      if (error === null) resolve(decodeBinary(operation.response, bytes as Buffer) as unknown as Listed)
      else reject(error)
    })
  })
}

test('over REST, and small calls are answered meanwhile', { timeout: 60_000 }, async () => {
  const total = [...configurations.values()].reduce((sum, text) => sum + Buffer.byteLength(text), 0)
  expect(total).toBeGreaterThan(1.3 * MAX_MESSAGE_BYTES)
  const large = fetch(throughHub()).then(async (response) => (await response.json()) as Listed)
  const small = await fetch(`${throughHub()}-by-name/large-3`)
  expect(small.status).toBe(200)
  expectAll(await large)
})

test('several at once, one after the other', { timeout: 90_000 }, async () => {
  const all = Array.from({ length: 3 }, () => fetch(throughHub()).then((response) => response.json()))
  for (const each of await Promise.all(all)) expectAll(each as Listed)
})

test('over gRPC, to a client that takes so much', { timeout: 60_000 }, async () => {
  expectAll(await overGrpc({ 'grpc.max_receive_message_length': -1 }))
})

test('over gRPC, to a client as it comes: its own library says what it may take', { timeout: 60_000 }, async () => {
  await expect(overGrpc({})).rejects.toMatchObject({
    code: grpc.status.RESOURCE_EXHAUSTED,
    details: expect.stringContaining('4194304'),
  })
})

test('beyond the most that comes over a link: refused with the reason, and the link goes on', {
  timeout: 120_000,
}, async () => {
  const [, text = ''] = [...configurations][0] ?? []
  for (let bytes = 0; bytes < MAX_ANSWER_BYTES; bytes += Buffer.byteLength(text)) {
    await member.create({}, { name: 'more', jsonConfig: text })
  }
  const response = await fetch(throughHub())
  expect(response.status).toBe(429)
  expect(await response.json()).toMatchObject({
    code: 8,
    message: expect.stringMatching(
      /longer than 64 MiB.*: ask for one pipeline, by its id or name, or ask at that node/,
    ),
  })
  expect((await fetch(`${throughHub()}-by-name/large-3`)).status).toBe(200)
})

test('then the command line finds pipelines and runs by their names and whole ids', { timeout: 120_000 }, async () => {
  const env = { PENSTOCK_URL: `http://${hub.node.http}` }
  const far = (...args: string[]) => penstock([...args, '--node', member.node.id, '--json'], { env })
  const { id } = (await member.call('GET', '/pipelines-by-name/large-3')).body.pipeline
  // It could be the beginning of an id as well.
  const named = { 'large-3': id, [id]: id, cafe: await member.create(traffic(), { name: 'cafe' }) }
  for (const [given, meant] of Object.entries(named)) {
    const { code, stdout, stderr } = await far('pipelines', 'get', given)
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(JSON.parse(stdout)).toMatchObject({ id: meant })
  }
  const { runId } = JSON.parse((await far('pipelines', 'start', 'large-3')).stdout)
  expect(await far('pipelines', 'stop', '--run', runId)).toMatchObject({ code: 0, stderr: '' })
  expect(await far('pipelines', 'logs', 'large-3')).toMatchObject({ code: 0 })
  expect(await far('pipelines', 'delete', 'large-3')).toMatchObject({ code: 0, stderr: '' })
  // A name of none or of several is refused as that.
  expect((await far('pipelines', 'get', 'large-3')).stderr).toContain('"large-3"')
  expect((await far('pipelines', 'get', 'more')).stderr).toContain('pipelines have the name "more"')
  expect((await far('pipelines', 'get', id.slice(0, 8))).stderr).toContain('longer than 64 MiB')
  const config = directory.file('traffic.json', { engine_config: { pipeline: traffic() } })
  expect((await far('pipelines', 'create', 'another', config)).stderr).toContain('--force')
  expect(await far('pipelines', 'create', 'another', config, '--force')).toMatchObject({ code: 0, stderr: '' })
})
