/** What each thread of the product's run pool loads, bundled (packaging/thread.js): the engine, and of the components those that its runs name. */
import { componentLoaders } from './components/loaders.ts'
import { threadTask } from './engine/worker.ts'

export default threadTask(componentLoaders)
