/** The pipelines of each node. */
import { getPipelines, type StreamPipelinesEvent, streamPipelines } from '@penstock/client'
import { type Pipelines, pipelinesAfter, pipelinesListed } from './changes.ts'
import { LiveStore, LiveStores } from './live.ts'
import { node } from './session.ts'

const stores = new LiveStores<Pipelines>(
  (nodeId, onIdle) =>
    new LiveStore<Pipelines>(
      new Map(),
      async ({ signal, set, get, opened, lost }) => {
        /** What came since the list was asked for: it may be later than the list, and then comes after it. */
        let early: StreamPipelinesEvent[] | undefined
        const list = async (): Promise<void> => {
          const since: StreamPipelinesEvent[] = []
          early = since
          const { pipelines } = await getPipelines(node, { nodeId }, { signal })
          if (early !== since) return
          early = undefined
          set(since.reduce<Pipelines>(pipelinesAfter, pipelinesListed(get(), pipelines)))
          opened()
        }
        const failed = new AbortController()
        const ended = AbortSignal.any([signal, failed.signal])
        const onOpen = (): void => void list().catch((error: unknown) => failed.abort(error))
        for await (const event of streamPipelines(node, { nodeId }, { signal: ended, onOpen, onBreak: lost })) {
          early?.push(event)
          set(pipelinesAfter(get(), event))
        }
      },
      onIdle,
    ),
)

/** The pipelines of a node, by id. */
export function pipelinesOf(nodeId: string): LiveStore<Pipelines> {
  return stores.get(nodeId)
}
