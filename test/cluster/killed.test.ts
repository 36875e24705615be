/** A hub server killed with -9 while nodes wait at it for an answer: their requests go on at another server. */
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { writeHubKey } from '../../src/link/hub-key.ts'
import { newIdentity } from '../../src/link/identity.ts'
import { temporaryDirectory } from '../api/running-node.ts'
import { Nats } from '../harness/nats.ts'
import { endProcesses, NodeProcess } from '../harness/node-process.ts'
import { until } from '../harness/waiting.ts'
import { serverFlags } from './server-flags.ts'
import '../harness/slow.ts'

const root = temporaryDirectory()
const keyFile = join(root, 'hub.key')
let nats: Nats

const start = (name: string, flags: Record<string, string> = {}) =>
  NodeProcess.start({ directory: join(root, name), flags: { 'node-name': name, ...flags } })

/** `patience`: how long requests that are raised there wait. */
const startServer = async (name: string, patience: string): Promise<NodeProcess> =>
  await start(name, {
    ...(await serverFlags(name, keyFile, nats.addresses[0] as string)),
    'authentication-request-timeout': patience,
  })

beforeAll(async () => {
  writeHubKey(keyFile, newIdentity())
  nats = await Nats.alone()
})
afterAll(async () => {
  await endProcesses()
  await nats.close()
})

test('their requests keep their ids and what is left of their time; one is accepted, the other runs out', async () => {
  const [a, b] = await Promise.all([startServer('a', '20s'), startServer('b', '5m')])
  const [accepted, unanswered] = await Promise.all([start('accepted'), start('unanswered')])
  const { stream, answer } = await b.caller.converse('authenticationByRequests')
  const ask = async (node: NodeProcess) => {
    const joined = node.caller.unary('authenticateByRequest', { hubServerAddress: `http://${a.address}` })
    joined.catch(() => {})
    const request = await stream.next()
    expect(request.node.id).toBe(node.id)
    return { joined, requestId: request.requestId as bigint }
  }
  const begun = performance.now()
  const first = await ask(accepted)
  const second = await ask(unanswered)
  await a.kill()
  await until(async () => (await b.list()).some(({ id, online }) => id === a.id && !online))
  answer({ requestId: first.requestId, accept: true })
  await first.joined
  await until(async () => (await b.list()).some(({ id, online }) => id === accepted.id && online))
  await expect(second.joined).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' })
  const waited = performance.now() - begun
  expect(waited).toBeGreaterThan(19_900)
  // Raised anew at b it would have waited for five minutes.
  expect(waited).toBeLessThan(60_000)
  // Nothing was raised anew, and the id is of no use any more.
  expect(stream.waiting).toBe(0)
  answer({ requestId: second.requestId, accept: true })
  expect(await stream.next()).toMatchObject({ error: { code: 'NOT_FOUND' } })
  stream.close()
  expect((await b.list()).some(({ id }) => id === unanswered.id)).toBe(false)
})
