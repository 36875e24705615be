/** HTTP/1.1 as raw bytes, over TCP or TLS, for what no client library sends; and what a process has open. */
import { readdirSync, readlinkSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'

export interface RawAnswer {
  readonly status: number
  readonly headers: ReadonlyMap<string, string>
  /** Empty of a stream: its beginning is left unread. */
  readonly body: string
}

/** One connection, asked one request after the other; it is made anew when the other side has closed it. */
export class RawConnection {
  readonly #port: number
  readonly #tls: boolean
  #socket: Socket | undefined
  #received: Buffer = Buffer.alloc(0)
  #isOver = false
  #wake: () => void = () => undefined

  constructor(port: number, tls = false) {
    this.#port = port
    this.#tls = tls
  }

  /** The answer to a request without body unless `body` says one; undefined when the connection ended without one. */
  async ask(
    method: string,
    path: string,
    headers: Readonly<Record<string, string>> = {},
    body = '',
  ): Promise<RawAnswer | undefined> {
    const fields = { host: 'localhost', ...headers, ...(body === '' ? {} : { 'content-length': String(body.length) }) }
    const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`)
    const socket = this.#open()
    socket.write(`${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`)
    const end = await this.#until(() => {
      const at = this.#received.indexOf('\r\n\r\n')
      return at < 0 ? undefined : at
    })
    if (end === undefined) {
      this.close()
      return undefined
    }
    const [first = '', ...rest] = this.#received.subarray(0, end).toString('latin1').split('\r\n')
    const received = new Map(
      rest.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
    )
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(first)?.[1])
    this.#received = this.#received.subarray(end + 4)
    const length = Number(received.get('content-length') ?? 0)
    const isBodiless = method === 'HEAD' || status === 204
    let text = ''
    if (status === 101 || received.has('transfer-encoding')) this.close()
    else if (!isBodiless) {
      await this.#until(() => (this.#received.length >= length ? true : undefined))
      text = this.#received.subarray(0, length).toString()
      this.#received = this.#received.subarray(length)
    }
    if (received.get('connection') === 'close') this.close()
    return { status, headers: received, body: text }
  }

  close(): void {
    this.#socket?.destroy()
    this.#socket = undefined
  }

  #open(): Socket {
    if (this.#socket !== undefined && !this.#isOver) return this.#socket
    this.#received = Buffer.alloc(0)
    this.#isOver = false
    const at = { host: '127.0.0.1', port: this.#port }
    const socket = this.#tls ? connectTls({ ...at, rejectUnauthorized: false }) : connect(at)
    socket.on('data', (bytes) => {
      if (this.#socket !== socket) return
      this.#received = Buffer.concat([this.#received, bytes])
      this.#wake()
    })
    socket.on('error', () => undefined)
    socket.on('close', () => {
      if (this.#socket !== socket) return
      this.#isOver = true
      this.#wake()
    })
    this.#socket = socket
    return socket
  }

  async #until<T>(look: () => T | undefined): Promise<T | undefined> {
    for (;;) {
      const found = look()
      if (found !== undefined) return found
      if (this.#isOver) return undefined
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }
}

/**
 * Sockets and files that a process has open. Pipes and event descriptors are left out: the threads that a node keeps for runs have some each, and
 * open them when they get to it.
 */
export function descriptors(pid: number): number {
  const folder = `/proc/${pid}/fd`
  return readdirSync(folder).filter((name) => {
    try {
      return /^(socket:|\/)/.test(readlinkSync(`${folder}/${name}`))
    } catch {
      // Closed since.
      return false
    }
  }).length
}
