/** Requests and answers as their JSON has them. */
import type * as T from '../contract/types.ts'

/** A message as JSON carries it: dates, 64-bit integers and bytes are strings. */
export type Wire<M> = M extends Date | bigint | Uint8Array
  ? string
  : M extends string | number | boolean | undefined | null
    ? M
    : M extends readonly (infer U)[]
      ? Wire<U>[]
      : { [K in keyof M]: Wire<M[K]> }

export type Pipeline = Wire<T.Pipeline>
export type Run = Wire<T.Run>
export type TelemetrySample = Wire<T.TelemetrySample>
export type LogMessage = Wire<T.LogMessage>
export type Node = Wire<T.Node>
export type LocalNode = Wire<T.GetLocalNodeIdResponse>
export type ConnectionState = T.ConnectionState
export type AuthenticationRequest = Omit<Wire<T.AuthenticationByRequestRequest>, 'requestId'> & { requestId: string }
export type NodeFilters = Partial<Wire<T.GetNodesRequest>>
/** What create and update send, without the node id. */
export type CreateSettings = Pick<Wire<T.CreatePipelineRequest>, 'name' | 'jsonConfig'> &
  Partial<Omit<Wire<T.CreatePipelineRequest>, 'nodeId'>>
export type UpdateSettings = Omit<Wire<T.UpdatePipelineRequest>, 'nodeId' | 'id'>
