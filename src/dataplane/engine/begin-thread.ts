/**
 * How Piscina begins a thread (packaging/bundles.js): where the system has none, what Node.js has made for it is given back. `new Worker` throws after
 * that, so that nobody has what it was to return, and Node.js 20 leaves open ports and listeners at the standard output and error of the process, 36 kB of memory
 * each time.
 */
import { Worker, type WorkerOptions } from 'node:worker_threads'

/** The thread that is being begun: the first that its constructor calls of it is `on`. */
let begun: { thread?: Worker } | undefined

class Thread extends Worker {
  override on(event: string | symbol, listener: Parameters<Worker['on']>[1]): this {
    if (begun !== undefined) begun.thread = this
    return super.on(event, listener)
  }
}

/** What Node.js does at the end of a thread: closes its ports, ends the streams of its output. Absent where it has another name. */
const atExit = Object.getOwnPropertySymbols(Worker.prototype).find(({ description }) => description === 'kOnExit')

type Exit = (this: Worker, code: number) => void

/** Begins a thread. Throws with code ERR_WORKER_INIT_FAILED, and nothing left open, where the system has none. */
export function beginThread(file: string, options: WorkerOptions): Worker {
  const making: { thread?: Worker } = {}
  begun = making
  try {
    return new Thread(file, options)
  } catch (error) {
    const { thread } = making
    if ((error as NodeJS.ErrnoException).code === 'ERR_WORKER_INIT_FAILED' && thread && atExit) {
      const exit = (thread as unknown as Record<symbol, Exit | undefined>)[atExit]
      exit?.call(thread, 1)
    }
    throw error
  } finally {
    begun = undefined
  }
}
