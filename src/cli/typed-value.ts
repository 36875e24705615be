/** Values as they are typed on the command line: JSON where that is JSON, else text. */
import { UsageFailure } from './failure.ts'

/** The value that `text` says. Fails, with `where` before the reason, when a number in it is beyond those that there are, which JSON.parse takes in silence. */
export function typedValue(text: string, where: string): unknown {
  try {
    return JSON.parse(text, (_, value: unknown) => (typeof value === 'number' ? finite(value, text, where) : value))
  } catch (error) {
    if (error instanceof UsageFailure) throw error
    return text
  }
}

/** `value`, which `text` says or a part of it. Fails when it is no finite number. */
export function finite(value: number, text: string, where: string): number {
  if (Number.isFinite(value)) return value
  throw new UsageFailure(`${where}: the number in ${text} is too large: ${Number.MAX_VALUE} is the largest there is`)
}
