/** Standard error as the node's log has it: what it does not take at once waits, in order, and what is lost is counted. Standard output has its first line so. */
import { constants, openSync, writeSync } from 'node:fs'
import { isatty } from 'node:tty'
import type { DestinationStream } from 'pino'
import { codeOf } from '../text/error-message.ts'

/** Bytes of lines that wait, at most: further ones are lost. A line that is longer waits alone. */
const MAX_WAITING_BYTES = 256 << 10
/** How long until what waits is tried again, milliseconds. */
const AGAIN_MS = 100
/** A pipe, a socket or a terminal whose reader is slow, a file on a disk that is full. With every other error nobody reads any more. */
const FULL = new Set(['EAGAIN', 'ENOSPC', 'EDQUOT'])

/**
 * Standard output (1) or error (2), for writing that does not wait: Node.js has it so where it is a pipe or a socket. A terminal, which others share, is opened
 * once more: it takes nothing for as long as Ctrl-S holds it, or the connection that it is at the end of stands still.
 */
function openAgain(descriptor: 1 | 2): number {
  if (!isatty(descriptor)) return descriptor
  try {
    return openSync(`/proc/self/fd/${descriptor}`, constants.O_WRONLY | constants.O_NOCTTY | constants.O_NONBLOCK)
  } catch {
    // It belongs to another user.
    return descriptor
  }
}

/** Writes what there is room for, and gives how many bytes that were; throws where there is none. */
export function writerTo(descriptor: 1 | 2): (bytes: Buffer) => number {
  const opened = openAgain(descriptor)
  return (bytes) => writeSync(opened, bytes)
}

export class LogOutput implements DestinationStream {
  /** Hears how many lines were lost once there is room again; what it writes stands in their place. */
  onLost: (lines: number) => void = () => {}
  readonly #put: (bytes: Buffer) => number
  /** The first may be what is left of a line. */
  readonly #waiting: Buffer[] = []
  #bytes = 0
  #lost = 0
  #timer: NodeJS.Timeout | undefined

  /** `put` is as what `writerTo` gives. */
  constructor(put = writerTo(2)) {
    this.#put = put
  }

  /** Never throws, never waits. */
  write(line: string): void {
    this.#drain()
    const bytes = Buffer.from(line)
    const isFirst = this.#waiting.length === 0
    if (!isFirst && (this.#lost > 0 || this.#bytes + bytes.length > MAX_WAITING_BYTES)) {
      this.#lost++
      return
    }
    this.#waiting.push(bytes)
    this.#bytes += bytes.length
    if (isFirst) this.#drain()
  }

  #drain(): void {
    try {
      for (let line = this.#waiting[0]; line !== undefined; line = this.#waiting[0]) {
        const written = this.#put(line)
        this.#bytes -= written
        if (written < line.length) this.#waiting[0] = line.subarray(written)
        else this.#waiting.shift()
      }
    } catch (error) {
      if (FULL.has(codeOf(error) ?? '')) {
        // It keeps a process that ends: `up` says for how long.
        this.#timer ??= setTimeout(() => {
          this.#timer = undefined
          this.#drain()
        }, AGAIN_MS)
        return
      }
      this.#waiting.length = 0
      this.#bytes = 0
      this.#lost = 0
      return
    }
    const lines = this.#lost
    this.#lost = 0
    if (lines > 0) this.onLost(lines)
  }
}
