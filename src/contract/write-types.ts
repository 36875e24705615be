/** `npm run types`: writes src/contract/types.ts from the protos. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { declarations } from './declarations.ts'
import { packageRoot } from './package-root.ts'
import { loadSchema } from './schema.ts'

writeFileSync(join(packageRoot(), 'src/contract/types.ts'), declarations(loadSchema()))
