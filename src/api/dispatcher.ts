/** Brings a call from any transport to its handler: here, or on another node. */
import { invalidArgument, ServiceError } from '../contract/errors.ts'
import type {
  BidiHandler,
  CallContext,
  Handlers,
  OperationName,
  RequestReceiver,
  Sink,
  StreamHandler,
  UnaryHandler,
} from '../contract/handlers.ts'
import { loadOperations, type Operation } from '../contract/operations.ts'
import { failure, type Report } from './errors.ts'

/** A handler whose types are known by the operation's kind only. */
export type AnyHandler = UnaryHandler<never, unknown> | StreamHandler<never, unknown> | BidiHandler<never, unknown>

/**
 * Decides where a call runs: returns the handler (of the operation's kind) that carries it to another node, or undefined to run it
 * here. `request` is undefined for a bidirectional operation. Throws ServiceError when the node meant cannot be had.
 */
export type Forward = (operation: Operation, request: unknown, call: CallContext) => AnyHandler | undefined

export interface DispatcherOptions {
  /** Operations without a handler answer UNIMPLEMENTED. */
  readonly handlers: Partial<Handlers>
  readonly forward?: Forward
  /** A further rule on every call, before its handler; throws ServiceError to refuse. */
  readonly authorize?: (operation: Operation, call: CallContext) => void
  /** Takes what was thrown that is no ServiceError. */
  readonly report: Report
}

/** Requests and responses here are service objects (services/operations.ts). */
export class Dispatcher {
  readonly operations: readonly Operation[] = loadOperations()
  readonly #options: DispatcherOptions
  readonly #handlers: ReadonlyMap<string, AnyHandler>

  constructor(options: DispatcherOptions) {
    this.#options = options
    this.#handlers = new Map(
      Object.entries(options.handlers).filter((entry): entry is [OperationName, never] => entry[1] !== undefined),
    )
    const known = new Set<string>(this.operations.map((operation) => operation.name))
    for (const name of this.#handlers.keys()) {
      if (!known.has(name)) throw new Error(`a handler is bound to ${name}, which the protos do not define`)
    }
  }

  /** What to tell the caller about `error`; reports what is not meant for callers. */
  failure(error: unknown, operation: { readonly name: string }): ServiceError {
    return failure(error, operation.name, this.#options.report)
  }

  /** Reports what was thrown outside of any operation; `what` says where. */
  report(error: unknown, what: string): void {
    this.#options.report(error, what)
  }

  /** The response, or a promise of it where it takes time; throws or rejects. */
  unary(operation: Operation, request: unknown, call: CallContext): unknown {
    const handler = this.#handler(operation, request, call) as UnaryHandler<unknown, unknown>
    return handler(request, call)
  }

  /** Has `begin` open a stream of `operation` towards `sink`, which what it fails with ends; after that end it is only reported. Never rejects. */
  async open(operation: Operation, sink: Sink<unknown>, begin: () => Promise<unknown>): Promise<void> {
    try {
      await begin()
      sink.ready()
    } catch (error) {
      if (sink.closed) this.failure(error, operation)
      else sink.end(error)
    }
  }

  async stream(operation: Operation, request: unknown, call: CallContext, sink: Sink<unknown>): Promise<void> {
    const handler = this.#handler(operation, request, call) as StreamHandler<unknown, unknown>
    await handler(request, call, sink)
  }

  async bidi(operation: Operation, call: CallContext, sink: Sink<unknown>): Promise<RequestReceiver<unknown>> {
    const handler = this.#handler(operation, undefined, call) as BidiHandler<unknown, unknown>
    return await handler(call, sink)
  }

  #handler(operation: Operation, request: unknown, call: CallContext): AnyHandler {
    this.#options.authorize?.(operation, call)
    if (request !== undefined) {
      for (const key of operation.identifiers) {
        if ((request as Record<string, unknown>)[key] === '') throw invalidArgument(`/${key}`, 'must not be empty')
      }
    }
    const handler = this.#options.forward?.(operation, request, call) ?? this.#handlers.get(operation.name)
    if (handler === undefined) {
      throw new ServiceError('UNIMPLEMENTED', `${operation.name} is not available on this node`)
    }
    return handler
  }
}
