/** Holds src/contract/types.ts against the protos; `npm run types` writes it. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { declarations } from './declarations.ts'
import { packageRoot } from './package-root.ts'
import { loadSchema } from './schema.ts'

test('src/contract/types.ts is what the protos say', () => {
  const text = readFileSync(join(packageRoot(), 'src/contract/types.ts'), 'utf8')
  expect(normal(text), 'npm run types').toEqual(normal(declarations(loadSchema())))
})

/** Words only: line breaks, separators and the bar before a union are the formatter's to choose. */
function normal(text: string): string[] {
  return text.replace(/= \| /g, '= ').split(/[\s;]+/)
}
