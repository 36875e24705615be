/** For Node.js: whose certificate is taken, over HTTPS and by WebSockets, and what a node answers in place of opening one. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { createServer } from 'node:tls'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import * as client from '../../clients/typescript/src/index.ts'
import { nodeFetch, nodeWebSocket, type Trust, UntrustedCertificate } from '../../clients/typescript/src/node/index.ts'
import { makeCertificate } from '../../src/link/certificate.ts'
import { type RunningNode, runNode, temporaryDirectory } from '../api/running-node.ts'
import { until } from '../harness/waiting.ts'

let guarded: RunningNode
let url: string
let secret: string
let ca: string
let fingerprint: string
beforeAll(async () => {
  const directory = temporaryDirectory()
  guarded = await runNode(directory, { hub: 'true', 'http-tls': 'auto', loopback: 'token' })
  ca = readFileSync(join(directory, 'tls.crt'), 'utf8')
  fingerprint = guarded.logged.join('').match(/"fingerprint":"([^"]+)"/)?.[1] as string
  url = `https://${guarded.node.http?.replace('127.0.0.1', 'localhost')}`
  secret = readFileSync(join(directory, 'local.token'), 'utf8').trim()
})
afterAll(() => guarded.node.close())

/** A node to call that trusts so; its token, where nothing else is said. */
function trusting(trust: Trust, options: Partial<client.ConnectionOptions> = {}): client.Connection {
  const own = { fetch: nodeFetch(trust), webSocket: nodeWebSocket(WebSocket, trust) }
  return client.connect({ url, token: secret, ...own, ...options })
}

/** What one trusts, and another takes for a stranger. */
const TRUSTS = (): Trust[] => [
  { ca },
  { fingerprint },
  { fingerprint: fingerprint.replaceAll(':', '').toLowerCase() },
  { anyCertificate: true },
]
const DOUBTS: Trust[] = [{}, { fingerprint: '00'.repeat(32) }, { fingerprint: '00'.repeat(32), anyCertificate: true }]

test('a certificate is trusted by its fingerprint, its authority, or whatever it is', async () => {
  for (const trust of TRUSTS()) {
    expect((await client.getLocalNodeId(trusting(trust))).nodeId).toBe(guarded.node.id)
    const requests = await client.authenticationByRequests(trusting(trust))
    requests.close()
  }
  const states = client.streamConnectionState(trusting({ fingerprint }))
  expect((await states.next()).value).toEqual({ state: 'CONNECTED' })
  await states.return()
})

test('of one that is not trusted the facts are told', async () => {
  const told = (trust: Trust, options: Partial<client.ConnectionOptions> = {}) =>
    client.getLocalNodeId(trusting(trust, options)).catch((error: unknown) => error)
  for (const [trust, reason] of [
    [{}, 'NOT_TRUSTED'],
    [{ fingerprint: '00'.repeat(32) }, 'OTHER_FINGERPRINT'],
  ] as const) {
    const error = (await told(trust)) as client.PenstockError
    expect(error).toMatchObject({ code: 'UNAVAILABLE', loss: 'NO_ANSWER' })
    expect(error.cause).toBeInstanceOf(UntrustedCertificate)
    expect(error.cause).toMatchObject({ reason, fingerprint, names: expect.stringContaining('DNS:localhost') })
  }
  const elsewhere = makeCertificate(['elsewhere.example'], Date.now())
  const server = createServer({ cert: elsewhere.certificate, key: elsewhere.key }, (socket) => {
    socket.on('error', () => {})
  })
  // Every certificate of a node is for 127.0.0.1 too.
  await once(server.listen(0, '127.0.0.5'), 'listening')
  const at = `https://127.0.0.5:${(server.address() as AddressInfo).port}`
  const { cause } = (await told({ ca: elsewhere.certificate }, { url: at })) as client.PenstockError
  expect(cause).toMatchObject({ reason: 'OTHER_NAME', names: expect.stringContaining('DNS:elsewhere.example') })
  server.close()
})

test('nothing, no token either, goes to one that is not trusted', async () => {
  const { certificate: cert, key } = makeCertificate(['127.0.0.1'], Date.now())
  let received = 0
  const server = createServer({ cert, key }, (socket) => {
    socket.on('error', () => {})
    socket.on('data', (bytes) => {
      received += bytes.length
    })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const at = { url: `https://127.0.0.1:${(server.address() as AddressInfo).port}` }
  for (const trust of [...DOUBTS, { ca }]) {
    const untrusted = { code: 'UNAVAILABLE', loss: 'NO_ANSWER', cause: expect.any(UntrustedCertificate) }
    await expect(client.getLocalNodeId(trusting(trust, at))).rejects.toMatchObject(untrusted)
    await expect(client.authenticationByRequests(trusting(trust, at))).rejects.toMatchObject(untrusted)
  }
  expect(received).toBe(0)
  server.close()
})

test('who shows no token, or a wrong one, is told so by calls, streams and WebSockets alike', async () => {
  const refused = { code: 'UNAUTHENTICATED', status: 401, loss: undefined }
  for (const token of [() => undefined, 'penstock_wrong']) {
    const stranger = trusting({ ca }, { token })
    await expect(client.getLocalNodeId(stranger)).rejects.toMatchObject(refused)
    await expect(client.streamConnectionState(stranger).next()).rejects.toMatchObject(refused)
    await expect(client.authenticationByRequests(stranger)).rejects.toMatchObject(refused)
  }
  const explain = (error: client.PenstockError) => new Error(`explained: ${error.code}`)
  const explained = client.authenticationByRequests(trusting({ ca }, { token: 'penstock_wrong', explain }))
  await expect(explained).rejects.toThrow('explained: UNAUTHENTICATED')
})

test('a failure of a whole WebSocket comes to who iterates; a refused message to onRefused', async () => {
  const webSocket = nodeWebSocket(WebSocket)
  const alone = await runNode(temporaryDirectory())
  const exchange = await client.authenticationByRequests(
    client.connect({ url: `http://${alone.node.http}`, webSocket }),
  )
  await expect(exchange[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code: 'FAILED_PRECONDITION' })
  const hub = await runNode(temporaryDirectory(), { hub: 'true' })
  const refused: client.PenstockError[] = []
  const at = client.connect({ url: `http://${hub.node.http}`, webSocket })
  const requests = await client.authenticationByRequests(at, { onRefused: (error) => refused.push(error) })
  requests.send({ requestId: '7', accept: true })
  await until(() => refused.length === 1)
  expect(refused[0]).toMatchObject({ code: 'NOT_FOUND' })
  const end = requests[Symbol.asyncIterator]().next()
  requests.close()
  expect(await end).toEqual({ done: true, value: undefined })
  await Promise.all([alone.node.close(), hub.node.close()])
})
