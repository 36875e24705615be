/** Standard output that nobody reads any more, or that takes no more: every command hears of both here. */
import { closeSync, fstatSync, writeSync } from 'node:fs'
import { isatty } from 'node:tty'
import { messageOf } from '../text/error-message.ts'

/** Nobody reads it: `| head` has seen enough. Or writing failed: the disk is full. */
export type OutputLoss = 'unread' | 'failed'

/** Exit code of a command whose output was lost: who stops reading has what they wanted. */
const EXIT_CODES: Record<OutputLoss, number> = { unread: 0, failed: 1 }

let loss: OutputLoss | undefined
let needsReader = true
let isWatched = false
const listeners = new Set<(loss: OutputLoss) => void>()
const terminals = [0, 1, 2].filter((descriptor) => isatty(descriptor))

/** Those of standard input, output and error that were a terminal, which has gone away. */
export const goneTerminals = (): readonly number[] => terminals.filter((descriptor) => !isatty(descriptor))

/** Whether the command was ended because of that: what it says about its end is of no interest then. */
export function isOutputLost(): boolean {
  return loss !== undefined
}

/** Looks after standard output from now on; `complain` gets the one line about a failure to write. */
export function superviseOutput(complain: (message: string) => void): void {
  if (fstatSync(1).isFile()) process.stdout._write = writeToFile
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (loss === undefined && error.code !== 'EPIPE') complain(`cannot write to standard output: ${messageOf(error)}`)
    lose(error.code === 'EPIPE' ? 'unread' : 'failed')
  })
  // There is nowhere left to say so.
  process.stderr.on('error', () => {})
  // The last word: a failure to write may be told when the command is done already.
  process.on('exit', () => {
    if (loss !== undefined) process.exitCode = EXIT_CODES[loss]
    // Node.js gives terminals their modes back at its end, and aborts (SIGABRT, a core dump) where one does not take them; closed ones it leaves alone.
    for (const descriptor of goneTerminals()) closeSync(descriptor)
  })
}

/**
 * Node.js writes once to a file, and takes what a disk that became full, or a limit, has cut off for written (lib/internal/fs/sync_write_stream.js):
 * the rest is tried here, and fails.
 */
function writeToFile(bytes: Buffer, _encoding: BufferEncoding, done: (error?: Error) => void): void {
  try {
    for (let at = 0; at < bytes.length; ) at += writeSync(1, bytes, at)
  } catch (error) {
    done(error as Error)
    return
  }
  done()
}

/** Adds what is done, instead of exiting at once, when the output is lost. */
export function onOutputLoss(listener: (loss: OutputLoss) => void): void {
  listeners.add(listener)
  if (loss !== undefined) listener(loss)
}

/** The command does its work for more than its output: it goes on when nobody reads that any more. */
export function goOnUnread(): void {
  needsReader = false
}

/**
 * Hears that nobody reads the output at the moment that happens, for commands that may have nothing to write for long: a pipe tells its
 * writer only when that writes.
 */
export function watchReader(): void {
  if (!needsReader || isWatched) return
  isWatched = true
  import('../dataplane/native/native.ts')
    .then(({ native }) => native.watchHangup(1, () => lose('unread')))
    // Without the addon, or without standard output, the next write tells.
    .catch(() => {})
}

function lose(which: OutputLoss): void {
  if (loss !== undefined || (which === 'unread' && !needsReader)) return
  loss = which
  if (listeners.size === 0) process.exit(EXIT_CODES[which])
  for (const listener of listeners) listener(which)
}
