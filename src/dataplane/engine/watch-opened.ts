/** Watching what has just been opened. */
import { native } from '../native/native.ts'

/** Has `poller` watch `handle` under `token`. Closes it where that fails, as nobody else has it yet, and throws. */
export function watchOpened(poller: number, handle: number, token: number): void {
  try {
    native.pollerAdd(poller, handle, token)
  } catch (error) {
    native.close(handle)
    throw error
  }
}
