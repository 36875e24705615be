/** `npm run types`: writes src/contract/types.ts, the component keys of the data plane and what the TypeScript client declares from the protos. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { packageRoot } from '../package-root.ts'
import { clientOperations, clientTypes } from './client-declarations.ts'
import { componentKeys, declarations } from './declarations.ts'
import { loadSchema } from './load-schema.ts'
import { loadOperations } from './operations.ts'

const schema = loadSchema()
const texts = {
  'src/contract/types.ts': declarations(schema),
  'src/dataplane/engine/component-keys.ts': componentKeys(schema),
  'clients/typescript/src/types.ts': clientTypes(schema),
  'clients/typescript/src/operations.ts': clientOperations(schema, loadOperations()),
}
for (const [file, text] of Object.entries(texts)) writeFileSync(join(packageRoot(), file), text)
