/** Where a capture is written to: a file, a FIFO or standard output, piece by piece. */
import { closeSync, constants, openSync } from 'node:fs'
import { type FileHandle, open, stat } from 'node:fs/promises'
import { Socket } from 'node:net'
import type { Writable } from 'node:stream'
import { messageOf } from '../text/error-message.ts'
import { Failure } from './failure.ts'
import { pause } from './options.ts'
import { onOneLine } from './terminal.ts'

/** Milliseconds between two looks for a reader of a FIFO. */
const LOOK_AGAIN = 100
/** Milliseconds that a reader has, once the command is to end, for what is still to be written. */
const LAST_WAIT = 1000

interface CaptureFile {
  /**
   * How many of the pieces were written whole. Fewer than all: it takes no more, as the disk is full, nobody reads any more, or the
   * command is to end and nobody reads now.
   */
  write(pieces: readonly Buffer[]): Promise<number>
  /** Gives what kept it from being written, if anything but its reader's end did. */
  close(): Promise<Failure | undefined>
}

/** Opens `name`, `-` being standard output; undefined when `signal` aborts before a FIFO has a reader. */
export async function openCaptureFile(name: string, signal: AbortSignal): Promise<CaptureFile | undefined> {
  if (name === '-') return await standardOutput(signal)
  try {
    if (await isFifo(name)) {
      const fifo = await openFifo(name, signal)
      return fifo && piped(fifo, name, signal)
    }
    const handle = await open(name, 'w')
    return plain(handle, name, (await handle.stat()).isFile())
  } catch (error) {
    throw cannotWrite(name, error)
  }
}

const cannotWrite = (name: string, error: unknown) => new Failure(`cannot write ${name}: ${messageOf(error)}`)

const isFifo = (name: string): Promise<boolean> =>
  stat(name).then(
    (found) => found.isFIFO(),
    () => false,
  )

/** Its end that writes, without blocking: an open that waits for a reader could not be ended. */
function openToWrite(name: string): Socket {
  const fd = openSync(name, constants.O_WRONLY | constants.O_NONBLOCK)
  try {
    return new Socket({ fd, readable: false, writable: true })
  } catch (error) {
    closeSync(fd)
    throw error
  }
}

async function openFifo(name: string, signal: AbortSignal): Promise<Socket | undefined> {
  for (let isTold = false; !signal.aborted; isTold = true) {
    try {
      return openToWrite(name)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENXIO') throw error
    }
    if (!isTold) process.stderr.write(`waiting for a reader of ${onOneLine(name)}\n`)
    await pause(LOOK_AGAIN, signal)
  }
  return undefined
}

/** A pipe is opened once more: `process.stdout` cannot be closed, and what nobody reads would keep the process. */
async function standardOutput(signal: AbortSignal): Promise<CaptureFile> {
  const name = '/proc/self/fd/1'
  if (await isFifo(name)) {
    try {
      return piped(openToWrite(name), 'standard output', signal)
    } catch {
      // The pipe of another user, or one without a reader, of which process.stdout will hear.
    }
  }
  return piped(process.stdout, 'standard output', signal)
}

/** A file or a device. A file that took a part of a packet is cut behind the last one that is whole. */
function plain(handle: FileHandle, name: string, isFile: boolean): CaptureFile {
  let failure: Failure | undefined
  let length = 0
  return {
    async write(pieces) {
      if (failure) return 0
      const bytes = Buffer.concat(pieces)
      let written = 0
      try {
        while (written < bytes.length) written += (await handle.write(bytes, written)).bytesWritten
      } catch (error) {
        failure = cannotWrite(name, error)
      }
      let whole = 0
      for (let end = 0; whole < pieces.length; whole++) {
        end += (pieces[whole] as Buffer).length
        if (end > written) break
        length += (pieces[whole] as Buffer).length
      }
      if (failure && isFile) await handle.truncate(length).catch(() => {})
      return whole
    },
    async close() {
      // A file system over a network may say only now that it has no room.
      await handle.close().catch((error: unknown) => {
        failure ??= cannotWrite(name, error)
      })
      return failure
    },
  }
}

/** What a reader takes at its own pace, or leaves. */
function piped(stream: Writable, name: string, signal: AbortSignal): CaptureFile {
  let failure: NodeJS.ErrnoException | undefined
  let isOver = false
  let endWrite = () => {}
  const giveUp = () => {
    isOver = true
    endWrite()
  }
  stream.on('error', (error: NodeJS.ErrnoException) => {
    failure ??= error
    giveUp()
  })
  const lastWait = () => setTimeout(giveUp, LAST_WAIT).unref()
  if (signal.aborted) lastWait()
  else signal.addEventListener('abort', lastWait, { once: true })
  return {
    async write(pieces) {
      let whole = 0
      if (isOver || pieces.length === 0) return 0
      await new Promise<void>((resolve) => {
        endWrite = resolve
        for (const piece of pieces) {
          stream.write(piece, (error) => {
            if (!error && ++whole === pieces.length) resolve()
          })
        }
      })
      return whole
    },
    async close() {
      // What was written is in the pipe; what was given up must not keep the process.
      if (stream === process.stdout) return undefined
      stream.destroy()
      // Who stops reading has what they wanted.
      return failure && failure.code !== 'EPIPE' ? cannotWrite(name, failure) : undefined
    },
  }
}
