/** WebSockets of the package ws, which trust as told and tell what a node answers in place of opening one. */
import type { IncomingMessage } from 'node:http'
import type { Agent } from 'node:https'
import { text } from 'node:stream/consumers'
import type { SocketLike } from '../connection.ts'
import { failureOf } from '../error.ts'
import { type Trust, TrustingAgent } from './trust.ts'

/** What is asked of a WebSocket of the package ws. */
interface WsSocket {
  on(event: 'unexpected-response', listener: (request: unknown, answer: IncomingMessage) => void): unknown
  emit(event: 'error', error: Error): unknown
  terminate(): void
}

/** The class `WebSocket` of the package ws. */
export type WsClass = new (url: string, protocols: string[], options: { agent?: Agent }) => WsSocket

/**
 * A `webSocket` for `connect`, made with the class of the package ws: `nodeWebSocket(WebSocket, { ca })`. A certificate that is not to be trusted
 * keeps it from opening before anything is sent, the token included.
 */
export function nodeWebSocket(WebSocket: WsClass, trust: Trust = {}): (url: string, protocols: string[]) => SocketLike {
  const agent = new TrustingAgent(trust)
  return (url, protocols) => {
    const socket = new WebSocket(url, protocols, url.startsWith('wss:') ? { agent } : {})
    socket.on('unexpected-response', async (_, answer) => {
      const { statusCode: status = 0, statusMessage: statusText = '' } = answer
      const failure = await failureOf({ status, statusText, text: () => text(answer) })
      socket.emit('error', failure)
      socket.terminate()
    })
    return socket as unknown as SocketLike
  }
}
