/** Which node this is, and whether an operation is meant for it. */
import { ServiceError } from './errors.ts'

export interface LocalNode {
  readonly id: string
}

/** Throws FAILED_PRECONDITION when `nodeId` is another node; calls for those are passed on before they come to a handler (routing.ts). */
export function requireLocal(node: LocalNode, nodeId: string): void {
  if (nodeId === node.id) return
  throw new ServiceError(
    'FAILED_PRECONDITION',
    `node ${nodeId} is not this node (${node.id}), and this node is on no hub: join one first, or call that node itself`,
  )
}
