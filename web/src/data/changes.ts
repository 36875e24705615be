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

export function pipelinesAfter(pipelines: Pipelines, event: StreamPipelinesEvent): Pipelines {
  const next = new Map(pipelines)
  const kept = event.create?.pipeline ?? event.update?.pipeline
  if (kept !== undefined) next.set(kept.id, kept)
  if (event.delete?.pipeline !== undefined) next.delete(event.delete.pipeline.id)
  return next
}
