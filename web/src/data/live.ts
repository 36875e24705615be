/** State that comes in by a stream: open while somebody watches it, published to views once a frame or more seldom. */
import { PenstockError } from '@penstock/client'
import { useSyncExternalStore } from 'react'
import { onFrame } from './frame.ts'

type LiveStatus =
  /** Nothing has come yet. */
  | 'opening'
  | 'live'
  /** The stream broke and is asked for again; what is shown was true before. */
  | 'lost'
  /** The node refuses the stream, or it ended with a failure. */
  | 'failed'
  /** The node has ended it. */
  | 'ended'

export interface Live<Value> {
  readonly status: LiveStatus
  readonly value: Value
  /** Why it is lost or failed. */
  readonly error?: PenstockError | undefined
}

/** What a source tells of the stream that it reads. */
export interface Reader {
  /** Aborts when nobody watches any more. */
  readonly signal: AbortSignal
  /** For the stream's `onOpen`: what comes from now on is true. */
  readonly opened: () => void
  /** For the stream's `onBreak`. */
  readonly lost: (error: PenstockError) => void
}

export interface Feed<Value> extends Reader {
  /** Replaces the value; views see the last one of a frame, or of what else the store was given. */
  set(value: Value): void
  get(): Value
}

/** Milliseconds for which a stream that nobody watches any more stays open: views come and go. */
const LINGER = 3_000
/** Milliseconds until a call that did not reach the node is made again. */
const RETRY = 2_000

/** Stores whose streams failed because the node does not know who asks. */
const refused = new Set<{ retry(): void }>()

/** Opens the streams again that failed for want of a token that the node knows. */
export function retryRefused(): void {
  for (const store of [...refused]) store.retry()
}

/** One stream's state, for all who watch. */
export class LiveStore<Value> {
  readonly #initial: Value
  readonly #source: (feed: Feed<Value>) => Promise<void>
  readonly #onIdle: () => void
  readonly #soon: (publish: () => void) => void
  readonly #listeners = new Set<() => void>()
  /** What came; `#shown` is what views have been told. */
  #state: Live<Value>
  #shown: Live<Value>
  #running: AbortController | undefined
  #closing: ReturnType<typeof setTimeout> | undefined

  /** `source` reads until its feed's signal aborts or the stream ends; `onIdle` is called once it is closed; `soon` says when views are told. */
  constructor(
    initial: Value,
    source: (feed: Feed<Value>) => Promise<void>,
    onIdle: () => void = () => {},
    soon: (publish: () => void) => void = onFrame,
  ) {
    this.#initial = initial
    this.#source = source
    this.#onIdle = onIdle
    this.#soon = soon
    this.#state = { status: 'opening', value: initial }
    this.#shown = this.#state
  }

  /** Watches, until the function returned is called. */
  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    clearTimeout(this.#closing)
    if (this.#running === undefined) this.#open()
    return () => {
      this.#listeners.delete(listener)
      if (this.#listeners.size > 0) return
      clearTimeout(this.#closing)
      this.#closing = setTimeout(() => this.#close(), LINGER)
    }
  }

  readonly snapshot = (): Live<Value> => this.#shown

  /** Opens a stream again that has failed or ended; one that is open stays. */
  retry(): void {
    if (this.#state.status !== 'failed' && this.#state.status !== 'ended') return
    this.#running?.abort()
    this.#running = undefined
    if (this.#listeners.size > 0) this.#open()
  }

  #open(): void {
    const running = new AbortController()
    const { signal } = running
    this.#running = running
    this.#change({ status: 'opening', value: this.#state.value })
    const change = (state: Live<Value>): void => {
      if (!signal.aborted) this.#change(state)
    }
    const feed: Feed<Value> = {
      signal,
      get: () => this.#state.value,
      set: (value) => change({ ...this.#state, value }),
      opened: () => change({ status: 'live', value: this.#state.value }),
      lost: (error) => change({ status: 'lost', value: this.#state.value, error }),
    }
    void this.#run(feed).then(
      () => change({ status: 'ended', value: this.#state.value }),
      (error: unknown) => change({ status: 'failed', value: this.#state.value, error: failureOf(error) }),
    )
  }

  /** Streams wait for a node that is away by themselves; a call beside one is made again here. */
  async #run(feed: Feed<Value>): Promise<void> {
    for (;;) {
      try {
        await this.#source(feed)
        return
      } catch (error) {
        if (feed.signal.aborted || failureOf(error).code !== 'UNAVAILABLE') throw error
        feed.lost(failureOf(error))
      }
      await new Promise((resolve) => setTimeout(resolve, RETRY))
    }
  }

  #close(): void {
    this.#running?.abort()
    this.#running = undefined
    refused.delete(this)
    this.#state = { status: 'opening', value: this.#initial }
    this.#shown = this.#state
    this.#onIdle()
  }

  #change(state: Live<Value>): void {
    this.#state = state
    if (state.status === 'failed' && state.error?.code === 'UNAUTHENTICATED') refused.add(this)
    else refused.delete(this)
    this.#soon(this.#publish)
  }

  readonly #publish = (): void => {
    if (this.#shown === this.#state) return
    this.#shown = this.#state
    for (const listener of this.#listeners) listener()
  }
}

/** Stores of one kind by key, each kept while it is watched. */
export class LiveStores<Value> {
  readonly #make: (key: string, onIdle: () => void) => LiveStore<Value>
  readonly #stores = new Map<string, LiveStore<Value>>()

  constructor(make: (key: string, onIdle: () => void) => LiveStore<Value>) {
    this.#make = make
  }

  get(key: string): LiveStore<Value> {
    const known = this.#stores.get(key)
    if (known !== undefined) return known
    const made = this.#make(key, () => this.#stores.delete(key))
    this.#stores.set(key, made)
    return made
  }
}

/** What a store holds, for a component: it is drawn again when the store says that it has changed. */
export function useLive<Value>(store: LiveStore<Value>): Live<Value> {
  return useSyncExternalStore(store.subscribe, store.snapshot)
}

/** Any failure as one of the API's. */
export function failureOf(error: unknown): PenstockError {
  if (error instanceof PenstockError) return error
  return new PenstockError('INTERNAL', error instanceof Error ? error.message : String(error), { cause: error })
}
