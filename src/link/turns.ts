/** Whose turn it is to send on a transport: records first, then new calls, then one frame of each stream after the other. */
import type { Stream } from './stream.ts'

/** Records that wait until there is room; of those beyond, the newest takes the place of the one before it. */
const MAX_RECORDS = 64

export interface TurnsHost {
  /** Sends one frame, `turns.writable` being false afterwards when there is no room for more. */
  send(frame: Uint8Array): void
  /** Sends the stream's Open. */
  sendOpen(stream: Stream): void
}

export class Turns {
  /** Whether the transport and the other side take more now. */
  writable = true
  readonly #host: TurnsHost
  /** Records, encoded, that have not been sent, in their order. */
  readonly #records: Uint8Array[] = []
  readonly #unopened = new Set<Stream>()
  readonly #ready = new Set<Stream>()
  /** Streams whose sender waits for room. */
  readonly #blocked = new Set<Stream>()
  #isGoing = false

  constructor(host: TurnsHost) {
    this.#host = host
  }

  /** Streams whose Open waits for the transport. */
  get unopened(): Iterable<Stream> {
    return this.#unopened
  }

  record(frame: Uint8Array): void {
    if (this.#records.length === MAX_RECORDS) this.#records.pop()
    this.#records.push(frame)
    this.#go()
  }

  open(stream: Stream): void {
    this.#unopened.add(stream)
    this.#go()
  }

  ready(stream: Stream): void {
    this.#ready.add(stream)
    this.#go()
  }

  blocked(stream: Stream, isBlocked: boolean): void {
    if (isBlocked) this.#blocked.add(stream)
    else this.#blocked.delete(stream)
  }

  forget(stream: Stream): void {
    this.#unopened.delete(stream)
    this.#ready.delete(stream)
  }

  /** There is room again. */
  drained(): void {
    this.writable = true
    this.#go()
    for (const stream of [...this.#blocked]) {
      if (!this.writable) return
      stream.drain()
    }
  }

  #go(): void {
    if (this.#isGoing) return
    this.#isGoing = true
    try {
      while (this.writable && this.#next());
    } finally {
      this.#isGoing = false
    }
  }

  #next(): boolean {
    const record = this.#records.shift()
    if (record !== undefined) {
      this.#host.send(record)
      return true
    }
    const unopened = first(this.#unopened)
    if (unopened !== undefined) {
      this.#unopened.delete(unopened)
      this.#host.sendOpen(unopened)
      return true
    }
    const stream = first(this.#ready)
    if (stream === undefined) return false
    this.#ready.delete(stream)
    if (stream.transmit()) this.#ready.add(stream)
    else stream.drain()
    return true
  }
}

function first<T>(set: ReadonlySet<T>): T | undefined {
  for (const member of set) return member
  return undefined
}
