/** Reads files that somebody names: regular ones alone, as nothing could end the process while it waits for a pipe or a device. */
import { closeSync, constants, fstatSync, openSync, readSync, type Stats } from 'node:fs'

/** Why a file that is there and may be read is not. */
export class FileRefused extends Error {
  override readonly name = 'FileRefused'
  readonly code: 'NOT_REGULAR' | 'TOO_LONG'
  /** Of one that is too long: how many bytes it has, at least. */
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
    return readAll(descriptor, stat.size, most)
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

/** To the end, whatever length the system says: files that it makes up when they are read have none, or a rounded one. */
function readAll(descriptor: number, expected: number, most: number): Buffer {
  let bytes = Buffer.alloc(expected + 1)
  let count = 0
  for (;;) {
    const read = readSync(descriptor, bytes, count, bytes.length - count, count)
    count += read
    if (read === 0) return bytes.subarray(0, count)
    if (count > most) throw new FileRefused('TOO_LONG', count)
    if (count === bytes.length) bytes = Buffer.concat([bytes], Math.max(2 * bytes.length, LEAST_BYTES))
  }
}

/** Room for a file of an unknown length, at first. */
const LEAST_BYTES = 4096
