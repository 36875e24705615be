/** What a thread loads that tells who listens which thread does what: its number, and the names of the components of each run. */
import { threadId } from 'node:worker_threads'
import run from './thread.mjs'

const told = new BroadcastChannel('told-thread')
told.unref()

export default (task) => {
  told.postMessage({ thread: threadId, components: Object.keys(task.config.components) })
  return run(task)
}
