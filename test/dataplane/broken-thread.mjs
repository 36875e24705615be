/** What a thread loads whose installation lacks a file: one component can be loaded, the other not. */
import { bomb } from '../../dist/src/dataplane/components/routing/bomb.js'
import { threadTask } from '../../dist/src/dataplane/engine/worker.js'

const missing = new URL('./no-such-file.mjs', import.meta.url).href

export default threadTask({
  bomb: async () => bomb,
  uniform_traffic_source: async () => (await import(missing)).uniformTrafficSource,
})
