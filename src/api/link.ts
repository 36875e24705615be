/** Serves calls that other nodes make over a link, with the dispatcher that serves every other transport. */
import { decodeAnswer, decodeBinary } from '../contract/binary-decode.ts'
import { encodeBinary, encodeInParts } from '../contract/binary-encode.ts'
import type { Clock } from '../contract/clock.ts'
import { ServiceError } from '../contract/errors.ts'
import type { RequestReceiver } from '../contract/handlers.ts'
import { loadOperations, type Operation } from '../contract/operations.ts'
import { SerialQueue } from '../contract/serial-queue.ts'
import { SharedMessage } from '../contract/shared-message.ts'
import { type ForwardedOperation, HUB_SERVER_SERVICE } from '../hub/forwarding.ts'
import { MESSAGE, mark, READY, refused, statusOfError, TAKEN, wrap } from '../hub/link-envelope.ts'
import type { LinkStream } from '../link/link.ts'
import { PIECE_BYTES } from '../link/messages.ts'
import { Call } from './call.ts'
import type { Dispatcher } from './dispatcher.ts'
import { StreamSink } from './sink.ts'
import { catchingUp } from './standstill.ts'

/** An answer longer than this travels in parts, bytes: as many are encoded ahead of the caller. */
const PART_BYTES = 1024 * 1024

export interface LinkListenerOptions {
  /** Read at the first call: the dispatcher and what forwards for it know each other. */
  readonly dispatcher: () => Dispatcher
  readonly nodeId: string
  readonly clock: Clock
}

export class LinkListener {
  readonly #options: LinkListenerOptions
  readonly #operations: ReadonlyMap<string, Operation> = new Map(loadOperations().map((entry) => [entry.name, entry]))

  constructor(options: LinkListenerOptions) {
    this.#options = options
    catchingUp()
  }

  /** Serves one stream; `remoteAddress` is the peer's. The caller's identity is the stream's origin, which the link has proven. */
  serve(stream: LinkStream, request: Uint8Array | undefined, remoteAddress: string): void {
    const operation = this.#operations.get(stream.operation)
    const dispatcher = this.#options.dispatcher()
    try {
      if (operation === undefined || (operation.kind === 'bidi') !== (request === undefined)) {
        throw new ServiceError('UNIMPLEMENTED', `${stream.operation.slice(0, 100)} is not available on this node`)
      }
      const call = new Call({ remoteAddress, isLoopback: false, identity: stream.origin }, 'link')
      const decoded = request === undefined ? undefined : decodeBinary(operation.request, request)
      this.#check(operation, decoded)
      const release = holdRequest(stream, request)
      const callOff = this.#deadline(stream, call)
      const over = () => {
        callOff()
        release()
      }
      // What has come with it is read first: to a node that stood still for a while its cancellation may have.
      soon(() => {
        if (stream.closed) over()
        else if (operation.kind === 'unary') void unary(dispatcher, operation, stream, decoded, call).finally(over)
        else if (operation.kind === 'server') {
          void serverStream(dispatcher, operation, stream, decoded, call).finally(over)
        } else void bidi(dispatcher, operation, stream, call).finally(over)
      })
    } catch (error) {
      if (operation === undefined) stream.end(statusOfError(error as ServiceError))
      else stream.end(statusOfError(dispatcher.failure(error, operation)))
    }
  }

  /** Ends a call that is not answered, or a stream that does not stand, in the time that its caller has; returns what calls that off. */
  #deadline(stream: LinkStream, call: Call): () => void {
    const { timeLeft } = stream
    if (timeLeft === undefined) return () => {}
    const { clock } = this.#options
    const timer = clock.setTimeout(() => {
      const error = new ServiceError('DEADLINE_EXCEEDED', `${stream.operation} took longer than its caller waits`)
      call.abort(error)
      if (!stream.closed) stream.end(statusOfError(error))
    }, timeLeft)
    return () => clock.clearTimeout(timer)
  }

  /** Other nodes reach what names this node, and the hub server's operations; whatever else a node can do is its own caller's. */
  #check({ service, name }: Operation, request: unknown): void {
    if (service === HUB_SERVER_SERVICE) return
    const nodeId = (request as { nodeId?: unknown } | undefined)?.nodeId
    if (nodeId === undefined) throw new ServiceError('PERMISSION_DENIED', `${name} cannot be called from another node`)
    if (nodeId !== this.#options.nodeId) {
      throw new ServiceError('NOT_FOUND', `the call for node ${String(nodeId).slice(0, 100)} came to another node`)
    }
  }
}

/** Calls `begin` once what has come until now is read. */
function soon(begin: () => void): void {
  const milliseconds = catchingUp()
  if (milliseconds > 0) setTimeout(begin, milliseconds)
  else setImmediate(begin)
}

/** Accounts for a request while it is carried out, which may take as long as its operation waits; returns what ends that. */
function holdRequest(stream: LinkStream, request: Uint8Array | undefined): () => void {
  if (request === undefined) return () => {}
  const bytes = request.length + PIECE_BYTES
  if (!stream.hold(bytes)) {
    throw new ServiceError('RESOURCE_EXHAUSTED', 'too many requests of this node are being carried out')
  }
  return () => {
    stream.hold(-bytes)
  }
}

