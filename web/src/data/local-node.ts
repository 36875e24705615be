/** Which node serves the page. */
import { getLocalNodeId } from '@penstock/client'
import { LiveStore } from './live.ts'
import { node } from './session.ts'

/** Its id; undefined until it is known. */
export const localNodeId = new LiveStore<string | undefined>(undefined, async ({ signal, set, opened }) => {
  const { nodeId } = await getLocalNodeId(node, {}, { signal })
  opened()
  set(nodeId)
  await new Promise((resolve) => signal.addEventListener('abort', resolve))
})
