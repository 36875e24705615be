/** What was thrown, in words. */

/** The message of whatever was thrown: that of an Error, else its text; with what to do where no file could be opened any more. */
export function messageOf(error: unknown): string {
  if (lacksDirectory(error)) return 'the current directory has been deleted: change into another'
  const message = wordsOf(error)
  const cure = NO_DESCRIPTOR.get(codeOf(error))
  return cure === undefined ? message : `${message} (${cure})`
}

/** The message alone, with the system's name and words for an error of its where Node.js has none. */
export function wordsOf(error: unknown): string {
  return error instanceof Error ? named(error, error.message) : String(error)
}

/** The code of an error, by the system's name for it also where Node.js has none. */
export function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  return unnamedOf(error)?.[0] ?? (error as NodeJS.ErrnoException).code
}

/** `text`, the message or the stack of `error`, with the system's name and words in the place of those that Node.js gives an error it does not know. */
export function named(error: Error, text: string): string {
  const found = unnamedOf(error)
  if (found === undefined) return text
  const [name, words] = found
  const { code } = error as { code?: string }
  if (code === UNMAPPED) return text.replace(`${UNMAPPED}: unknown error`, `${name}: ${words}`)
  return text.replaceAll(`${code}: ${code}`, `${name}: ${words}`).replaceAll(`${code}`, name)
}

/** The code that Node.js gives such an error of a synchronous call, with 'unknown error' for words; others have one with the number. */
const UNMAPPED = 'UNKNOWN'

function unnamedOf(error: NodeJS.ErrnoException): readonly [name: string, words: string] | undefined {
  const { code, errno = 0 } = error
  // Those of libraries have numbers of their own (zlib, Brotli), beside codes of their own.
  return code === `Unknown system error ${errno}` || code === UNMAPPED ? unnamed(-errno) : undefined
}

/** Name and words of an error of the system's that Node.js has none for, by its number. */
export function unnamed(errno: number): readonly [name: string, words: string] | undefined {
  return UNNAMED.get(errno)
}

/** Errors of Linux that files, sockets, locks and programs give and libuv 1.46, as of Node.js 20, has no name for, by their numbers on x64 and arm64: with the words of glibc. */
const UNNAMED: ReadonlyMap<number, readonly [name: string, words: string]> = new Map([
  [8, ['ENOEXEC', 'Exec format error']],
  [35, ['EDEADLK', 'Resource deadlock avoided']],
  [37, ['ENOLCK', 'No locks available']],
  [52, ['EBADE', 'Invalid exchange']],
  [62, ['ETIME', 'Timer expired']],
  [65, ['ENOPKG', 'Package not installed']],
  [66, ['EREMOTE', 'Object is remote']],
  [67, ['ENOLINK', 'Link has been severed']],
  [70, ['ECOMM', 'Communication error on send']],
  [72, ['EMULTIHOP', 'Multihop attempted']],
  [74, ['EBADMSG', 'Bad message']],
  [76, ['ENOTUNIQ', 'Name not unique on network']],
  [77, ['EBADFD', 'File descriptor in bad state']],
  [78, ['EREMCHG', 'Remote address changed']],
  [79, ['ELIBACC', 'Can not access a needed shared library']],
  [80, ['ELIBBAD', 'Accessing a corrupted shared library']],
  [85, ['ERESTART', 'Interrupted system call should be restarted']],
  [87, ['EUSERS', 'Too many users']],
  [96, ['EPFNOSUPPORT', 'Protocol family not supported']],
  [102, ['ENETRESET', 'Network dropped connection on reset']],
  [109, ['ETOOMANYREFS', 'Too many references: cannot splice']],
  [115, ['EINPROGRESS', 'Operation now in progress']],
  [116, ['ESTALE', 'Stale file handle']],
  [117, ['EUCLEAN', 'Structure needs cleaning']],
  [122, ['EDQUOT', 'Disk quota exceeded']],
  [123, ['ENOMEDIUM', 'No medium found']],
  [124, ['EMEDIUMTYPE', 'Wrong medium type']],
  [126, ['ENOKEY', 'Required key not available']],
  [127, ['EKEYEXPIRED', 'Key has expired']],
  [128, ['EKEYREVOKED', 'Key has been revoked']],
  [129, ['EKEYREJECTED', 'Key was rejected by service']],
  [130, ['EOWNERDEAD', 'Owner died']],
  [131, ['ENOTRECOVERABLE', 'State not recoverable']],
  [132, ['ERFKILL', 'Operation not possible due to RF-kill']],
  [133, ['EHWPOISON', 'Memory page has hardware error']],
])

/** What to do where the system has no file descriptor left, by its code. */
const NO_DESCRIPTOR: ReadonlyMap<string | undefined, string> = new Map([
  ['EMFILE', 'this process may open no more files: raise its limit, ulimit -n, or LimitNOFILE= of a systemd unit'],
  ['ENFILE', 'this machine opens no more files: raise its limit, sysctl fs.file-max'],
])

/** Whether an error with this code was thrown since no file could be opened any more: not where, but what to do is of use. */
export function lacksDescriptor(code: string | undefined): boolean {
  return NO_DESCRIPTOR.has(code)
}

/** Whether it was thrown since the current directory has been deleted: no relative path leads anywhere then, and no thread can be started. */
export function lacksDirectory(error: unknown): boolean {
  return error instanceof Error && (error as NodeJS.ErrnoException).syscall === 'uv_cwd'
}

/** What to do where a file of the program cannot be loaded. */
export const INSTALL_AGAIN =
  'restart the node if it was upgraded meanwhile; otherwise the installation is damaged: install it again'
