/** The logs of a hub and of the nodes on it, over real sockets: who asked, who answered, which link went up and down and why. */
import { once } from 'node:events'
import { join as joinPath } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { LINK_PATH, SUBPROTOCOL } from '../../src/link/dial.ts'
import { encodeFrame } from '../../src/link/messages.ts'
import { linesOf, logged } from '../api/log-lines.ts'
import { type RunningNode, temporaryDirectory } from '../api/running-node.ts'
import { grpcCaller, httpCaller, startReal } from './callers.ts'

const root = temporaryDirectory()
let directories = 0
const directory = () => joinPath(root, `${directories++}`)
let hub: RunningNode
let address: string

beforeAll(async () => {
  hub = await startReal(directory(), { hub: 'true', 'node-name': 'hub' })
  address = `http://${hub.node.http}`
})
afterAll(() => hub.node.close())

interface Asking {
  readonly accept?: boolean
  readonly signal?: AbortSignal
  readonly at?: RunningNode
}

/** Asks to join; `accept` undefined: nobody answers. */
async function ask(node: RunningNode, { accept, signal, at = hub }: Asking): Promise<string> {
  const { stream, answer } = await httpCaller(at).converse('authenticationByRequests')
  const joined = httpCaller(node)
    .unary('authenticateByRequest', { hubServerAddress: `http://${at.node.http}` }, signal)
    .then(
      () => 'OK',
      (error: Error) => error.message,
    )
  const { requestId } = await stream.next()
  if (accept !== undefined) answer({ requestId, accept })
  if (signal === undefined) await joined
  stream.close()
  return String(requestId)
}

const textOf = ({ logged: lines }: RunningNode) => lines.join('')

test('a request: asked, rejected by whom; withdrawn; timed out', async () => {
  const node = await startReal(directory(), { 'node-name': 'asker' })
  const about = { node: node.node.id, name: 'asker' }
  const rejected = Number(await ask(node, { accept: false }))
  await logged(hub, { ...about, msg: 'request to join rejected' })
  expect(linesOf(hub, { ...about, request: rejected })).toMatchObject([
    { level: 'info', msg: 'node asks to join the hub', address: '127.0.0.1' },
    {
      level: 'info',
      msg: 'request to join rejected',
      by: 'this machine',
      transport: 'websocket',
      address: '127.0.0.1',
    },
  ])
  const hasty = await startReal(directory(), { hub: 'true', 'authentication-request-timeout': '1s' })
  const timedOut = Number(await ask(node, { at: hasty }))
  await logged(hasty, { ...about, request: timedOut }, 2)
  expect(linesOf(hasty, { ...about, request: timedOut })).toMatchObject([
    { msg: 'node asks to join the hub' },
    { level: 'warn', msg: expect.stringContaining('timed out') },
  ])
  await hasty.node.close()
  const gone = new AbortController()
  const withdrawn = Number(await ask(node, { signal: gone.signal }))
  gone.abort()
  await logged(hub, { ...about, request: withdrawn, msg: 'request to join withdrawn' })
  expect(linesOf(hub, { ...about, msg: 'node joined the hub' })).toEqual([])
  // The request's own line says it all.
  expect(linesOf(hub, { node: about.node }).filter(({ msg }) => String(msg).startsWith('link: '))).toEqual([])
  expect(linesOf(node, { msg: 'signed in to the hub' })).toEqual([])
  await node.node.close()
})

