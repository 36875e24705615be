/** What was thrown, in words. */

/** The message of whatever was thrown: that of an Error, else its text; with what to do where no file could be opened any more. */
export function messageOf(error: unknown): string {
  if (lacksDirectory(error)) return 'the current directory has been deleted: change into another'
  const { code, message = String(error) } = error instanceof Error ? (error as NodeJS.ErrnoException) : {}
  const cure = NO_DESCRIPTOR.get(code)
  return cure === undefined ? message : `${message} (${cure})`
}

/** What to do where the system has no file descriptor left, by its code. */
const NO_DESCRIPTOR: ReadonlyMap<string | undefined, string> = new Map([
  ['EMFILE', 'this process may open no more files: raise its limit, ulimit -n, or LimitNOFILE= of a systemd unit'],
  ['ENFILE', 'this machine opens no more files: raise its limit, sysctl fs.file-max'],
])

/** Whether it was thrown since the current directory has been deleted: no relative path leads anywhere then, and no thread can be started. */
export function lacksDirectory(error: unknown): boolean {
  return error instanceof Error && (error as NodeJS.ErrnoException).syscall === 'uv_cwd'
}

/** What to do where a file of the program cannot be loaded. */
export const INSTALL_AGAIN =
  'restart the node if it was upgraded meanwhile; otherwise the installation is damaged: install it again'
