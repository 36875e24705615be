/** Which node serves the page. */
import { getLocalNodeId } from '@penstock/client'
import { LiveStore } from './live.ts'
import { node } from './session.ts'

let ask: (() => Promise<void>) | undefined

/** Its id; undefined until it is known. */
export const localNodeId = new LiveStore<string | undefined>(undefined, async ({ signal, set, opened }) => {
  const own = async (): Promise<void> => set((await getLocalNodeId(node, {}, { signal })).nodeId)
  await own()
  opened()
  ask = own
  await new Promise((resolve) => signal.addEventListener('abort', resolve))
})

/** Asks once more: another node may answer by now. Where that fails, so does what the page asks besides, which says so. */
export function askLocalNodeId(): void {
  void ask?.().catch(() => {})
}
