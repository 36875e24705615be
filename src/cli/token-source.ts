/** The token that a command sends with its requests, and what to do when it was not the right one. */
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { isLoopbackHost } from '../contract/address.ts'
import { defaultDataDirectory } from '../node/settings.ts'
import { readTokenFile, TOKEN_FILE, type TokenFile, type TokenFileCures, TokenFileError } from '../node/token-file.ts'
import { Failure, UsageFailure } from './failure.ts'

export interface TokenOptions {
  tokenFile?: string
  dataDir?: string
}

export interface FoundToken {
  readonly token?: string
  /** To be sent to a node that asks for one. */
  readonly tokenIfAsked?: string
  /** What to do when the node refuses the caller. */
  readonly advice: string
}

const OTHERWISE =
  'or have that user make a token (penstock token create NAME), and give it in PENSTOCK_TOKEN or in a file with --token-file'

/**
 * Flags go before variables; without either, the data directory is looked at where `penstock up` has it by default. A data directory's
 * token goes to this machine only, and there to nobody but the owner of the file, or root.
 */
export function findToken(url: string, { tokenFile, dataDir }: TokenOptions): FoundToken {
  const { PENSTOCK_TOKEN, PENSTOCK_TOKEN_FILE, PENSTOCK_DATA_DIRECTORY } = process.env
  const isHere = isLoopbackHost(new URL(url).hostname)
  if (tokenFile !== undefined && dataDir !== undefined) throw new UsageFailure('give --token-file or --data-dir')
  if (tokenFile !== undefined) return fromFile(tokenFile)
  if (dataDir !== undefined) {
    if (isHere) return fromDirectory(url, dataDir, true)
    throw new UsageFailure('--data-dir is for a node on this machine: give --token-file or PENSTOCK_TOKEN for another')
  }
  if (PENSTOCK_TOKEN) return { token: PENSTOCK_TOKEN, advice: sent('PENSTOCK_TOKEN') }
  if (PENSTOCK_TOKEN_FILE) return fromFile(PENSTOCK_TOKEN_FILE)
  const directory = PENSTOCK_DATA_DIRECTORY || defaultDataDirectory()
  if (isHere && directory !== undefined) return fromDirectory(url, directory, false)
  return { advice: 'give the token in PENSTOCK_TOKEN, or in a file with --token-file' }
}

/** Of a token that somebody has stored: it is not to be lost. */
const STORED: TokenFileCures = {
  link: 'give the file that it leads to',
  notRegular: 'give the file that holds the token',
  open: (path) => `chmod 600 ${path}, and if somebody may have read it, have another made and this one revoked`,
  notOwn: 'give a copy that belongs to this user and that only this user may read',
}

function fromFile(path: string): FoundToken {
  try {
    return { token: readTokenFile(path, STORED).token, advice: sent(path) }
  } catch (error) {
    throw error instanceof TokenFileError ? new Failure(`the token cannot be taken: ${error.message}`) : error
  }
}

/** `isNamed`: the directory was asked for, so that a file which cannot be used there is a failure by itself. */
function fromDirectory(url: string, directory: string, isNamed: boolean): FoundToken {
  const path = join(resolve(directory), TOKEN_FILE)
  let found: TokenFile
  try {
    found = readTokenFile(path)
  } catch (error) {
    if (!(error instanceof TokenFileError)) throw error
    if (isNamed && error.code !== 'MISSING') throw new Failure(`the token cannot be taken: ${error.message}`)
    if (error.code === 'REFUSED') return { advice: `no token was sent: ${error.message}` }
    return {
      advice:
        `no token was sent: ${error.message}\n` +
        `  run this as the user of the node, with --data-dir if it keeps its state elsewhere; ${OTHERWISE}`,
    }
  }
  const { protocol, port } = new URL(url)
  const stranger = strangerAt(Number(port || (protocol === 'https:' ? 443 : 80)), found.owner)
  if (stranger === undefined) return { tokenIfAsked: found.token, advice: sent(path) }
  return {
    advice:
      `the token in ${path} was not sent: what listens at ${url} is not its owner's (uid ${stranger}, not ${found.owner})\n` +
      `  if that is meant, give the file with --token-file; ${OTHERWISE}`,
  }
}

function sent(from: string): string {
  return `the token sent was that of ${from}: for another node's, see --data-dir, --token-file and PENSTOCK_TOKEN`
}

/**
 * The user id of somebody other than `owner` and root who listens on TCP port `port` of this machine (proc(5), /proc/net/tcp): any user
 * can take a port that is free, and would be handed the token.
 */
function strangerAt(port: number, owner: number): number | undefined {
  const LISTENING = '0A'
  const hexPort = port.toString(16).toUpperCase().padStart(4, '0')
  for (const table of ['/proc/net/tcp', '/proc/net/tcp6']) {
    let text: string
    try {
      text = readFileSync(table, 'latin1')
    } catch {
      continue
    }
    for (const line of text.split('\n').slice(1)) {
      const [, local, , state, , , , uid] = line.trim().split(/\s+/)
      if (state !== LISTENING || !local?.endsWith(`:${hexPort}`)) continue
      if (Number(uid) !== owner && Number(uid) !== 0) return Number(uid)
    }
  }
  return undefined
}
