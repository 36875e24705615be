/** Real datagrams for the demonstration: a paced sender of numbered ones, and a receiver that knows which arrived. */
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { crc32 } from 'node:zlib'

/** u32 magic, u32 sequence number, u32 CRC-32 of what follows; big-endian. */
const HEADER_BYTES = 12
const MAGIC = 0x70656e73
/** Time between two bursts of the sender, ms. */
const TICK_MS = 5
/** Datagrams in a burst beyond what a tick's worth is: after a stall the sender goes on instead of flooding. */
const CATCH_UP = 32

/** Binds to `port` of the loopback interface, or to a free port when that one is taken (or `port` is 0). */
export async function bindLoopback(port: number): Promise<Socket> {
  const socket = createSocket({ type: 'udp4', recvBufferSize: 4 << 20, sendBufferSize: 4 << 20 })
  try {
    socket.bind(port, '127.0.0.1')
    await once(socket, 'listening')
    return socket
  } catch (error) {
    socket.close()
    const { code } = error as NodeJS.ErrnoException
    if (port === 0 || (code !== 'EADDRINUSE' && code !== 'EACCES')) throw error
    return await bindLoopback(0)
  }
}

/** A loopback port nobody listens on: `port` when it is free. */
export async function freePort(port: number): Promise<number> {
  const socket = await bindLoopback(port)
  const found = socket.address().port
  socket.close()
  await once(socket, 'close')
  return found
}

/** Sends numbered datagrams at a steady rate. */
export class TrafficSender {
  sent = 0
  private readonly socket: Socket
  private readonly target: number
  private readonly rate: number
  private readonly bytes: number
  private timer: NodeJS.Timeout | null = null
  private started = 0

  /** `rate` datagrams of `bytes` bytes a second to loopback port `target`. */
  constructor(socket: Socket, target: number, rate: number, bytes: number) {
    this.socket = socket
    this.target = target
    this.rate = rate
    this.bytes = bytes
  }

  start(): void {
    this.started = performance.now()
    this.timer = setInterval(() => this.send(), TICK_MS)
  }

  stop(): void {
    if (this.timer) clearInterval(this.timer)
    this.timer = null
  }

  private send(): void {
    const most = this.sent + CATCH_UP + Math.ceil((TICK_MS * this.rate) / 1000)
    let due = Math.floor(((performance.now() - this.started) * this.rate) / 1000)
    if (due > most) {
      this.started += ((due - most) * 1000) / this.rate
      due = most
    }
    while (this.sent < due) {
      const datagram = Buffer.alloc(this.bytes, this.sent & 0xff)
      datagram.writeUInt32BE(MAGIC, 0)
      datagram.writeUInt32BE(this.sent, 4)
      datagram.writeUInt32BE(crc32(datagram.subarray(HEADER_BYTES)), 8)
      this.socket.send(datagram, this.target, '127.0.0.1')
      this.sent++
    }
  }
}

/** Counts what arrives, each number once. */
export class TrafficReceiver {
  delivered = 0
  duplicate = 0
  corrupt = 0
  /** When the last datagram came, ms on the clock of `performance.now()`. */
  lastAt = 0
  private seen = new Uint8Array(1 << 16)

  constructor(socket: Socket) {
    socket.on('message', (datagram) => this.receive(datagram))
  }

  private receive(datagram: Buffer): void {
    this.lastAt = performance.now()
    const whole = datagram.length >= HEADER_BYTES && datagram.readUInt32BE(0) === MAGIC
    if (!whole || crc32(datagram.subarray(HEADER_BYTES)) !== datagram.readUInt32BE(8)) {
      this.corrupt++
      return
    }
    const sequence = datagram.readUInt32BE(4)
    while (sequence >= this.seen.length) {
      const larger = new Uint8Array(this.seen.length * 2)
      larger.set(this.seen)
      this.seen = larger
    }
    if (this.seen[sequence] === 1) this.duplicate++
    else {
      this.seen[sequence] = 1
      this.delivered++
    }
  }
}
