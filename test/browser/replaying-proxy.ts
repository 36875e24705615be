/** Stands between a page and a node: everything passes, but of some streams only the first message does, and goes on from there as fast as the page reads. */
import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { WebSocket, WebSocketServer } from 'ws'

/** A message of a stream, as JSON. */
// biome-ignore lint/suspicious/noExplicitAny: whatever the node sends
export type Message = any

/** Makes of the first message of a stream the one that comes `index` messages later. */
export type Continuation = (first: Message, index: number) => Message

/** Messages handed to the kernel before it is waited for. */
const BATCH = 200

/** A stream that goes on: the page's socket that carries it, and its id there. */
interface Replayed {
  readonly socket: WebSocket
  readonly id: number
  readonly continuation: Continuation
  first?: Message
}

export class ReplayingProxy {
  readonly #server: Server
  readonly #node: string
  readonly #continuations: ReadonlyMap<RegExp, Continuation>
  readonly #sockets = new Set<WebSocket>()
  /** Streams that go on. */
  readonly #replayed = new Set<Replayed>()
  #sent = 0

  private constructor(node: string, continuations: ReadonlyMap<RegExp, Continuation>) {
    this.#node = node
    this.#continuations = continuations
    this.#server = createServer((asked, answer) => this.#pass(asked, answer))
    const sockets = new WebSocketServer({ noServer: true, handleProtocols: () => 'penstock' })
    this.#server.on('upgrade', (asked: IncomingMessage, socket: Duplex, head: Buffer) => {
      sockets.handleUpgrade(asked, socket, head, (page) => this.#join(page, asked.url ?? '/'))
    })
  }

  /** `node` is host:port; the continuations are those of streams by their paths. */
  static async start(node: string, continuations: ReadonlyMap<RegExp, Continuation>): Promise<ReplayingProxy> {
    const proxy = new ReplayingProxy(node, continuations)
    proxy.#server.listen(0, '127.0.0.1')
    await once(proxy.#server, 'listening')
    return proxy
  }

  /** host:port. */
  get address(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** Whether every stream that is to go on has begun. */
  get hasBegun(): boolean {
    return this.#replayed.size > 0 && [...this.#replayed].every(({ first }) => first !== undefined)
  }

  /** Sends the next `count` messages of every stream that goes on; resolves once the kernel has them. Gives the index of the last. */
  async replay(count: number): Promise<number> {
    const end = this.#sent + count
    while (this.#sent < end) {
      const until = Math.min(end, this.#sent + BATCH)
      const written: Promise<void>[] = []
      for (const { socket, id, continuation, first } of this.#replayed) {
        for (let index = this.#sent + 1; index <= until; index++) {
          const text = JSON.stringify({ id, result: continuation(first, index) })
          if (index < until) socket.send(text)
          else
            written.push(
              new Promise((resolve, reject) => socket.send(text, (error) => (error ? reject(error) : resolve()))),
            )
        }
      }
      await Promise.all(written)
      this.#sent = until
    }
    return this.#sent
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.terminate()
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }

  /** As the node's own page asks. */
  #headers(): Record<string, string> {
    return { host: this.#node, origin: `http://${this.#node}` }
  }

  #pass(asked: IncomingMessage, answer: ServerResponse): void {
    const { method, url, headers } = asked
    const options = { method, headers: { ...headers, ...this.#headers() } }
    const onward = request(`http://${this.#node}${url}`, options, (given) => {
      answer.writeHead(given.statusCode ?? 502, given.headers)
      given.pipe(answer)
    })
    onward.on('error', () => answer.destroy())
    asked.pipe(onward)
  }

  #join(page: WebSocket, path: string): void {
    const node = new WebSocket(`ws://${this.#node}${path}`, ['penstock'], { headers: this.#headers() })
    for (const socket of [page, node]) this.#sockets.add(socket)
    const opened = once(node, 'open').then(
      () => true,
      () => false,
    )
    const streams = new Map<number, Replayed>()
    node.on('message', (data, isBinary) => {
      const { id, result } = JSON.parse(String(data))
      const stream = streams.get(id)
      if (stream !== undefined && result !== undefined) {
        if (stream.first !== undefined) return
        stream.first = result
      }
      page.send(data, { binary: isBinary })
    })
    page.on('message', async (data, isBinary) => {
      const { open, close } = JSON.parse(String(data))
      const found = [...this.#continuations].find(([pattern]) => open !== undefined && pattern.test(open.path))
      if (found !== undefined) {
        const stream: Replayed = { socket: page, id: open.id, continuation: found[1] }
        streams.set(open.id, stream)
        this.#replayed.add(stream)
      }
      const left = streams.get(close?.id)
      if (left !== undefined) this.#replayed.delete(left)
      if (await opened) node.send(data, { binary: isBinary })
    })
    node.on('error', () => page.terminate())
    node.on('close', (code, reason) => (isSendable(code) ? page.close(code, reason) : page.terminate()))
    page.on('close', (code, reason) => (isSendable(code) ? node.close(code, reason) : node.terminate()))
  }
}

/** Whether an end of a WebSocket may say so: codes below are told by nobody (RFC 6455, section 7.4). */
function isSendable(code: number): boolean {
  return code === 1000 || code >= 3000
}
