/** What the node tells of a change, put into what is known. */
import type { Node, Pipeline, StreamNodesUpdateResponse, StreamPipelinesEvent } from '@penstock/client'

/** By id. */
export type Pipelines = ReadonlyMap<string, Pipeline>

export function nodesAfter(
  byId: ReadonlyMap<string, Node>,
  { deauthenticatedNode, authenticatedNode, connectedNode, disconnectedNode, updatedNode }: StreamNodesUpdateResponse,
): ReadonlyMap<string, Node> {
  const next = new Map(byId)
  if (deauthenticatedNode !== undefined) next.delete(deauthenticatedNode.id)
  const changed = authenticatedNode ?? connectedNode ?? disconnectedNode ?? updatedNode
  if (changed !== undefined) next.set(changed.id, changed)
  return next
}

/** How often another text of its configuration had been told of a pipeline when it was told as it is here. */
const texts = new WeakMap<Pipeline, number>()

/** Rises with each text of its configuration that is told of a pipeline, the same one again after another too, whether a view has seen them or not. */
export function textNumber(pipeline: Pipeline): number {
  return texts.get(pipeline) ?? 0
}

/** The list of all, `before` being what was known: what became of the texts since then is not known. */
export function pipelinesListed(before: Pipelines, listed: readonly Pipeline[]): Pipelines {
  for (const pipeline of listed) {
    const known = before.get(pipeline.id)
    if (known !== undefined) texts.set(pipeline, textNumber(known) + 1)
  }
  return new Map(listed.map((pipeline) => [pipeline.id, pipeline]))
}

export function pipelinesAfter(pipelines: Pipelines, event: StreamPipelinesEvent): Pipelines {
  const next = new Map(pipelines)
  const kept = event.create?.pipeline ?? event.update?.pipeline
  if (kept !== undefined) {
    const known = pipelines.get(kept.id)
    if (known !== undefined) texts.set(kept, textNumber(known) + (known.jsonConfig === kept.jsonConfig ? 0 : 1))
    next.set(kept.id, kept)
  }
  if (event.delete?.pipeline !== undefined) next.delete(event.delete.pipeline.id)
  return next
}
