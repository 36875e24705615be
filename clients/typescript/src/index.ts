/** Client of the API of a penstock node. */
export type { CallOptions } from './call.ts'
export { type Client, createClient } from './client.ts'
export { type Connection, type ConnectionOptions, connect, type SocketLike } from './connection.ts'
export { type Code, type ErrorBody, type ErrorDetail, PenstockError, type Problem } from './error.ts'
export * from './operations.ts'
export type { Exchange, SocketOptions } from './socket.ts'
export type { StreamOptions } from './stream.ts'
export type * from './types.ts'
