/**
 * What an operation is to a service: a function from a request (and a sink, for streams) to a response, free of any transport.
 *
 * Requests and responses are plain objects, typed in types.ts (generated from the protos):
 * - keys are lowerCamelCase;
 * - a field without presence is always there (in a request, with its proto3 default when the caller left it out); an optional
 *   field, a message or a one-of member that is unset is absent;
 * - of a one-of, at most one member key is present;
 * - 64-bit integers are bigint in requests; responses may hold bigint or safe-integer numbers;
 * - enums are their value's name, bytes Uint8Array, timestamps Date, maps plain objects.
 */
import type { SharedMessage, SharedMessages } from './shared-message.ts'
import type { BidiOperations, StreamOperations, UnaryOperations } from './types.ts'

/** Who calls, and how long they wait for the answer. */
export interface CallContext {
  /** The caller's IP address as text; empty for a call from inside the process. */
  readonly remoteAddress: string
  /** Whether the caller is on this machine. */
  readonly isLoopback: boolean
  readonly transport: 'rest' | 'sse' | 'websocket' | 'grpc' | 'link' | 'internal'
  /** Name of the token or node the caller proved, when they proved one. */
  readonly identity?: string
  /**
   * Aborts when the caller goes away, cancels or passes its deadline, and when a stream has ended. Made at the first use, so
   * a handler of idle streams saves memory by using `sink.onClose` instead.
   */
  readonly signal: AbortSignal
  /**
   * Calls `listener` with the reason when `signal` aborts, at once if it has; returns what takes the listener away. Costs little where a
   * signal and its listeners are as dear as the operation.
   */
  onAbort(listener: (reason: unknown) => void): () => void
}

/** The caller's end of a stream, as the handler sees it. Every method is safe to call, and does nothing, once it is closed. */
export interface Sink<M> {
  /**
   * Tells the caller that the stream is established; the first `send`, and the handler's promise being fulfilled, imply it.
   * Before it a failure is an ordinary error answer, after it the error ends the stream.
   */
  ready(): void
  /**
   * Sends one message; messages arrive in order. Returns whether there is room for more: after false the transport has taken
   * this message too, but the sender should hold further ones until `onDrain` (Outbox does that).
   */
  send(message: M | SharedMessage<M>): boolean
  /**
   * `send` for each of them in order, at the price of one where the transport can. False: nothing was sent, they are too long for that. They are sent
   * one by one then, as to a sink without it.
   */
  sendTogether?(messages: SharedMessages<M>): boolean
  /** Whether a `send` would still find room. */
  readonly writable: boolean
  /** Ends the stream; with an error, the caller receives it as the stream's failure. */
  end(error?: unknown): void
  /** Sets the one function called whenever room is found again after a `send` returned false. */
  onDrain(listener: () => void): void
  /** Adds a function called once when the stream is over, whoever ended it; at once if it already is. */
  onClose(listener: () => void): void
  readonly closed: boolean
}

/** One request, one response, which is there at once where nothing has to be waited for. Throws, or rejects with, ServiceError to fail. */
export type UnaryHandler<Request, Response> = (request: Request, call: CallContext) => Response | Promise<Response>

/**
 * One request, many messages. The promise is fulfilled once the subscription stands (the stream stays open until `sink.end`
 * or until the caller leaves) and rejected when it cannot be established or has failed.
 */
export type StreamHandler<Request, Message> = (
  request: Request,
  call: CallContext,
  sink: Sink<Message>,
) => Promise<void>

/** Where a bidirectional stream's incoming messages go. */
export interface RequestReceiver<Request> {
  /**
   * Takes one message from the caller. What it throws or rejects with is reported for that message: an error frame on a WebSocket,
   * which stays open; the end of the call with that status on gRPC, which has no other way to say it.
   */
  message(request: Request): void | Promise<void>
  /** The caller sends no more (half-closed); the stream stays open for the other direction. */
  end?(): void
}

/**
 * Messages both ways. The promise is fulfilled with the receiver once the subscription stands; what the caller sends before
 * is kept for it, in order.
 */
export type BidiHandler<Request, Message> = (
  call: CallContext,
  sink: Sink<Message>,
) => Promise<RequestReceiver<Request>>

/** A handler for every operation, by operation name. */
export type Handlers = {
  [Name in keyof UnaryOperations]: UnaryHandler<UnaryOperations[Name]['request'], UnaryOperations[Name]['response']>
} & {
  [Name in keyof StreamOperations]: StreamHandler<StreamOperations[Name]['request'], StreamOperations[Name]['response']>
} & {
  [Name in keyof BidiOperations]: BidiHandler<BidiOperations[Name]['request'], BidiOperations[Name]['response']>
}

/** The names of all operations. */
export type OperationName = keyof Handlers
