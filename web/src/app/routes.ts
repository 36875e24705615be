/** Where in the dashboard one is: the part of the address behind `#`, so that the node serves one page only. */
import { useSyncExternalStore } from 'react'

export type Route =
  | { readonly view: 'overview' }
  /** Without a tab: the first. Which there are knows the view. */
  | { readonly view: 'pipeline'; readonly nodeId: string; readonly pipelineId: string; readonly tab?: string }
  /** Without a pipeline: a new one. */
  | { readonly view: 'editor'; readonly nodeId: string; readonly pipelineId?: string }
  | { readonly view: 'unknown'; readonly path: string }

/** The route of `#/…`. */
export function routeOf(hash: string): Route {
  const path = hash.replace(/^#/, '')
  const parts = path.split('/').filter((part) => part !== '')
  const [nodes, nodeId, pipelines, pipelineId, tab, ...rest] = parts.map(decoded)
  if (nodes === undefined) return { view: 'overview' }
  if (nodes === 'nodes' && nodeId !== undefined && pipelines === 'pipelines' && rest.length === 0) {
    if (pipelineId === undefined) return { view: 'editor', nodeId }
    if (tab === 'edit') return { view: 'editor', nodeId, pipelineId }
    if (tab === undefined) return { view: 'pipeline', nodeId, pipelineId }
    if (/^[a-z]+$/.test(tab)) return { view: 'pipeline', nodeId, pipelineId, tab }
  }
  return { view: 'unknown', path }
}

/** The address of a route, for links and for `go`. */
export function hashOf(route: Route): string {
  if (route.view === 'overview') return '#/'
  if (route.view === 'unknown') return `#${route.path}`
  const node = `#/nodes/${encodeURIComponent(route.nodeId)}/pipelines`
  if (route.pipelineId === undefined) return node
  const pipeline = `${node}/${encodeURIComponent(route.pipelineId)}`
  if (route.view === 'editor') return `${pipeline}/edit`
  return route.tab === undefined ? pipeline : `${pipeline}/${encodeURIComponent(route.tab)}`
}

export function go(route: Route): void {
  location.hash = hashOf(route)
}

export function useRoute(): Route {
  return routeOf(useSyncExternalStore(subscribe, () => location.hash))
}

function subscribe(listener: () => void): () => void {
  addEventListener('hashchange', listener)
  return () => removeEventListener('hashchange', listener)
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