async function unary(
  dispatcher: Dispatcher,
  operation: Operation,
  stream: LinkStream,
  request: unknown,
  call: Call,
): Promise<void> {
  stream.handlers = { cancel: () => call.abort() }
  try {
    const response = await dispatcher.unary(operation, request, call)
    if (stream.closed) return
    // A long answer is encoded no faster than the caller takes it.
    const parts = encodeInParts(operation.response, response, PART_BYTES)
    const send = () => {
      while (!stream.closed) {
        const { value, done } = parts.next()
        if (done === true) stream.end({ code: 'OK', message: '' })
        else if (!stream.send(value)) return
      }
    }
    stream.handlers = { cancel: () => call.abort(), drain: send }
    send()
  } catch (error) {
    const failure = dispatcher.failure(error, operation)
    if (!stream.closed) stream.end(statusOfError(failure))
  }
}

async function serverStream(
  dispatcher: Dispatcher,
  operation: Operation,
  stream: LinkStream,
  request: unknown,
  call: Call,
): Promise<void> {
  const sink = new LinkSink(stream, operation, dispatcher, call)
  stream.handlers = { cancel: () => sink.lose(), drain: () => sink.drained() }
  await dispatcher.open(operation, sink, () => dispatcher.stream(operation, request, call, sink))
}

async function bidi(dispatcher: Dispatcher, operation: Operation, stream: LinkStream, call: Call): Promise<void> {
  const sink = new LinkSink(stream, operation, dispatcher, call)
  try {
    // Until there is a receiver the link keeps what comes, within the caller's credit.
    const receiver = await dispatcher.bidi(operation, call, sink)
    sink.ready()
    const taking = new Taking(dispatcher, operation, stream, receiver)
    stream.handlers = {
      message: (bytes) => taking.take(bytes),
      halfClose: () => receiver.end?.(),
      cancel: () => sink.lose(),
      drain: () => sink.drained(),
    }
  } catch (error) {
    stream.handlers = {}
    if (sink.closed) dispatcher.failure(error, operation)
    else sink.end(error)
  }
}

/** Hands messages to a receiver one after the other, and says of each, in order, what became of it. */
class Taking {
  readonly #dispatcher: Dispatcher
  readonly #operation: Operation
  readonly #stream: LinkStream
  readonly #receiver: RequestReceiver<unknown>
  readonly #queue = new SerialQueue()
  #waiting = 0

  constructor(dispatcher: Dispatcher, operation: Operation, stream: LinkStream, receiver: RequestReceiver<unknown>) {
    this.#dispatcher = dispatcher
    this.#operation = operation
    this.#stream = stream
    this.#receiver = receiver
  }

  /** Whether there is room for more. */
  take(bytes: Uint8Array): boolean {
    this.#waiting++
    void this.#queue.run(() => this.#one(bytes))
    return this.#waiting < 16
  }

  async #one(bytes: Uint8Array): Promise<void> {
    let answer = mark(TAKEN)
    try {
      if (this.#stream.closed) return
      await this.#receiver.message(decodeBinary(this.#operation.request, bytes))
    } catch (error) {
      answer = refused(this.#dispatcher.failure(error, this.#operation))
    } finally {
      this.#waiting--
    }
    if (this.#stream.closed) return
    this.#stream.send(answer)
    this.#stream.resume()
  }
}

/** One stream that another node reads. */
class LinkSink extends StreamSink {
  readonly #stream: LinkStream
  readonly #operation: Operation
  readonly #dispatcher: Dispatcher

  constructor(stream: LinkStream, operation: Operation, dispatcher: Dispatcher, call: Call) {
    super(call)
    this.#stream = stream
    this.#operation = operation
    this.#dispatcher = dispatcher
  }

  protected override open(): void {
    // Its caller's time was up before it stood: nothing would tell of its end any more.
    if (this.#stream.closed) this.lose()
    else this.writable = this.#stream.send(mark(READY))
  }

  protected override write(message: unknown): number {
    const encode = (value: unknown): Uint8Array => wrap(MESSAGE, encodeBinary(this.#operation.response, value))
    // All streams send the same bytes: the link holds them once.
    const bytes = message instanceof SharedMessage ? message.encoded('link', encode) : encode(message)
    if (!this.#stream.send(bytes)) this.writable = false
    return bytes.length
  }

  protected override finish(error: unknown): void {
    if (error === undefined) this.#stream.end({ code: 'OK', message: '' })
    else this.#stream.end(statusOfError(this.#dispatcher.failure(error, this.#operation)))
  }
}

const forwarded = new WeakMap<Operation, ForwardedOperation>()

/** The operation as forwarding sees it. */
export function forwardedOperation(operation: Operation): ForwardedOperation {
  let known = forwarded.get(operation)
  if (known === undefined) {
    const { name, service, kind, request, response } = operation
    known = {
      name,
      service,
      kind,
      encodeRequest: (message) => encodeBinary(request, message),
      decodeResponse: (bytes) => decodeAnswer(response, bytes),
    }
    forwarded.set(operation, known)
  }
  return known
}
