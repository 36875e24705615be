/** All operations as methods of one object, for who does not mind that all of them come along. */
import { type Connection, type ConnectionOptions, connect } from './connection.ts'
import * as operations from './operations.ts'

type Operations = typeof operations

/** Every operation by its name, as the function of that name without its first parameter. */
export type Client = {
  readonly [Name in keyof Operations]: Operations[Name] extends (
    connection: Connection,
    ...rest: infer Rest
  ) => infer Result
    ? (...rest: Rest) => Result
    : never
} & {
  /** The node that is called. */
  readonly connection: Connection
}

/** A client of the node at `url`; throws TypeError when that is no address. Nothing is sent. */
export function createClient(options: ConnectionOptions): Client {
  const connection = connect(options)
  const bound = Object.entries(operations).map(([name, operation]) => [
    name,
    (operation as (...all: unknown[]) => unknown).bind(undefined, connection),
  ])
  return { ...Object.fromEntries(bound), connection } as Client
}
