/** What the numbers of the kernel's errors are called. */
import { constants } from 'node:os'
import { getSystemErrorMap } from 'node:util'

/** The name of an errno, such as ECONNREFUSED. */
export function errorName(errno: number): string {
  return Object.entries(constants.errno).find(([, value]) => value === errno)?.[0] ?? `errno ${errno}`
}

/** Name and meaning, 'ECONNREFUSED, connection refused'; the name alone where libuv has no words for it. */
export function errorText(errno: number): string {
  const words = getSystemErrorMap().get(-errno)
  return words ? words.join(', ') : errorName(errno)
}
