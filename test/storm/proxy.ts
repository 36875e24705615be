/** A TCP proxy that spoils what it carries: what a network does to a link, on request. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import type { Random } from '../../src/dataplane/engine/random.ts'

export const FAULTS = ['delay', 'drop', 'halfClose', 'truncate', 'corrupt', 'refuse'] as const
export type Fault = (typeof FAULTS)[number]
/** One way, milliseconds. */
const DELAY_MS = 100

interface Pair {
  readonly near: Socket
  readonly far: Socket
  /** Bytes that still pass before the connection is cut; Infinity: all. */
  left: number
  /** Chunks on their way to either end that are delayed. */
  readonly delayed: Map<Socket, number>
}

export class FaultyProxy {
  readonly #server: Server | undefined
  readonly #target: number
  readonly #random: Random
  readonly #pairs = new Set<Pair>()
  #fault: Fault | undefined

  private constructor(server: Server | undefined, target: number, random: Random) {
    this.#server = server
    this.#target = target
    this.#random = random
    server?.on('connection', (near) => this.accept(near))
  }

  /** In front of a port of this machine. */
  static async listen(target: number, random: Random): Promise<FaultyProxy> {
    const server = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    return new FaultyProxy(server, target, random)
  }

  /** As `listen`, for connections that somebody else has accepted. */
  static to(target: number, random: Random): FaultyProxy {
    return new FaultyProxy(undefined, target, random)
  }

  /** Of one that listens. */
  get port(): number {
    return ((this.#server as Server).address() as AddressInfo).port
  }

  get fault(): Fault | undefined {
    return this.#fault
  }

  /** What happens to connections from now on. */
  break(fault: Fault): void {
    this.#fault = fault
    for (const pair of this.#pairs) {
      if (fault === 'halfClose') (this.#random.chance(0.5) ? pair.near : pair.far).end()
      if (fault === 'truncate') pair.left = this.#random.below(2_000)
      if (fault === 'refuse') cut(pair)
    }
  }

  /** Carries everything again. What was dropped is gone: those connections end. */
  heal(): void {
    const fault = this.#fault
    this.#fault = undefined
    if (fault === 'drop' || fault === 'halfClose' || fault === 'corrupt') for (const pair of this.#pairs) cut(pair)
    for (const pair of this.#pairs) pair.left = Number.POSITIVE_INFINITY
  }

  close(): void {
    this.#server?.close()
    for (const pair of this.#pairs) cut(pair)
  }

  /** Carries one connection; `near` allows that one half is closed. */
  accept(near: Socket): void {
    if (this.#fault === 'refuse') {
      near.destroy()
      return
    }
    const far = connect({ port: this.#target, host: '127.0.0.1', allowHalfOpen: true })
    const left = this.#fault === 'truncate' ? this.#random.below(10_000) : Number.POSITIVE_INFINITY
    const pair: Pair = { near, far, left, delayed: new Map() }
    this.#pairs.add(pair)
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      from.on('data', (bytes) => this.#carry(pair, to, bytes as Buffer))
      from.on('end', () => to.end())
      from.on('error', () => cut(pair))
      from.on('close', () => {
        this.#pairs.delete(pair)
        cut(pair)
      })
    }
  }

  #carry(pair: Pair, to: Socket, bytes: Buffer): void {
    if (this.#fault === 'drop') return
    if (this.#fault === 'corrupt' && this.#random.chance(0.3)) {
      const at = this.#random.below(bytes.length)
      bytes[at] = (bytes[at] as number) ^ (1 << this.#random.below(8))
    }
    const passing = bytes.subarray(0, Math.max(0, pair.left))
    pair.left -= bytes.length
    if (this.#fault === 'delay' || pair.delayed.has(to)) writeLater(pair, to, passing)
    else write(to, passing)
    if (pair.left <= 0) cut(pair)
  }
}

/** Order is kept, since timers of equal length fire in order, and since nothing overtakes what is delayed. */
function writeLater({ delayed }: Pair, to: Socket, bytes: Buffer): void {
  delayed.set(to, (delayed.get(to) ?? 0) + 1)
  setTimeout(() => {
    const left = (delayed.get(to) as number) - 1
    if (left > 0) delayed.set(to, left)
    else delayed.delete(to)
    write(to, bytes)
  }, DELAY_MS)
}

function write(to: Socket, bytes: Buffer): void {
  if (to.writable) to.write(bytes)
}

function cut({ near, far }: Pair): void {
  near.destroy()
  far.destroy()
}
