/** The nodes on the hub; of a node that is on none, itself alone. */
import { getLocalNodeId, getNode, type Node, PenstockError, streamConnectionState, streamNodes } from '@penstock/client'
import { nodesAfter } from './changes.ts'
import { type Feed, LiveStore } from './live.ts'
import { node } from './session.ts'

export interface Nodes {
  /** By id. */
  readonly byId: ReadonlyMap<string, Node>
  /** Whether they are those of a hub. */
  readonly isHub: boolean
}

/** Milliseconds after which a node on no hub is asked again: of its name, which may be given another, no stream tells there. */
const READ_AGAIN = 10_000

const NONE: Nodes = { byId: new Map(), isHub: false }

export const nodes = new LiveStore<Nodes>(NONE, async (feed) => {
  for (;;) {
    try {
      await followHub(feed)
    } catch (error) {
      if (!(error instanceof PenstockError) || error.code !== 'FAILED_PRECONDITION') throw error
    }
    if (feed.signal.aborted) return
    await alone(feed)
  }
})

async function followHub({ signal, set, get, opened, lost }: Feed<Nodes>): Promise<void> {
  for await (const message of streamNodes(node, {}, { signal, onOpen: opened, onBreak: lost })) {
    const { initialResponse, updateResponse } = message
    if (initialResponse !== undefined) {
      set({ byId: new Map(initialResponse.nodes.map((each) => [each.id, each])), isHub: true })
    } else if (updateResponse !== undefined) set({ byId: nodesAfter(get().byId, updateResponse), isHub: true })
  }
}

/** Shows the node by itself until it is on a hub; whenever the stream is opened it is asked at once, as it may be another one by then. */
async function alone({ signal, set, opened, lost }: Feed<Nodes>): Promise<void> {
  const failed = new AbortController()
  const ended = AbortSignal.any([signal, failed.signal])
  const read = async (): Promise<void> => {
    const { nodeId } = await getLocalNodeId(node, {}, { signal })
    const { node: own } = await getNode(node, { nodeId }, { signal })
    // It may have turned out meanwhile that the node is on a hub.
    if (ended.aborted) return
    set({ byId: new Map(own === undefined ? [] : [[nodeId, { ...own, online: true }]]), isHub: false })
  }
  const show = async (): Promise<void> => {
    await read()
    if (!ended.aborted) opened()
  }
  const onOpen = (): void => void show().catch((error: unknown) => failed.abort(error))
  // Where it is not reached, the stream says so.
  const timer = setInterval(() => void read().catch(() => {}), READ_AGAIN)
  try {
    for await (const { state } of streamConnectionState(node, {}, { signal: ended, onOpen, onBreak: lost })) {
      if (state === 'UNAUTHENTICATED') continue
      failed.abort()
      return
    }
  } finally {
    clearInterval(timer)
  }
}
