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
  if (nodes === 'nodes' && nodeId !== undefined && pipelines === 'editor' && parts.length === 3) {
    return { view: 'editor', nodeId }
  }
  if (nodes === 'nodes' && nodeId !== undefined && pipelines === 'pipelines' && rest.length === 0) {
    if (pipelineId === undefined) return { view: 'unknown', path }
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
  const node = `#/nodes/${encodeURIComponent(route.nodeId)}`
  if (route.pipelineId === undefined) return `${node}/editor`
  const pipeline = `${node}/pipelines/${encodeURIComponent(route.pipelineId)}`
  if (route.view === 'editor') return `${pipeline}/edit`
  return route.tab === undefined ? pipeline : `${pipeline}/${encodeURIComponent(route.tab)}`
}

export function go(route: Route): void {
  location.hash = hashOf(route)
}

/** The hash as views have been told of it; the address may be ahead. */
let told: string | undefined

let guard: ((here: string) => boolean) | undefined

/**
 * Has `mayLeave` asked before another address is shown, with the one that is: where it says no, views are told nothing. Ends with the
 * function returned. One guard at a time.
 */
export function guardRoute(mayLeave: (here: string) => boolean): () => void {
  guard = mayLeave
  return () => {
    if (guard === mayLeave) guard = undefined
  }
}

export function useRoute(): Route {
  return routeOf(useSyncExternalStore(subscribe, snapshot))
}

function snapshot(): string {
  told ??= location.hash
  return told
}

function subscribe(listener: () => void): () => void {
  const onChange = (): void => {
    if (told !== undefined && told !== location.hash && guard?.(told) === false) return
    told = location.hash
    listener()
  }
  onChange()
  addEventListener('hashchange', onChange)
  return () => removeEventListener('hashchange', onChange)
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
