/** What the threads of a test's run pool load: the product's components and those of the tests. */
import { components } from '../../dist/src/dataplane/components/registry.js'
import { threadTask } from '../../dist/src/dataplane/engine/worker.js'
import extra from './extra.mjs'

const definitions = [...components.values(), ...extra]
export default threadTask(Object.fromEntries(definitions.map((definition) => [definition.key, async () => definition])))
