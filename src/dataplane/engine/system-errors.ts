/** What the numbers of the kernel's errors are called. */
import { constants } from 'node:os'
import { getSystemErrorMap } from 'node:util'
import { unnamed } from '../../text/error-message.ts'

/** The name of an errno, such as ECONNREFUSED. */
export function errorName(errno: number): string {
  const name = Object.entries(constants.errno).find(([, value]) => value === errno)?.[0]
  return name ?? unnamed(errno)?.[0] ?? `errno ${errno}`
}

/** Name and meaning, 'ECONNREFUSED, connection refused'; the name alone where neither is known. */
export function errorText(errno: number): string {
  const words = getSystemErrorMap().get(-errno) ?? unnamed(errno)
  return words ? words.join(', ') : errorName(errno)
}
