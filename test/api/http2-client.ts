/** An HTTP/2 client (RFC 9113) made of hand-written frames, for what no library would send. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'

export const FRAME = { data: 0, headers: 1, reset: 3, settings: 4, ping: 6, goaway: 7, continuation: 9 } as const

/** One frame. */
export function frame(type: number, flags: number, stream: number, payload: Uint8Array = new Uint8Array(0)): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head[3] = type
  head[4] = flags
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, payload])
}

/** What opens a connection: the preface and empty settings. */
export const PREFACE = Buffer.concat([Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), frame(FRAME.settings, 0, 0)])

/** Frames that break the protocol on a connection without streams. */
export const faults: Readonly<Record<string, Buffer>> = {
  'DATA on an idle stream': frame(FRAME.data, 0, 1, Buffer.from('x')),
  'PING of a wrong length': frame(FRAME.ping, 0, 0, Buffer.alloc(7)),
  'SETTINGS of a wrong length': frame(FRAME.settings, 0, 0, Buffer.alloc(5)),
  'CONTINUATION without HEADERS': frame(FRAME.continuation, 4, 1, Buffer.from([0x82])),
  'an HPACK error': frame(FRAME.headers, 5, 1, Buffer.from([0xff, 0xff, 0xff, 0xff, 0xff, 0x7f])),
}

export class RawHttp2 {
  readonly socket: Socket
  readonly closed: Promise<unknown>
  /** Error codes of the GOAWAY frames that have come (RFC 9113, section 7). */
  readonly goaways: number[] = []
  #read = Buffer.alloc(0)
  #seen: number[] = []
  #wake: () => void = () => undefined

  constructor(socket: Socket) {
    this.socket = socket
    socket.on('error', () => undefined)
    this.closed = new Promise((resolve) => socket.once('close', resolve))
    socket.on('close', () => this.#wake())
    socket.on('data', (bytes: Buffer) => {
      this.#read = Buffer.concat([this.#read, bytes])
      for (;;) {
        if (this.#read.length < 9) break
        const end = 9 + this.#read.readUIntBE(0, 3)
        if (this.#read.length < end) break
        this.#seen.push(this.#read[3] as number)
        if (this.#read[3] === FRAME.goaway) this.goaways.push(this.#read.readUInt32BE(13))
        this.#read = this.#read.subarray(end)
      }
      this.#wake()
    })
  }

  /** Connects to `host:port`; what is sent goes out at once. */
  static async connect(address: string, isTls = false): Promise<RawHttp2> {
    const [host = '', port] = address.split(':')
    const to = { host, port: Number(port) }
    const socket = isTls ? connectTls({ ...to, ALPNProtocols: ['h2'], rejectUnauthorized: false }) : connect(to)
    await once(socket, isTls ? 'secureConnect' : 'connect')
    return new RawHttp2(socket)
  }

  send(...frames: Uint8Array[]): void {
    this.socket.write(Buffer.concat(frames))
  }

  /** Waits until a frame of this type has come; throws when the connection ends before. */
  async received(type: number): Promise<void> {
    while (!this.#seen.includes(type)) {
      if (this.socket.destroyed) throw new Error('the connection was closed')
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  /** How many frames of this type have come. */
  count(type: number): number {
    return this.#seen.filter((seen) => seen === type).length
  }

  gone(): void {
    this.socket.destroy()
  }
}
