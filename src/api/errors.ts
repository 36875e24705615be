/** What a failed operation looks like on the wire: HTTP status and JSON body, gRPC status and details. */
import { Metadata, type StatusObject } from '@grpc/grpc-js'
import protobuf from 'protobufjs'
import { asServiceError, type Code, codeNumbers, ServiceError } from '../contract/errors.ts'

/** HTTP status lines by code, as google.rpc.Code maps. */
export const STATUS_LINES: Readonly<Record<Code, string>> = {
  CANCELLED: '499 Client Closed Request',
  UNKNOWN: '500 Internal Server Error',
  INVALID_ARGUMENT: '400 Bad Request',
  DEADLINE_EXCEEDED: '504 Gateway Timeout',
  NOT_FOUND: '404 Not Found',
  ALREADY_EXISTS: '409 Conflict',
  PERMISSION_DENIED: '403 Forbidden',
  RESOURCE_EXHAUSTED: '429 Too Many Requests',
  FAILED_PRECONDITION: '400 Bad Request',
  ABORTED: '409 Conflict',
  OUT_OF_RANGE: '400 Bad Request',
  UNIMPLEMENTED: '501 Not Implemented',
  INTERNAL: '500 Internal Server Error',
  UNAVAILABLE: '503 Service Unavailable',
  DATA_LOSS: '500 Internal Server Error',
  UNAUTHENTICATED: '401 Unauthorized',
}

const BAD_REQUEST = 'type.googleapis.com/google.rpc.BadRequest'

/** Receives what was thrown that is no ServiceError, with the operation's name: for the log. */
export type Report = (error: unknown, operation: string) => void

/**
 * The failure to tell the caller: a ServiceError as it is; anything else is reported and, unless it stands for one, becomes INTERNAL
 * with a message that gives nothing of it away.
 */
export function failure(error: unknown, operation: string, report: Report): ServiceError {
  if (error instanceof ServiceError) return error
  report(error, operation)
  return asServiceError(error) ?? new ServiceError('INTERNAL', 'internal error; the log of the node says more')
}

/** HTTP status line of a failure, as google.rpc.Code maps. */
export function statusLine(error: ServiceError): string {
  return STATUS_LINES[error.code]
}

/** The JSON object of a failure: `{"code", "message", "details"}`; problems become one google.rpc.BadRequest. */
export function errorBody(error: ServiceError): string {
  const details =
    error.problems.length === 0
      ? []
      : [
          {
            '@type': BAD_REQUEST,
            fieldViolations: error.problems.map(({ pointer, message }) => ({ field: pointer, description: message })),
          },
        ]
  return JSON.stringify({ code: codeNumbers[error.code], message: error.message, details })
}

/** What a status may take of the 8 KiB that every gRPC client takes as trailers: bytes of its percent-encoded message, of its details. */
const MAX_GRPC_MESSAGE_BYTES = 2_048
const MAX_GRPC_DETAILS_BYTES = 3_584

/**
 * The gRPC status of a failure; problems travel in `grpc-status-details-bin` as google.rpc.Status. Both are cut to what
 * clients take: longer trailers would reach them as another failure, or not at all.
 */
export function grpcFailure(error: ServiceError): StatusObject {
  const metadata = new Metadata()
  const details = cutToUri(error.message, MAX_GRPC_MESSAGE_BYTES)
  if (error.problems.length > 0) metadata.set('grpc-status-details-bin', statusDetails(error, details))
  return { code: codeNumbers[error.code], details, metadata }
}

/** `text` or the longest beginning of it that has at most `most` bytes percent-encoded; always encodable. */
function cutToUri(text: string, most: number): string {
  let kept = 0
  let bytes = 0
  const whole = text.slice(0, most + 1).replace(/\p{Surrogate}/gu, '\ufffd')
  for (const character of whole) {
    bytes += encodeURI(character).length
    if (bytes > most) return `${whole.slice(0, kept)}…`
    kept += character.length
  }
  return whole
}

/** google.rpc.Status{code 1, message 2, details 3} holding one Any{type_url 1, value 2} of BadRequest{field_violations 1}. */
function statusDetails(error: ServiceError, text: string): Buffer {
  const violations = protobuf.Writer.create()
  let bytes = 0
  for (const { pointer, message } of error.problems) {
    bytes += Buffer.byteLength(pointer) + Buffer.byteLength(message) + 12
    if (bytes > MAX_GRPC_DETAILS_BYTES) break
    violations.uint32(10).fork().uint32(10).string(pointer).uint32(18).string(message).ldelim()
  }
  const status = protobuf.Writer.create().uint32(8).int32(codeNumbers[error.code]).uint32(18).string(text)
  status.uint32(26).fork().uint32(10).string(BAD_REQUEST).uint32(18).bytes(violations.finish()).ldelim()
  return Buffer.from(status.finish())
}
