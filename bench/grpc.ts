/** grpc: getLocalNodeId and getPipelineById of a node against a bare grpc-js server, by the CPU time that a call costs the server. */
import * as grpc from '@grpc/grpc-js'
import { encodeBinary } from '../src/contract/binary-encode.ts'
import { loadOperations } from '../src/contract/operations.ts'
import { type Bench, median, medianOfPairs, roundsInTurn, runAlone } from './measure.ts'
import { makePipeline, Server } from './support/servers.ts'

const SECONDS = 1
/** What a call costs depends on how many come in one piece, and so differs by half from one second to the next. */
const ROUNDS = 15
const UNDER_WAY = 32
const pass = (bytes: Buffer): Buffer => bytes

function call(client: grpc.Client, path: string, request: Buffer): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(path, pass, pass, request, (error, bytes) => {
      if (error === null) resolve(bytes as Buffer)
      else reject(error)
    })
  })
}

/** Calls per second of the server's CPU time: the client, being grpc-js itself, is as slow as the server, so the clock would measure both. */
async function rate(server: Server, client: grpc.Client, path: string, request: Buffer): Promise<number> {
  const end = performance.now() + SECONDS * 1000
  const before = server.cpu()
  let calls = 0
  const loop = async () => {
    while (performance.now() < end) {
      await call(client, path, request)
      calls++
    }
  }
  await Promise.all(Array.from({ length: UNDER_WAY }, loop))
  return calls / (server.cpu() - before)
}

export const bench: Bench = async () => {
  const node = await Server.node()
  const { node: nodeId, id } = await makePipeline(node.port, 'bench')
  const calls = (
    [
      ['getLocalNodeId', {}],
      ['getPipelineById', { nodeId, id }],
    ] as const
  ).map(([name, fields]) => {
    const operation = loadOperations().find((known) => known.name === name)
    if (operation === undefined) throw new Error(`no operation ${name}`)
    return { name, path: operation.grpcPath, request: encodeBinary(operation.request, fields) as Buffer }
  })
  const client = new grpc.Client(`127.0.0.1:${node.grpcPort}`, grpc.credentials.createInsecure())
  const answers: Record<string, string> = {}
  for (const { path, request } of calls) answers[path] = (await call(client, path, request)).toString('base64')
  const bare = await Server.bare({ grpc: answers })
  const bareClient = new grpc.Client(`127.0.0.1:${bare.port}`, grpc.credentials.createInsecure())
  try {
    const rows = []
    for (const { name, path, request } of calls) {
      const rates = await roundsInTurn(ROUNDS, {
        bare: () => rate(bare, bareClient, path, request),
        node: () => rate(node, client, path, request),
      })
      const [ofBare, ofNode] = [median(rates.bare), median(rates.node)]
      const unit = 'calls per CPU second'
      rows.push({ label: `bare server, ${name}`, value: ofBare, unit })
      rows.push({ label: name, value: ofNode, unit, ratio: ofNode / ofBare, goal: '≥ 0.95' })
      const ofPairs = medianOfPairs(rates.node, rates.bare)
      rows.push({ label: `${name}, median of ${ROUNDS} pairs`, value: ofNode, unit, ratio: ofPairs, goal: '≥ 0.95' })
    }
    return { name: 'grpc: one call against a bare grpc-js server that answers the same bytes', rows }
  } finally {
    client.close()
    bareClient.close()
    await node.stop()
    await bare.stop()
  }
}

await runAlone(import.meta.url, bench)
