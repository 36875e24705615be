/** What each thread of the product's run pool loads: runs of all its components. */
import { components } from './components/registry.ts'
import { threadTask } from './engine/worker.ts'

export default threadTask(components)
