/** How the node that serves the page stands with its hub. */
import { type ConnectionState, streamConnectionState } from '@penstock/client'
import { LiveStore } from './live.ts'
import { node } from './session.ts'

export const hubState = new LiveStore<ConnectionState | undefined>(undefined, async ({ signal, set, opened, lost }) => {
  for await (const { state } of streamConnectionState(node, {}, { signal, onOpen: opened, onBreak: lost })) set(state)
})
