/** The texts that commands take from files, pipes and standard input. */
import { isUtf8 } from 'node:buffer'
import { createReadStream } from 'node:fs'
import { messageOf } from '../text/error-message.ts'
import { writeSize } from '../text/sizes.ts'
import { Failure } from './failure.ts'

/** Bytes of such a text, at most: those of 64 configurations of 1 MiB, which one file for `pipelines apply` may hold. */
const MAX_TEXT_BYTES = 64 << 20

const BYTE_ORDER_MARK = '\ufeff'

/**
 * The text of a file, which may be a pipe, `-` being standard input; of one that has more than `most` bytes the rest is never read. Without the byte
 * order mark that some editors begin files with (RFC 8259, section 8.1, lets readers ignore it).
 */
export async function readInput(file: string, most = MAX_TEXT_BYTES): Promise<string> {
  if (file === '') throw new Failure('the name of the file to read is empty')
  const name = file === '-' ? 'standard input' : file
  try {
    const bytes = await bytesOf(file === '-' ? process.stdin : createReadStream(file), most)
    if (bytes === undefined) {
      throw new Failure(`${name} has more than ${writeSize(most)}, the most that is read: name the file that is meant`)
    }
    // A decoder would put something else in its place.
    if (!isUtf8(bytes)) throw new Failure(`${name} is not UTF-8 text`)
    const text = bytes.toString('utf8')
    return text.startsWith(BYTE_ORDER_MARK) ? text.slice(BYTE_ORDER_MARK.length) : text
  } catch (error) {
    if (error instanceof Failure) throw error
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') throw new Failure(`no such file: ${file}`)
    if (code === 'EISDIR') throw new Failure(`${file} is a directory, not a file`)
    throw new Failure(`cannot read ${file}: ${messageOf(error)}`)
  }
}

/** All that comes; undefined when that is more than `most` bytes. */
async function bytesOf(coming: AsyncIterable<Buffer>, most: number): Promise<Buffer | undefined> {
  const pieces: Buffer[] = []
  let count = 0
  for await (const piece of coming) {
    count += piece.length
    if (count > most) return undefined
    pieces.push(piece)
  }
  return Buffer.concat(pieces)
}
