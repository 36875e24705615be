/** Where a schema comes from: read when the program was bundled, or now from the proto files. */
import { parsed } from './parsed-schemas.ts'
import type { Schema } from './schema.ts'
import { readNamespace } from './schema-reader.ts'
import { restored } from './stored-schema.ts'

let loaded: Schema | undefined

/** What `proto/servicegrpc` declares, read once per process; throws when a file of it does not parse. */
export function loadSchema(): Schema {
  loaded ??= readSchema('servicegrpc')
  return loaded
}

/**
 * What `namespace` declares, a folder of the package's `proto` with its files, and the messages and enums that its fields are of. Throws when a
 * file does not parse.
 */
export function readSchema(namespace: string): Schema {
  const stored = parsed[namespace]
  return stored === undefined ? readNamespace(namespace) : restored(stored)
}
