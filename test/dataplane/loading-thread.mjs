/** What a thread loads that tells who listens which thread has loaded which component. */
import { threadId } from 'node:worker_threads'
import { components } from '../../dist/src/dataplane/components/registry.js'
import { threadTask } from '../../dist/src/dataplane/engine/worker.js'

const told = new BroadcastChannel('loading-thread')
told.unref()

const loader = (definition) => async () => {
  told.postMessage({ thread: threadId, loaded: definition.key })
  return definition
}
export default threadTask(Object.fromEntries([...components].map(([key, definition]) => [key, loader(definition)])))
