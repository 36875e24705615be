/** What was thrown, in words. */

/** The message of whatever was thrown: that of an Error, else its text. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
