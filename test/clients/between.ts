/** What stands between a client and a node, and breaks. */
import { once } from 'node:events'
import { type AddressInfo, createServer, connect as dial, type Server, type Socket } from 'node:net'
import { afterEach } from 'vitest'
import type { RunningNode } from '../api/running-node.ts'

const open = new Set<Between>()
afterEach(() => {
  for (const between of open) between.close()
})

/** Passes connections on to the node until told to cut them, or to bring nothing back. */
export class Between {
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  readonly #target: () => number
  readonly #silent = new Set<Socket>()
  connections = 0

  /** `target`: the port of 127.0.0.1 to pass on to, asked for each connection. */
  constructor(target: () => number) {
    this.#target = target
    this.#server = createServer((socket) => {
      this.connections++
      const onward = dial(this.#target(), '127.0.0.1')
      for (const each of [socket, onward]) {
        this.#sockets.add(each)
        each.on('error', () => {})
        each.on('close', () => this.cut())
      }
      socket.pipe(onward)
      onward.on('data', (chunk) => {
        if (!this.#silent.has(socket)) socket.write(chunk)
      })
    })
    open.add(this)
  }

  async listen(): Promise<string> {
    await once(this.#server.listen(0, '127.0.0.1'), 'listening')
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  close(): void {
    open.delete(this)
    this.cut()
    this.#server.close()
  }

  /** Of the connections there are, nothing comes any more. */
  hush(): void {
    for (const socket of this.#sockets) this.#silent.add(socket)
  }

  cut(): void {
    for (const socket of this.#sockets) socket.destroy()
    this.#sockets.clear()
  }
}

/** The port of a node's HTTP listener. */
export const portOf = ({ node }: RunningNode): number => Number(node.http?.split(':').at(-1))
