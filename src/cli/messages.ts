/** Requests and answers as their JSON has them. */
import type * as T from '../contract/types.ts'

/** A message as JSON carries it: dates, 64-bit integers and bytes are strings. */
export type JsonForm<M> = M extends Date | bigint | Uint8Array
  ? string
  : M extends string | number | boolean | undefined | null
    ? M
    : M extends readonly (infer U)[]
      ? JsonForm<U>[]
      : { [K in keyof M]: JsonForm<M[K]> }

export type Pipeline = JsonForm<T.Pipeline>
export type Run = JsonForm<T.Run>
export type TelemetrySample = JsonForm<T.TelemetrySample>
export type LogMessage = JsonForm<T.LogMessage>
export type Node = JsonForm<T.Node>
export type LocalNode = JsonForm<T.GetLocalNodeIdResponse>
export type ConnectionState = T.ConnectionState
export type AuthenticationRequest = Omit<JsonForm<T.AuthenticationByRequestRequest>, 'requestId'> & {
  requestId: string
}
export type NodeFilters = Partial<JsonForm<T.GetNodesRequest>>
/** What create and update send, without the node id. */
export type CreateSettings = Pick<JsonForm<T.CreatePipelineRequest>, 'name' | 'jsonConfig'> &
  Partial<Omit<JsonForm<T.CreatePipelineRequest>, 'nodeId'>>
export type UpdateSettings = Omit<JsonForm<T.UpdatePipelineRequest>, 'nodeId' | 'id'>
