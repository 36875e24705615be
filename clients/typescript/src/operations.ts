/** One function an operation; generated from the protos by `npm run types`. */
import { type CallOptions, call } from './call.ts'
import type { Connection } from './connection.ts'
import { type Exchange, openSocket, type SocketOptions } from './socket.ts'
import { type MessageStream, type StreamOptions, stream } from './stream.ts'
import type {
  AuthenticateByRequestRequest,
  AuthenticateByRequestResponse,
  AuthenticationByRequestAnswer,
  AuthenticationByRequestRequest,
  CapturedPackets,
  CreatePipelineRequest,
  CreatePipelineResponse,
  CreateTokenRequest,
  CreateTokenResponse,
  DeletePipelineRequest,
  DeletePipelineResponse,
  DisconnectRequest,
  DisconnectResponse,
  ExplainUpdateResponse,
  GetLocalNodeIdRequest,
  GetLocalNodeIdResponse,
  GetNodeRequest,
  GetNodeResponse,
  GetNodesRequest,
  GetNodesResponse,
  GetPendingAuthenticationRequestsRequest,
  GetPendingAuthenticationRequestsResponse,
  GetPipelineByIdRequest,
  GetPipelineByIdResponse,
  GetPipelineByNameRequest,
  GetPipelineByNameResponse,
  GetPipelineByRunIdRequest,
  GetPipelineByRunIdResponse,
  GetPipelinesRequest,
  GetPipelinesResponse,
  GetTokensRequest,
  GetTokensResponse,
  LogStreamMessages,
  OpenCaptureStreamRequest,
  OpenLogStreamRequest,
  OpenTelemetryStreamRequest,
  RemoveNodeRequest,
  RemoveNodeResponse,
  RevokeTokenRequest,
  RevokeTokenResponse,
  SetNodeRequest,
  SetNodeResponse,
  StartPipelineRequest,
  StartPipelineResponse,
  StopPipelineRequest,
  StopPipelineResponse,
  StreamConnectionStateRequest,
  StreamConnectionStateResponse,
  StreamNodesResponse,
  StreamPipelinesEvent,
  StreamPipelinesRequest,
  TelemetrySample,
  UpdatePipelineRequest,
  UpdatePipelineResponse,
  ValidatePipelineResponse,
} from './types.ts'

/** Makes a token. Fails with ALREADY_EXISTS when the name is taken. */
export function createToken(
  connection: Connection,
  request: CreateTokenRequest,
  options?: CallOptions,
): Promise<CreateTokenResponse> {
  return call(connection, ['POST /v1/access/tokens *'], ['secret'], request, options)
}

/** Lists the tokens, without their secrets, by name. */
export function getTokens(
  connection: Connection,
  request: GetTokensRequest = {},
  options?: CallOptions,
): Promise<GetTokensResponse> {
  return call(connection, ['GET /v1/access/tokens'], ['tokens[]'], request, options)
}

/** Revokes a token: calls with it are refused from now on, its open streams, and calls that wait for an answer, end. */
export function revokeToken(
  connection: Connection,
  request: RevokeTokenRequest,
  options?: CallOptions,
): Promise<RevokeTokenResponse> {
  return call(connection, ['DELETE /v1/access/tokens/{name}'], [], request, options)
}

/** Tells the id of the node hosting the API and whether it holds a sign-in to a hub server. */
export function getLocalNodeId(
  connection: Connection,
  request: GetLocalNodeIdRequest = {},
  options?: CallOptions,
): Promise<GetLocalNodeIdResponse> {
  return call(connection, ['GET /v1/hub-client/local-node-id'], ['nodeId'], request, options)
}

/** Reads a node's details from the node itself. */
export function getNode(
  connection: Connection,
  request: GetNodeRequest,
  options?: CallOptions,
): Promise<GetNodeResponse> {
  return call(connection, ['GET /v1/nodes/{nodeId}'], [], request, options)
}

/** Replaces a node's name and metadata. */
export function setNode(
  connection: Connection,
  request: SetNodeRequest,
  options?: CallOptions,
): Promise<SetNodeResponse> {
  return call(connection, ['PUT /v1/nodes/{nodeId} *'], [], request, options)
}

/** Asks a hub server to let this node join, and waits for the operator's answer. */
export function authenticateByRequest(
  connection: Connection,
  request: AuthenticateByRequestRequest,
  options?: CallOptions,
): Promise<AuthenticateByRequestResponse> {
  return call(connection, ['POST /v1/hub-client/authenticate-by-request *'], [], request, options)
}

