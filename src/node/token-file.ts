/** The token of the data directory: how the command line on the node's machine gets in where loopback callers need a token too. */
import { constants, type Stats } from 'node:fs'
import { join } from 'node:path'
import { readRegularFile } from '../read-file.ts'
import type { AccessService } from '../services/access.ts'
import { replaceFile } from '../write-file.ts'

/** Its name in the data directory. */
export const TOKEN_FILE = 'local.token'
/** What the store knows it as; a name that no caller can give to a token. */
const TOKEN_NAME = `file:${TOKEN_FILE}`
/** Bytes of a file with a token, at most. */
const MAX_TOKEN_FILE_BYTES = 4096

/** The file could not be used: `code` says how, the message what to do. */
export class TokenFileError extends Error {
  override readonly name = 'TokenFileError'
  readonly code: 'MISSING' | 'FORBIDDEN' | 'REFUSED'

  constructor(code: TokenFileError['code'], message: string) {
    super(message)
    this.code = code
  }
}

export interface TokenFile {
  readonly token: string
  /** User id of the file's owner. */
  readonly owner: number
}

/** What to do about a file that is not taken. */
export interface TokenFileCures {
  readonly link: string
  readonly notRegular: string
  /** Others than its owner may use it. */
  readonly open: (path: string) => string
  readonly notOwn: string
}

/** Of the token that a node keeps, and makes again where there is none. */
const KEPT: TokenFileCures = {
  link: 'give the file itself, or remove the link',
  notRegular: 'remove it',
  open: () => 'remove the file and start its node again, which makes another',
  notOwn: 'remove it',
}

/** Reads a token from a file that only its owner can read or write, be that this user or, for root, another. Throws TokenFileError. */
export function readTokenFile(path: string, cures = KEPT): TokenFile {
  const refused = (what: string) => new TokenFileError('REFUSED', what)
  let owner = 0
  const inspect = ({ uid, mode }: Stats) => {
    const own = process.geteuid?.() ?? uid
    if ((mode & 0o077) !== 0) {
      const rights = (mode & 0o777).toString(8).padStart(4, '0')
      throw refused(
        `others than its owner may use ${path} (mode ${rights}), so the token in it may be known: ${cures.open(path)}`,
      )
    }
    if (uid !== own && own !== 0) throw refused(`${path} belongs to another user (uid ${uid}): ${cures.notOwn}`)
    owner = uid
  }
  try {
    const bytes = readRegularFile(path, MAX_TOKEN_FILE_BYTES, { flags: constants.O_NOFOLLOW, inspect })
    return { token: bytes.toString('utf8').trim(), owner }
  } catch (error) {
    if (error instanceof TokenFileError) throw error
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') throw new TokenFileError('MISSING', `there is no ${path}`)
    if (code === 'EACCES') throw new TokenFileError('FORBIDDEN', `this user may not read ${path}`)
    if (code === 'ELOOP') throw refused(`${path} is a symbolic link: ${cures.link}`)
    if (code === 'NOT_REGULAR') throw refused(`${path} is no ordinary file: ${cures.notRegular}`)
    if (code === 'TOO_LONG') throw refused(`${path} has more than ${MAX_TOKEN_FILE_BYTES} bytes: a token has fewer`)
    throw refused(`cannot read ${path}: ${message}`)
  }
}

/**
 * Sees to it that the data directory holds a token that is known: the one it holds, else a new one. Returns the file's path, and why a
 * token was made. Throws TokenFileError when the file is not to be trusted, or why none could be written.
 */
export async function keepTokenFile(
  directory: string,
  tokens: AccessService,
): Promise<{ path: string; made?: 'there was none' | 'the one there was not valid' }> {
  const path = join(directory, TOKEN_FILE)
  let isThere = true
  try {
    if (tokens.isToken(TOKEN_NAME, readTokenFile(path).token)) return { path }
  } catch (error) {
    if (!(error instanceof TokenFileError) || error.code !== 'MISSING') throw error
    isThere = false
  }
  // Known before it is in the file: whoever finds it there can use it.
  replaceFile(path, `${await tokens.replace(TOKEN_NAME)}\n`)
  return { path, made: isThere ? 'the one there was not valid' : 'there was none' }
}
