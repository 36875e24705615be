/** `npm run types`: writes src/contract/types.ts and the component keys of the data plane from the protos. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { packageRoot } from '../package-root.ts'
import { componentKeys, declarations } from './declarations.ts'
import { loadSchema } from './schema.ts'

const schema = loadSchema()
writeFileSync(join(packageRoot(), 'src/contract/types.ts'), declarations(schema))
writeFileSync(join(packageRoot(), 'src/dataplane/engine/component-keys.ts'), componentKeys(schema))
