/** What was thrown, in words. */

/** The message of whatever was thrown: that of an Error, else its text. */
export function messageOf(error: unknown): string {
  if (lacksDirectory(error)) return 'the current directory has been deleted: change into another'
  return error instanceof Error ? error.message : String(error)
}

/** Whether it was thrown since the current directory has been deleted: no relative path leads anywhere then, and no thread can be started. */
export function lacksDirectory(error: unknown): boolean {
  return error instanceof Error && (error as NodeJS.ErrnoException).syscall === 'uv_cwd'
}

/** What to do where a file of the program cannot be loaded. */
export const INSTALL_AGAIN =
  'restart the node if it was upgraded meanwhile; otherwise the installation is damaged: install it again'
