/** Reads files that somebody names: regular ones alone, as nothing could end the process while it waits for a pipe or a device. */
import { closeSync, constants, fstatSync, openSync, readSync, type Stats } from 'node:fs'

/** Why a file that is there and may be read is not. */
export class FileRefused extends Error {
  override readonly name = 'FileRefused'
  readonly code: 'NOT_REGULAR' | 'TOO_LONG' | 'SHORTENED'
  /** How many bytes it has; of one that has become shorter meanwhile, those that were read. */
  readonly bytes: number

  constructor(code: FileRefused['code'], bytes = 0) {
    super(code)
    this.code = code
    this.bytes = bytes
  }
}

export interface ReadOptions {
  /** Flags of open(2) beside those that it is opened with. */
  readonly flags?: number
  /** Told of the regular file before it is read; throws where it is not to be. */
  readonly inspect?: (stat: Stats) => void
}

/** The bytes of a regular file, which has `most` of them at most. Throws FileRefused, or what the system says. */
export function readRegularFile(path: string, most: number, { flags = 0, inspect }: ReadOptions = {}): Buffer {
  const descriptor = open(path, flags)
  try {
    const stat = fstatSync(descriptor)
    if (!stat.isFile()) throw new FileRefused('NOT_REGULAR')
    inspect?.(stat)
    if (stat.size > most) throw new FileRefused('TOO_LONG', stat.size)
    const bytes = Buffer.alloc(stat.size)
    for (let at = 0; at < bytes.length; ) {
      const read = readSync(descriptor, bytes, at, bytes.length - at, at)
      if (read === 0) throw new FileRefused('SHORTENED', at)
      at += read
    }
    return bytes
  } finally {
    closeSync(descriptor)
  }
}

function open(path: string, flags: number): number {
  try {
    return openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY | flags)
  } catch (error) {
    // A socket, or a device that nothing stands behind.
    if ((error as NodeJS.ErrnoException).code === 'ENXIO') throw new FileRefused('NOT_REGULAR')
    throw error
  }
}
