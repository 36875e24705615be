/** What the threads of the log bench load. */
import { threadTask } from '../../src/dataplane/engine/worker.ts'
import { talkative } from './talker.ts'

export default threadTask(Object.fromEntries([...talkative].map(([key, definition]) => [key, async () => definition])))
