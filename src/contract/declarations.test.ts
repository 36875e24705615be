/** Holds src/contract/types.ts against the protos. `UPDATE_TYPES=1 npx vitest run src/contract/declarations.test.ts` rewrites it. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { declarations } from './declarations.ts'
import { packageRoot } from './package-root.ts'
import { loadSchema } from './schema.ts'

test('src/contract/types.ts is what the protos say', () => {
  const file = join(packageRoot(), 'src/contract/types.ts')
  const text = declarations(loadSchema())
  if (process.env.UPDATE_TYPES === '1') writeFileSync(file, text)
  expect(normal(readFileSync(file, 'utf8'))).toEqual(normal(text))
})

/** Words only: line breaks, separators and the bar before a union are the formatter's to choose. */
function normal(text: string): string[] {
  return text.replace(/= \| /g, '= ').split(/[\s;]+/)
}
