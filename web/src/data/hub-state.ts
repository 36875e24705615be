/** How the node that serves the page stands with its hub. */
import { type ConnectionState, streamConnectionState } from '@penstock/client'
import { LiveStore } from './live.ts'
import { askLocalNodeId } from './local-node.ts'
import { node } from './session.ts'

export const hubState = new LiveStore<ConnectionState | undefined>(undefined, async ({ signal, set, opened, lost }) => {
  const onOpen = (): void => {
    opened()
    askLocalNodeId()
  }
  for await (const { state } of streamConnectionState(node, {}, { signal, onOpen, onBreak: lost })) set(state)
})