test('joined, link up, link down and why, back again, removed by whom: on the hub and on the node', async () => {
  const at = directory()
  let node = await startReal(at, { 'node-name': 'edge' })
  const about = { node: node.node.id, name: 'edge' }
  const { secret } = await httpCaller(hub).unary('createToken', { name: 'ops' })
  await ask(node, { accept: true })
  await logged(hub, { ...about, msg: 'link up' })
  await logged(node, { msg: 'signed in to the hub' })
  expect(linesOf(hub, about).map(({ msg }) => msg)).toEqual([
    'node asks to join the hub',
    'node joined the hub',
    'request to join accepted',
    'link up',
  ])
  expect(linesOf(node, { hub: `${address}/` }).map(({ msg }) => msg)).toEqual([
    'link to the hub up',
    'signed in to the hub',
  ])
  const before = hub.logged.length
  // By the name that it has by then.
  const named = (name: string) =>
    httpCaller(hub).unary('setNode', { nodeId: about.node, name, metadata: { items: {} } })
  await named('renamed')
  await named('edge at last')
  await node.node.close()
  about.name = 'edge at last'
  await logged(hub, { ...about, msg: 'link down' })
  expect(linesOf(hub, { ...about, msg: 'link down' })).toMatchObject([
    {
      level: 'info',
      reason: 'SHUTDOWN',
      cause: 'the node is shutting down',
      ended_by: 'the node',
      address: '127.0.0.1',
    },
  ])
  expect(linesOf(node, { msg: 'link to the hub down' })).toMatchObject([
    { level: 'info', reason: 'SHUTDOWN', ended_by: 'this side' },
  ])
  node = await startReal(at, { 'node-name': 'edge' })
  await logged(hub, { ...about, msg: 'link up' })
  const response = await fetch(`${address}/v1/nodes/${node.node.id}`, {
    method: 'DELETE',
    headers: { authorization: `Bearer ${secret}` },
  })
  expect(response.status).toBe(200)
  await logged(node, { msg: 'the hub has removed this node: it is signed out', level: 'warn' })
  expect(await logged(hub, { ...about, msg: 'node removed from the hub' })).toMatchObject([
    { level: 'info', by: 'token ops', transport: 'rest', address: '127.0.0.1' },
  ])
  await logged(hub, { ...about, msg: 'link down', reason: 'REMOVED' })
  expect(await logged(node, { msg: 'link to the hub down' })).toMatchObject([
    { level: 'warn', reason: 'REMOVED', ended_by: 'the hub' },
  ])
  expect(hub.logged.length).toBeGreaterThan(before)
  for (const each of [hub, node]) expect(textOf(each)).not.toContain(secret)
  await node.node.close()
})

test('a node that leaves by itself; one that another node of the hub removes; a hub that goes away', async () => {
  const other = await startReal(directory(), { hub: 'true', 'node-name': 'other' })
  const nodes = await Promise.all(
    ['leaver', 'victim', 'remover'].map((name) => startReal(directory(), { 'node-name': name })),
  )
  const [leaver, victim, remover] = nodes as [RunningNode, RunningNode, RunningNode]
  const operator = grpcCaller(other)
  const { stream, answer } = await operator.converse('authenticationByRequests')
  for (const node of nodes) {
    const joined = httpCaller(node).unary('authenticateByRequest', { hubServerAddress: `http://${other.node.http}` })
    const { requestId } = await stream.next()
    answer({ requestId, accept: true })
    await joined
  }
  await logged(other, { msg: 'request to join accepted', transport: 'grpc', by: 'this machine' }, 3)
  await httpCaller(leaver).unary('disconnect')
  await logged(other, { node: leaver.node.id, msg: 'node left the hub' })
  expect(await logged(leaver, { msg: 'signed out of the hub' })).toHaveLength(1)
  await httpCaller(remover).unary('removeNode', { nodeId: victim.node.id })
  expect(await logged(other, { node: victim.node.id, msg: 'node removed from the hub' })).toMatchObject([
    { by: `node ${remover.node.id}`, transport: 'link' },
  ])
  await logged(victim, { msg: 'the hub has removed this node: it is signed out' })
  stream.close()
  operator.close()
  await other.node.close()
  expect(await logged(remover, { msg: 'link to the hub down' })).toMatchObject([
    { reason: 'SHUTDOWN', cause: 'the hub is shutting down', ended_by: 'the hub' },
  ])
  await logged(remover, { msg: 'no link to the hub', level: 'warn' })
  await Promise.all(nodes.map((node) => node.node.close()))
})

test('what a stranger sends to the link is told of once, however often, and that of another kind too', async () => {
  const send = async (bytes: Uint8Array): Promise<void> => {
    const socket = new WebSocket(`ws://${hub.node.http}${LINK_PATH}`, SUBPROTOCOL)
    await once(socket, 'open')
    socket.send(bytes)
    await once(socket, 'close')
  }
  for (let i = 0; i < 30; i++) await send(Uint8Array.of(255, 255))
  const hello = encodeFrame('leave', {})
  for (let i = 0; i < 30; i++) await send(hello)
  const lines = linesOf(hub, {}).filter(({ msg, level }) => level === 'warn' && String(msg).startsWith('link: '))
  expect(lines).toMatchObject([{ address: '127.0.0.1' }, { address: '127.0.0.1' }])
  expect(lines[0]?.msg).not.toBe(lines[1]?.msg)
})
