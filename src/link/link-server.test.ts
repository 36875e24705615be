/** The hub's end of links on a listener that is none: what it keeps of connections that end. */
import type { WebSocket, WebSocketBehavior } from 'uWebSockets.js'
import { expect, test, vi } from 'vitest'
import { settle, until } from '../../test/harness/waiting.ts'
import { SUBPROTOCOL } from './dial.ts'
import { joinLink } from './handshake-node.ts'
import type { Admission, LinkSession, SocketHost, Upgrade, UpgradeRequest } from './link.ts'
import { createLinkServer } from './link-server.ts'
import { admitted, TestHub } from './testing.ts'
import { deaf, type LinkTransport } from './transport.ts'

const ofNode: UpgradeRequest = {
  certificate: undefined,
  remoteAddress: '127.0.0.1',
  path: '/v1/link',
  query: '',
  header: (name) => (name === 'sec-websocket-protocol' ? SUBPROTOCOL : ''),
  eachHeader: () => {},
}

/** A connection of a node to the server that is attached to `host`. */
function connection() {
  let behavior!: WebSocketBehavior<object>
  let accept!: (request: UpgradeRequest) => Upgrade<object>
  const host = {
    webSocket: (_path: string, given: typeof behavior, decide: typeof accept) => {
      behavior = given
      accept = decide
    },
  } as SocketHost
  const node: LinkTransport = {
    remoteAddress: '127.0.0.1',
    buffered: 0,
    handlers: deaf,
    send: (bytes) => {
      behavior.message?.(socket, new Uint8Array(bytes).buffer, true)
      return true
    },
    close: () => {},
  }
  let data: object
  const socket = {
    getUserData: () => data,
    getBufferedAmount: () => 0,
    cork: (send: () => void) => send(),
    send: (bytes: Uint8Array) => {
      node.handlers.message(Buffer.from(bytes))
      return 1
    },
    end: () => {},
  } as unknown as WebSocket<object>
  const open = () => {
    const upgrade = accept(ofNode)
    if (!('data' in upgrade)) throw new Error(`refused: ${upgrade.status}`)
    data = upgrade.data
    behavior.open?.(socket)
  }
  const breakOff = () => behavior.close?.(socket, 1006, new ArrayBuffer(0))
  return { host, node, open, breakOff }
}

test('a node that is let in while the end of its connection waits to be handled is not kept', async () => {
  let letIn: ((admission: Admission) => void) | undefined
  const hub = new TestHub({
    admit: () =>
      new Promise((resolve) => {
        letIn = resolve
      }),
  })
  const closed: LinkSession[] = []
  hub.onSession = (session) => void session.closed.then(() => closed.push(session))
  const server = createLinkServer(hub.options)
  const { host, node, open, breakOff } = connection()
  server.attach(host)
  open()
  joinLink(node, new Uint8Array(0), hub.node()).catch(() => {})
  await until(() => letIn !== undefined)
  breakOff()
  letIn?.(admitted)
  await until(() => closed.length === 1)
  const close = vi.spyOn(closed[0] as LinkSession, 'close')
  server.close()
  await settle()
  expect(close).not.toHaveBeenCalled()
})
