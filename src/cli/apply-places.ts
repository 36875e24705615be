/** The nodes that `pipelines apply` is about: what each has, what is to go from it, and what became of it. */
import type { Client, Pipeline } from '@penstock/client'
import { type AllNodesOptions, type Asked, askAll, askThese, pipelinesOf } from './all-nodes.ts'
import type { Application } from './apply.ts'
import { UsageFailure } from './failure.ts'
import { findNode, type TargetOptions, targetOf } from './target.ts'
import { named } from './terminal.ts'

/** A node that is to have what the files ask for. */
export interface Place {
  readonly id: string
  readonly name: string
  /** Its pipelines; those of a node that did not answer are not known. */
  readonly before: readonly Pipeline[]
  /** Those of them that are to go. */
  readonly remove: readonly Pipeline[]
  /** Why it could not be asked, or was lost on the way. */
  error?: Asked<never>['error']
  /** What was done; absent as long as nothing was tried. */
  application?: Application
}

export interface PlaceOptions extends Omit<TargetOptions, 'node'>, AllNodesOptions {
  node?: string[]
}

/** Whether the options may mean several nodes: what is printed tells them apart then. */
export function isOfSeveral({ allNodes = false, node = [] }: PlaceOptions): boolean {
  return allNodes || node.length > 1
}

/** The nodes meant, each once. Where only one can be, it throws when that does not answer; of several, those are there with their error. */
export async function placesOf(
  client: Client,
  options: PlaceOptions,
  isToGo: (pipeline: Pipeline) => boolean,
): Promise<Place[]> {
  const { allNodes, node: given = [], timeout, ...others } = options
  const place = ({ answer = [], ...node }: Asked<readonly Pipeline[]>): Place => {
    return { ...node, before: answer, remove: answer.filter(isToGo) }
  }
  const ask = pipelinesOf(client)
  if (allNodes) return (await askAll(client, timeout, ask)).map(place)
  if (!isOfSeveral(options)) {
    const [only] = given
    const { node } = await targetOf(only === undefined ? others : { ...others, node: only })
    return [place({ id: node, name: '', answer: await ask(node) })]
  }
  const { nodeId, isAuthenticated } = await client.getLocalNodeId()
  if (!isAuthenticated) throw new UsageFailure(`node ${nodeId} is on no hub: there is only one node to be meant`)
  const nodes = new Map<string, Awaited<ReturnType<typeof findNode>>>()
  for (const each of given) {
    const node = await findNode(client, each)
    nodes.set(node.id, node)
  }
  return (await askThese([...nodes.values()], timeout, ask)).map(place)
}

/** How a node is called where several are told of. */
export const placeName = ({ id, name }: Place): string => `${named(name)} ${id}`.trim()

/** What is lacking at a node, `dryRun`: would be; undefined when nothing is. */
export function lackOf({ application, remove, error }: Place, wanted: number, dryRun: boolean): string | undefined {
  if (error !== undefined) return named(error.message)
  if (application === undefined || !application.isRefused) return undefined
  const refused = application.applied.filter(({ error }) => error !== undefined).length
  const kept = remove.length > 0 && !application.applied.some(({ result }) => result === 'deleted')
  return (
    `${refused} of ${wanted + (kept ? 0 : remove.length)} pipelines ${dryRun ? 'would be' : 'were'} refused or not started` +
    `${kept ? '; nothing was deleted, therefore' : ''}`
  )
}
