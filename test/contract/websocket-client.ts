/** A WebSocket client of the smallest kind (RFC 6455: text frames below 64 KiB), for tests on Node 20, which has none. */
import { randomBytes } from 'node:crypto'
import { connect, type Socket } from 'node:net'

export class WebSocketClient {
  /** Resolves with the close code; 1006 when the connection just ended. */
  readonly closed: Promise<number>
  readonly #socket: Socket
  readonly #frames: string[] = []
  readonly #opened: Promise<void>
  #buffer: Buffer = Buffer.alloc(0)
  #isOpen = false
  #wake: (() => void) | undefined
  #open: () => void = () => undefined
  #close: (code: number) => void = () => undefined

  constructor(port: number, path: string) {
    this.#opened = new Promise((resolve) => {
      this.#open = resolve
    })
    this.closed = new Promise((resolve) => {
      this.#close = resolve
    })
    const key = randomBytes(16).toString('base64')
    this.#socket = connect(port, '127.0.0.1', () => {
      this.#socket.write(
        `GET ${path} HTTP/1.1\r\nhost: localhost\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-key: ${key}\r\nsec-websocket-version: 13\r\n\r\n`,
      )
    })
    this.#socket.on('data', (chunk) => this.#receive(chunk))
    this.#socket.on('close', () => this.#close(1006))
    this.#socket.on('error', () => undefined)
  }

  /** Sends a text frame, masked as clients must. */
  async send(text: string): Promise<void> {
    await this.#opened
    const payload = Buffer.from(text)
    if (payload.length > 125) throw new Error('the test client sends short frames only')
    const mask = randomBytes(4)
    for (const [index, byte] of payload.entries()) payload[index] = byte ^ (mask[index % 4] as number)
    this.#socket.write(Buffer.concat([Buffer.from([0x81, 0x80 | payload.length]), mask, payload]))
  }

  /** The next text frame. */
  async next(): Promise<string> {
    while (this.#frames.length === 0) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
    return this.#frames.shift() as string
  }

  destroy(): void {
    this.#socket.destroy()
  }

  #receive(chunk: Buffer): void {
    this.#buffer = Buffer.concat([this.#buffer, chunk])
    if (!this.#isOpen) {
      const end = this.#buffer.indexOf('\r\n\r\n')
      if (end < 0) return
      const head = this.#buffer.subarray(0, end).toString()
      if (!head.startsWith('HTTP/1.1 101')) throw new Error(`no upgrade: ${head}`)
      this.#buffer = this.#buffer.subarray(end + 4)
      this.#isOpen = true
      this.#open()
    }
    while (this.#frame());
  }

  #frame(): boolean {
    const buffer = this.#buffer
    if (buffer.length < 2) return false
    const short = (buffer[1] as number) & 0x7f
    const start = short === 126 ? 4 : 2
    if (buffer.length < start) return false
    const length = short === 126 ? buffer.readUInt16BE(2) : short
    if (buffer.length < start + length) return false
    const payload = buffer.subarray(start, start + length)
    const opcode = (buffer[0] as number) & 0x0f
    this.#buffer = buffer.subarray(start + length)
    if (opcode === 1) this.#frames.push(payload.toString())
    if (opcode === 8) this.#close(payload.length >= 2 ? payload.readUInt16BE(0) : 1005)
    this.#wake?.()
    return true
  }
}
