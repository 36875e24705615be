/** Streams as commands follow them: Ctrl-C is an end of them, no failure. */
import type { MessageStream } from '@penstock/client'

/** The messages of a stream that ends with `signal`, until it does: none of those that had come by then and were not asked for. */
export async function* untilAborted<M>(messages: MessageStream<M>, signal: AbortSignal): AsyncGenerator<M, void> {
  try {
    for await (const message of messages) {
      if (signal.aborted) return
      yield message
    }
  } catch (error) {
    if (!signal.aborted) throw error
  }
}

/** What a call that was made with `signal` answers; undefined once that has ended it. */
export async function unlessAborted<R>(call: Promise<R>, signal: AbortSignal): Promise<R | undefined> {
  return await call.catch((error: unknown) => {
    if (!signal.aborted) throw error
    return undefined
  })
}

/** The messages of a stream until `signal`, once the stream stands: whatever happens from then on is told. */
export async function standing<M>(messages: MessageStream<M>, signal: AbortSignal): Promise<AsyncGenerator<M, void>> {
  await messages.opened().catch((error: unknown) => {
    if (!signal.aborted) throw error
  })
  return untilAborted(messages, signal)
}
