/** Captured packets that wait for who takes them, so that the stream they come from is read at once: a node ends one that nobody reads. */

/** What may wait, bytes: as much as the run's own ring has. */
export const MAX_WAITING_BYTES = 4 * 1024 * 1024
/** What a packet that waits counts beside its data, bytes: about what its objects take. */
const PACKET_BYTES = 256
/** Most packets that are handed out at once: their room is free when all of them are taken. */
const MAX_HANDED = 256

/** In the order in which they came. What finds no room is dropped and counted. */
export class WaitingPackets<P extends { readonly data: Uint8Array }> {
  readonly #waiting: P[] = []
  /** Of those that wait and of those that were handed out last. */
  #bytes = 0
  #handed = 0
  #accepted = 0
  #dropped = 0
  #isOver = false
  #wake: () => void = () => undefined

  /** How many had room. */
  get accepted(): number {
    return this.#accepted
  }

  /** How many had none. */
  get dropped(): number {
    return this.#dropped
  }

  add(packets: readonly P[]): void {
    for (const packet of packets) {
      const bytes = bytesOf(packet)
      if (this.#bytes + bytes > MAX_WAITING_BYTES) this.#dropped++
      else {
        this.#bytes += bytes
        this.#accepted++
        this.#waiting.push(packet)
      }
    }
    this.#wake()
  }

  /** No more will come. */
  end(): void {
    this.#isOver = true
    this.#wake()
  }

  /**
   * The oldest of those that wait, once there are any: those of the call before have been taken then. Undefined when none are left and no
   * more will come. One call at a time.
   */
  async next(): Promise<readonly P[] | undefined> {
    this.#bytes -= this.#handed
    this.#handed = 0
    while (this.#waiting.length === 0) {
      if (this.#isOver) return undefined
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
    const packets = this.#waiting.splice(0, MAX_HANDED)
    for (const packet of packets) this.#handed += bytesOf(packet)
    return packets
  }
}

const bytesOf = ({ data }: { readonly data: Uint8Array }): number => data.length + PACKET_BYTES
