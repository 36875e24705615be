/** Packages that are loaded where they are needed and not before: a start of most commands never needs them. */
import { createRequire } from 'node:module'

/**
 * Loads a package at once; of one that is an ECMAScript module its namespace, as Node.js has it from 20.19 on. Throws what `require` throws.
 * The caller says what it is: `requirePackage('yaml') as typeof import('yaml')`.
 */
export const requirePackage: (name: string) => unknown = createRequire(import.meta.url)