/** Leaves the hub, even if the hub server cannot be told. */
export function disconnect(
  connection: Connection,
  request: DisconnectRequest = {},
  options?: CallOptions,
): Promise<DisconnectResponse> {
  return call(connection, ['POST /v1/hub-client/disconnect *'], [], request, options)
}

/** Sends the current connection state, then every change of it. */
export function streamConnectionState(
  connection: Connection,
  request: StreamConnectionStateRequest = {},
  options?: StreamOptions,
): MessageStream<StreamConnectionStateResponse> {
  return stream(connection, ['GET /v1/streams/hub-client/connection-state'], request, options)
}

/** Lists the nodes on the hub that match the filters. */
export function getNodes(
  connection: Connection,
  request: GetNodesRequest = {},
  options?: CallOptions,
): Promise<GetNodesResponse> {
  return call(connection, ['GET /v1/nodes', 'POST /v1/nodes/search *'], ['nodes[]'], request, options)
}

/** Disconnects a node from the hub server and removes it from the hub. */
export function removeNode(
  connection: Connection,
  request: RemoveNodeRequest,
  options?: CallOptions,
): Promise<RemoveNodeResponse> {
  return call(connection, ['DELETE /v1/nodes/{nodeId}'], [], request, options)
}

/** Sends the nodes that match the filters, then every later change to any node. */
export function streamNodes(
  connection: Connection,
  request: GetNodesRequest = {},
  options?: StreamOptions,
): MessageStream<StreamNodesResponse> {
  return stream(connection, ['GET /v1/streams/nodes', 'POST /v1/streams/nodes *'], request, options)
}

/** Sends a request each time a node asks to join, takes the operator's answers. An answer that is refused, since its request was answered, timed out, was withdrawn or never was, does not end the stream: on a WebSocket it is answered by an error; gRPC has no errors within a stream, so there it is passed over, and getPendingAuthenticationRequests tells what is pending still. */
export function authenticationByRequests(
  connection: Connection,
  options?: SocketOptions,
): Promise<Exchange<AuthenticationByRequestAnswer, AuthenticationByRequestRequest>> {
  return openSocket(connection, 'GET /v1/streams/hub-server/authentication-requests', options)
}

/** Lists the authentication requests that wait for an answer now. */
export function getPendingAuthenticationRequests(
  connection: Connection,
  request: GetPendingAuthenticationRequestsRequest = {},
  options?: CallOptions,
): Promise<GetPendingAuthenticationRequestsResponse> {
  return call(connection, ['GET /v1/hub-server/authentication-requests'], ['requests[]'], request, options)
}

/** Lists the node's pipelines, in the order in which they were created. Each comes with its configuration of up to 1 MiB: over gRPC a client may have to raise the longest message it takes (docs/limits.md). Beyond 64 MiB another node's list is RESOURCE_EXHAUSTED. */
export function getPipelines(
  connection: Connection,
  request: GetPipelinesRequest,
  options?: CallOptions,
): Promise<GetPipelinesResponse> {
  return call(connection, ['GET /v1/nodes/{nodeId}/pipelines'], ['pipelines[]'], request, options)
}

export function getPipelineById(
  connection: Connection,
  request: GetPipelineByIdRequest,
  options?: CallOptions,
): Promise<GetPipelineByIdResponse> {
  return call(connection, ['GET /v1/nodes/{nodeId}/pipelines/{id}'], [], request, options)
}

/** Fails with NOT_FOUND when no pipeline, or more than one, has the name. */
export function getPipelineByName(
  connection: Connection,
  request: GetPipelineByNameRequest,
  options?: CallOptions,
): Promise<GetPipelineByNameResponse> {
  return call(connection, ['GET /v1/nodes/{nodeId}/pipelines-by-name/{name}'], [], request, options)
}

/** Finds the pipeline that a run belongs to, and the run's record. */
export function getPipelineByRunId(
  connection: Connection,
  request: GetPipelineByRunIdRequest,
  options?: CallOptions,
): Promise<GetPipelineByRunIdResponse> {
  return call(connection, ['GET /v1/nodes/{nodeId}/pipeline-runs/{id}'], [], request, options)
}

/** Creates a pipeline; it is not started. */
export function createPipeline(
  connection: Connection,
  request: CreatePipelineRequest,
  options?: CallOptions,
): Promise<CreatePipelineResponse> {
  return call(connection, ['POST /v1/nodes/{nodeId}/pipelines *'], [], request, options)
}

