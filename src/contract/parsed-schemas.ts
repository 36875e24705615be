/** Schemas that were read before: none here, and all of them in the bundled program, where packaging/bundles.js writes what stands in this file. */
import type { StoredSchema } from './stored-schema.ts'

/** By namespace. */
export const parsed: Readonly<Record<string, StoredSchema>> = {}
