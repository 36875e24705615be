/** Holds what `npm run types` writes against the protos. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { packageRoot } from '../package-root.ts'
import { clientOperations, clientTypes } from './client-declarations.ts'
import { componentKeys, declarations } from './declarations.ts'
import { loadSchema } from './load-schema.ts'
import { loadOperations } from './operations.ts'
import type { Schema } from './schema.ts'

test.each([
  ['src/contract/types.ts', declarations],
  ['src/dataplane/engine/component-keys.ts', componentKeys],
  ['clients/typescript/src/types.ts', clientTypes],
  ['clients/typescript/src/operations.ts', (schema: Schema) => clientOperations(schema, loadOperations())],
])('%s is what the protos say', (file, written) => {
  const text = readFileSync(join(packageRoot(), file), 'utf8')
  expect(normal(text), 'npm run types').toEqual(normal(written(loadSchema())))
})

/** Words only: line breaks, separators and the bar before a union are the formatter's to choose. */
function normal(text: string): string[] {
  return text
    .replace(/([=:<])\s+\| /g, '$1 ')
    .replace(/([([{])\s+|,?\s+(?=[)\]}])/g, '$1')
    .split(/[\s;]+/)
}