/** Replaces the settings of a pipeline. A run that is on takes them over or, with force_restart, is followed by another; when it does not, in the pipeline's instructions_timeout, or the other one does not start, the settings stay as they were. */
export function updatePipeline(
  connection: Connection,
  request: UpdatePipelineRequest,
  options?: CallOptions,
): Promise<UpdatePipelineResponse> {
  return call(connection, ['PUT /v1/nodes/{nodeId}/pipelines/{id} *'], [], request, options)
}

/** Says everything that is wrong with what createPipeline would be sent, and what in it is hardly meant; nothing is stored. */
export function validatePipeline(
  connection: Connection,
  request: CreatePipelineRequest,
  options?: CallOptions,
): Promise<ValidatePipelineResponse> {
  return call(connection, ['POST /v1/nodes/{nodeId}/pipelines:validate *'], ['problems[]'], request, options)
}

/** Says what updatePipeline would ask of the run that is on; nothing is changed. Fails as updatePipeline does for settings that are wrong. */
export function explainUpdate(
  connection: Connection,
  request: UpdatePipelineRequest,
  options?: CallOptions,
): Promise<ExplainUpdateResponse> {
  return call(connection, ['POST /v1/nodes/{nodeId}/pipelines/{id}/explain-update *'], ['live[]'], request, options)
}

/** Deletes a pipeline with its runs; of one that is started, the run is stopped and its end awaited first. */
export function deletePipeline(
  connection: Connection,
  request: DeletePipelineRequest,
  options?: CallOptions,
): Promise<DeletePipelineResponse> {
  return call(connection, ['DELETE /v1/nodes/{nodeId}/pipelines/{id}'], [], request, options)
}

/** Starts a new run and returns once it is running, 10 s at most. ABORTED when the run fails, or is stopped, before that; RESOURCE_EXHAUSTED when each of the node's threads has a run (docs/limits.md). */
export function startPipeline(
  connection: Connection,
  request: StartPipelineRequest,
  options?: CallOptions,
): Promise<StartPipelineResponse> {
  return call(
    connection,
    ['POST /v1/nodes/{nodeId}/pipelines/{id}/start', 'POST /v1/nodes/{nodeId}/pipelines-by-name/{name}/start'],
    ['runId'],
    request,
    options,
  )
}

/** Asks the current run to stop; does not wait for its end, nor for what is under way on the pipeline: a start, or an update that has the run replaced, fails with ABORTED then. */
export function stopPipeline(
  connection: Connection,
  request: StopPipelineRequest,
  options?: CallOptions,
): Promise<StopPipelineResponse> {
  return call(
    connection,
    [
      'POST /v1/nodes/{nodeId}/pipelines/{id}/stop',
      'POST /v1/nodes/{nodeId}/pipelines-by-name/{name}/stop',
      'POST /v1/nodes/{nodeId}/pipeline-runs/{runId}/stop',
    ],
    [],
    request,
    options,
  )
}

/** Sends every change to the node's pipelines from now on, of their runs each state once and in order. */
export function streamPipelines(
  connection: Connection,
  request: StreamPipelinesRequest,
  options?: StreamOptions,
): MessageStream<StreamPipelinesEvent> {
  return stream(connection, ['GET /v1/streams/nodes/{nodeId}/pipelines'], request, options)
}

/** Sends past log lines of a run as asked for, then new ones. */
export function openLogStream(
  connection: Connection,
  request: OpenLogStreamRequest,
  options?: StreamOptions,
): MessageStream<LogStreamMessages> {
  return stream(connection, ['GET /v1/streams/nodes/{nodeId}/pipeline-runs/{runId}/logs'], request, options)
}

/** Sends telemetry samples at regular intervals while the run is active, and ends with ABORTED, "run ended". Of a run that has ended it sends the last sample, then the same; samples are kept as long as the run's log, and the node is up. Metrics that one of the options' lists names are sent, all where all lists are empty; KPIs always. */
export function openTelemetryStream(
  connection: Connection,
  request: OpenTelemetryStreamRequest,
  options?: StreamOptions,
): MessageStream<TelemetrySample> {
  return stream(connection, ['GET /v1/streams/nodes/{nodeId}/pipeline-runs/{runId}/telemetry'], request, options)
}

/** Copies packets on their way through a run: what comes to a component, or leaves it. Ends when the run ends. The run does not wait for who reads: packets that find no room are counted as dropped. */
export function openCaptureStream(
  connection: Connection,
  request: OpenCaptureStreamRequest,
  options?: StreamOptions,
): MessageStream<CapturedPackets> {
  return stream(connection, ['GET /v1/streams/nodes/{nodeId}/pipeline-runs/{runId}/capture'], request, options)
}
