/** What was thrown, in words. */

/** The message of whatever was thrown: that of an Error, else its text. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** What to do where a file of the program cannot be loaded. */
export const INSTALL_AGAIN =
  'restart the node if it was upgraded meanwhile; otherwise the installation is damaged: install it again'
