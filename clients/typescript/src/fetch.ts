/** What is asked of a fetch: that of the platform has it, and one that is made by hand has little to do. */

/** What this client asks of a fetch. */
export type Fetch = (url: string, init: FetchInit) => Promise<Answer>

export interface FetchInit {
  readonly method: string
  readonly headers: Record<string, string>
  readonly body?: string
  readonly signal?: AbortSignal
}

/** The head of an answer, whose body is yet to be read, once; a Response of the platform is one. */
export interface Answer {
  readonly ok: boolean
  readonly status: number
  readonly statusText: string
  readonly body: ReadableStream<Uint8Array> | AsyncIterable<Uint8Array> | null
  text(): Promise<string>
}
