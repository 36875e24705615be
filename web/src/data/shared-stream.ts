/** One stream that several stores read: open while one of them does. */
import type { StreamOptions } from '@penstock/client'
import type { Reader } from './live.ts'

interface Follower<Message> {
  readonly feed: Reader
  readonly onMessage: (message: Message) => void
}

interface Open<Message> {
  readonly followers: Set<Follower<Message>>
  readonly end: AbortController
  readonly over: Promise<void>
  isStanding: boolean
}

export class SharedStreams<Message> {
  readonly #open: (key: string, options: StreamOptions) => AsyncIterable<Message>
  readonly #streams = new Map<string, Open<Message>>()

  constructor(open: (key: string, options: StreamOptions) => AsyncIterable<Message>) {
    this.#open = open
  }

  /** Reads the stream until it ends, as the promise does, or the feed's signal aborts. */
  async follow(key: string, feed: Reader, onMessage: (message: Message) => void): Promise<void> {
    const stream = this.#streams.get(key) ?? this.#begin(key)
    const follower = { feed, onMessage }
    stream.followers.add(follower)
    if (stream.isStanding) feed.opened()
    const left = new Promise<void>((resolve) => feed.signal.addEventListener('abort', () => resolve(), { once: true }))
    try {
      await Promise.race([stream.over, left])
    } finally {
      stream.followers.delete(follower)
      if (stream.followers.size === 0) this.#finish(key, stream)
    }
  }

  #begin(key: string): Open<Message> {
    const followers = new Set<Follower<Message>>()
    const end = new AbortController()
    const onOpen = (): void => {
      stream.isStanding = true
      for (const { feed } of followers) feed.opened()
    }
    const onBreak: StreamOptions['onBreak'] = (error) => {
      stream.isStanding = false
      for (const { feed } of followers) feed.lost(error)
    }
    const read = async (): Promise<void> => {
      for await (const message of this.#open(key, { signal: end.signal, onOpen, onBreak })) {
        for (const { onMessage } of followers) onMessage(message)
      }
    }
    const stream: Open<Message> = { followers, end, over: Promise.resolve().then(read), isStanding: false }
    // Followers hear of it; when the last has left nobody needs to.
    stream.over.catch(() => {})
    this.#streams.set(key, stream)
    return stream
  }

  #finish(key: string, stream: Open<Message>): void {
    if (this.#streams.get(key) === stream) this.#streams.delete(key)
    stream.end.abort()
  }
}
