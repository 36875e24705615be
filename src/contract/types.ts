/** Requests and responses of every operation, as services see them; generated from the protos by declarations.ts. */

export interface CreateTokenRequest {
  name: string
}

export type GetTokensRequest = Record<string, never>

export interface RevokeTokenRequest {
  name: string
}

export type GetLocalNodeIdRequest = Record<string, never>

export interface GetNodeRequest {
  nodeId: string
}

export interface SetNodeRequest {
  nodeId: string
  /** Replaces the current name. */
  name: string
  /** Replaces all metadata; empty removes it. */
  metadata?: NodeMetadata | undefined
}

/** What an operator says about a node, by key. */
export interface NodeMetadata {
  items: Record<string, NodeMetadataItem>
}

/** One value. Two items are equal only if they have the same type and equal values. */
export interface NodeMetadataItem {
  // At most one of these (value).
  stringValue?: string | undefined
  bytesValue?: Uint8Array | undefined
  intValue?: bigint | undefined
  doubleValue?: number | undefined
  boolValue?: boolean | undefined
}

export interface AuthenticateByRequestRequest {
  /** HTTP or HTTPS address of the hub server. */
  hubServerAddress: string
}

export type DisconnectRequest = Record<string, never>

export type StreamConnectionStateRequest = Record<string, never>

/** Filters are joined by and; an empty one does not filter. */
export interface GetNodesRequest {
  /** A node must have every key listed, with an equal value of the same type. */
  metadataFilters: Record<string, NodeMetadataItem>
  /** A node must offer every service listed. */
  serviceFilters: NodeService[]
}

/** What a node can offer to others. */
export type NodeService = 'HUB_SERVER' | 'PIPELINES'

export interface RemoveNodeRequest {
  nodeId: string
}

/** The operator's answer to one authentication request. */
export interface AuthenticationByRequestAnswer {
  /** Id of the request being answered, as received. */
  requestId: bigint
  /** true accepts, false rejects. */
  accept: boolean
}

export type GetPendingAuthenticationRequestsRequest = Record<string, never>

export interface GetPipelinesRequest {
  nodeId: string
}

export interface GetPipelineByIdRequest {
  nodeId: string
  id: string
}

export interface GetPipelineByNameRequest {
  nodeId: string
  /** The exact name. */
  name: string
}

export interface GetPipelineByRunIdRequest {
  nodeId: string
  /** Id of the run. */
  id: string
}

export interface CreatePipelineRequest {
  nodeId: string
  name: string
  /** PipelineConfig as a JSON string. */
  jsonConfig: string
  /** Unset: never restart. */
  restartPolicy?: RestartPolicy | undefined
  /** Unset: start manually only. */
  startupPolicy?: StartupPolicy | undefined
  /** Unset: INFO. */
  defaultLoggingLevel?: Level | undefined
  /** Id of the related node. */
  nodeReferenceId?: string | undefined
  /** Seconds, greater than 0; unset: 30. */
  instructionsTimeout?: number | undefined
  /** CPU thread as the kernel numbers them, from 0, one of those that the node's process may use (taskset, cpusets); unset: the node chooses. */
  cpuPin?: number | undefined
  /** Unset: false. */
  performanceMode?: boolean | undefined
}

/** Whether a run that ended by itself is followed by another. */
export interface RestartPolicy {
  // At most one of these (policy).
  never?: RestartPolicyNever | undefined
  always?: RestartPolicyAlways | undefined
  onFailure?: RestartPolicyOnFailure | undefined
}

export type RestartPolicyNever = Record<string, never>

/** After every end but a stop. */
export interface RestartPolicyAlways {
  /** Restarts in a row; 0: no limit. */
  maxRestarts: number
}

/** After a failure. */
export interface RestartPolicyOnFailure {
  /** Restarts in a row; 0: no limit. */
  maxRestarts: number
}

/** Whether the pipeline starts by itself. */
export interface StartupPolicy {
  // At most one of these (policy).
  manual?: StartupPolicyManual | undefined
  auto?: StartupPolicyAuto | undefined
}

/** Only startPipeline starts it. */
export type StartupPolicyManual = Record<string, never>

/** It starts when the node starts. */
export type StartupPolicyAuto = Record<string, never>

/** How much a log line matters. */
export type Level = 'STATE' | 'DEBUG' | 'INFO' | 'WARN' | 'ERROR' | 'FATAL'

/** What is left out is reset to its default, not kept. */
export interface UpdatePipelineRequest {
  nodeId: string
  id: string
  name: string
  /** PipelineConfig as a JSON string. */
  jsonConfig: string
  /** Unset: never restart. */
  restartPolicy?: RestartPolicy | undefined
  /** Unset: start manually only. */
  startupPolicy?: StartupPolicy | undefined
  /** Unset: STATE. */
  defaultLoggingLevel: Level
  /** Seconds, greater than 0. */
  instructionsTimeout: number
  /** CPU thread as the kernel numbers them, from 0, one of those that the node's process may use (taskset, cpusets); unset: the node chooses. */
  cpuPin?: number | undefined
  /** Unset: false. */
  performanceMode?: boolean | undefined
  /** Unset: none. */
  nodeReferenceId?: string | undefined
  /** Whether to restart a running pipeline when its run cannot take the new settings over. */
  forceRestart: boolean
}

export interface DeletePipelineRequest {
  nodeId: string
  id: string
}

export interface StartPipelineRequest {
  nodeId: string
  // At most one of these (pipeline_identifier).
  id?: string | undefined
  /** Fails when several pipelines have it. */
  name?: string | undefined
}

export interface StopPipelineRequest {
  nodeId: string
  // At most one of these (pipeline_identifier).
  id?: string | undefined
  /** Fails when several pipelines have it. */
  name?: string | undefined
  /** Id of the pipeline's current run. */
  runId?: string | undefined
}

export interface StreamPipelinesRequest {
  nodeId: string
}

export interface OpenLogStreamRequest {
  nodeId: string
  runId: string
  /** Unset: only new messages. */
  options?: LogOptions | undefined
}

/** Options of a log stream. */
export interface LogOptions {
  /** Number of past log lines to send first; unset: none. */
  lines?: bigint | undefined
  /** Whether the stream ends after these, rather than go on with new ones; unset: it goes on. An extension. */
  pastOnly?: boolean | undefined
}

export interface OpenTelemetryStreamRequest {
  nodeId: string
  runId: string
  /** Unset: every sample, whole. */
  options?: TelemetryOptions | undefined
}

/** Which samples of a run are sent, and what of them. An extension. */
export interface TelemetryOptions {
  /** Milliseconds from one sample to the next; rounded up to a multiple of the node's telemetry.interval. Unset: every sample. */
  intervalMs?: number | undefined
  /** Names of metrics that are sent, of all components. */
  metrics: string[]
  /** Metrics that are sent by what they say of packets. */
  roles: MetricRole[]
  /** Metrics that are sent by their unit, of those that count what passed a port: "bytes", "packets". */
  portUnits: string[]
}

export type MetricRole = 'CREATED' | 'CONSUMED' | 'DROP' | 'INTENDED' | 'OVERFLOW' | 'HELD'

export interface OpenCaptureStreamRequest {
  nodeId: string
  runId: string
  /** The component's name in the configuration. */
  component: string
  side: OpenCaptureStreamRequestSide
  /** Bytes kept of each packet, at most; unset: all. */
  snapLength?: number | undefined
}

export type OpenCaptureStreamRequestSide = 'OUTPUT' | 'INPUT'

export interface CreateTokenResponse {
  token?: Token | undefined
  /** What a caller sends as `Authorization: Bearer SECRET`. Told once: the node keeps only its hash. */
  secret: string
}

/** What the node knows of a token; not the token itself. */
export interface Token {
  /** Letters, digits, dots, dashes and underscores, at most 64, neither `.` nor `..`; unique. */
  name: string
  createdAt?: Date | undefined
  /** To the minute; absent: never used. */
  lastUsed?: Date | undefined
}

export interface GetTokensResponse {
  tokens: Token[]
}

export type RevokeTokenResponse = Record<string, never>

export interface GetLocalNodeIdResponse {
  nodeId: string
  /** Whether the node holds a sign-in to a hub server; it may be disconnected all the same. */
  isAuthenticated: boolean
}

export interface GetNodeResponse {
  node?: Node | undefined
}

/** A participant of a hub. */
export interface Node {
  /** Generated from the node's public key; never changes. */
  id: string
  /** Name of the node. Set with setNode. */
  name: string
  /** Metadata of the node. Set with setNode. */
  metadata?: NodeMetadata | undefined
  /** Whether the node has a live connection to the hub now. */
  online: boolean
  /** What the node offers. */
  services: NodeService[]
  /** When the hub last heard of the node. */
  lastSeen?: Date | undefined
}

export interface SetNodeResponse {
  /** The node after the change. */
  node?: Node | undefined
}

export type AuthenticateByRequestResponse = Record<string, never>

export type DisconnectResponse = Record<string, never>

export interface StreamConnectionStateResponse {
  state: ConnectionState
}

/** How the node stands with its hub server. */
export type ConnectionState = 'UNAUTHENTICATED' | 'DISCONNECTED' | 'CONNECTED'

export interface GetNodesResponse {
  nodes: Node[]
}

export type RemoveNodeResponse = Record<string, never>

export interface StreamNodesResponse {
  // At most one of these (response).
  /** The first message, sent once. */
  initialResponse?: StreamNodesInitialResponse | undefined
  /** Every later message; never filtered. */
  updateResponse?: StreamNodesUpdateResponse | undefined
}

/** The nodes that match the filters when the stream opens. */
export interface StreamNodesInitialResponse {
  nodes: Node[]
}

/** One change; the node as it is after it. */
export interface StreamNodesUpdateResponse {
  // At most one of these (update).
  /** The node was accepted on the hub. */
  authenticatedNode?: Node | undefined
  /** The node left the hub or was removed from it. */
  deauthenticatedNode?: Node | undefined
  /** The node's link to the hub came up. */
  connectedNode?: Node | undefined
  /** The node's link to the hub went down. */
  disconnectedNode?: Node | undefined
  /** The node's details changed. */
  updatedNode?: Node | undefined
}

/** A node asks to join the hub. */
export interface AuthenticationByRequestRequest {
  /** The node that asks. */
  node?: Node | undefined
  /** Used when answering; rises, never reused. */
  requestId: bigint | number
}

export interface GetPendingAuthenticationRequestsResponse {
  /** Oldest first. */
  requests: AuthenticationByRequestRequest[]
}

export interface GetPipelinesResponse {
  pipelines: Pipeline[]
}

/** The configuration a node runs to move traffic. */
export interface Pipeline {
  /** Generated; never changes. */
  id: string
  /** Several pipelines may have the same name. */
  name: string
  /** The configuration (PipelineConfig as JSON), as it was given. */
  jsonConfig: string
  restartPolicy?: RestartPolicy | undefined
  startupPolicy?: StartupPolicy | undefined
  defaultLoggingLevel: Level
  /** Id of the related node. */
  nodeReferenceId?: string | undefined
  /** Seconds before a pipeline instruction is considered timed out. */
  instructionsTimeout: number
  /** CPU thread, from 0; unset: the node chooses. */
  cpuPin?: number | undefined
  /** Whether the run's thread never sleeps. */
  performanceMode: boolean
  /** Whether the pipeline is started. */
  started: boolean
  /** Of a started pipeline its run. Of a stopped one the last run, ENDED, with how and when it ended; unset: it was never started. */
  currentRun?: Run | undefined
  /** What the restart policy has done; unset: nothing since the last start, or since the last run that was on for a minute. */
  restarts?: Restarts | undefined
}

/** One start of a pipeline. */
export interface Run {
  id: string
  state: RunState
  startedAt?: Date | undefined
  endedAt?: Date | undefined
  /** CPU thread the run is pinned to. */
  cpu?: number | undefined
  /** How the run ended. */
  outcome?: RunOutcome | undefined
  /** Why the run failed. */
  error?: string | undefined
}

export type RunState = 'STARTING' | 'RUNNING' | 'STOPPING' | 'ENDED'

export type RunOutcome = 'STOPPED' | 'FAILED' | 'COMPLETED'

/** A row of restarts, none of which led to a run that was on for a minute. */
export interface Restarts {
  /** How many there were. */
  count: number
  /** When the next one is due; unset: none is waited for. */
  nextAt?: Date | undefined
}

export interface GetPipelineByIdResponse {
  pipeline?: Pipeline | undefined
}

export interface GetPipelineByNameResponse {
  pipeline?: Pipeline | undefined
}

export interface GetPipelineByRunIdResponse {
  pipeline?: Pipeline | undefined
  /** The run that was asked for, which need not be the pipeline's current one. */
  run?: Run | undefined
}

export interface CreatePipelineResponse {
  /** Includes the generated id. */
  pipeline?: Pipeline | undefined
}

export interface UpdatePipelineResponse {
  /** The pipeline after the update. */
  pipeline?: Pipeline | undefined
}

export interface ValidatePipelineResponse {
  /** Whether createPipeline would take it. */
  valid: boolean
  /** What it would be refused for. */
  problems: SettingsProblem[]
  /** What is allowed, but hardly meant. */
  warnings: SettingsProblem[]
}

/** Something about the settings of a pipeline. */
export interface SettingsProblem {
  /** JSON pointer: the name of a setting, or a place in the configuration. */
  pointer: string
  message: string
}

export interface ExplainUpdateResponse {
  /** Whether a run is on that would have to take the changes over. */
  running: boolean
  /** What it takes over. */
  live: FieldChange[]
  /** What needs another run: with a run on, updatePipeline is refused unless force_restart is set. */
  restart: FieldChange[]
}

/** A setting, or a field of the configuration, that is to change. */
export interface FieldChange {
  /** JSON pointer: the name of a setting, or a place in the configuration, keys in snake_case. */
  pointer: string
  reason: FieldChangeReason
  /** The reason in words. */
  message: string
}

export type FieldChangeReason =
  | 'LIVE'
  | 'BESIDE_THE_RUN'
  | 'COMPONENT_ADDED'
  | 'COMPONENT_REMOVED'
  | 'COMPONENT_REPLACED'
  | 'CONNECTIONS'
  | 'PACKET_SIZE'
  | 'FIXED'
  | 'THREAD'
  | 'LIFECYCLE'

export type DeletePipelineResponse = Record<string, never>

export interface StartPipelineResponse {
  /** Id of the new run. */
  runId: string
}

export type StopPipelineResponse = Record<string, never>

export interface StreamPipelinesEvent {
  // At most one of these (event).
  create?: StreamPipelinesCreateEvent | undefined
  update?: StreamPipelinesUpdateEvent | undefined
  delete?: StreamPipelinesDeleteEvent | undefined
}

/** The pipeline was created. */
export interface StreamPipelinesCreateEvent {
  pipeline?: Pipeline | undefined
}

/** The pipeline was changed, started or stopped. */
export interface StreamPipelinesUpdateEvent {
  pipeline?: Pipeline | undefined
}

/** The pipeline was deleted; its last state. */
export interface StreamPipelinesDeleteEvent {
  pipeline?: Pipeline | undefined
}

export interface LogStreamMessages {
  messages: LogMessage[]
}

/** One log line. */
export interface LogMessage {
  timestamp?: Date | undefined
  level: Level
  /** Name of the component that logged; empty for the run itself. */
  component: string
  message: string
  /** Further values, as text. */
  fields: Record<string, string>
}

export interface TelemetrySample {
  metricCollections: Collection[]
  kpis: Kpi[]
  /** When the sample was taken. */
  timestamp?: Date | undefined
}

/** The metrics of one component, or of the run itself. */
export interface Collection {
  /** Where the metrics belong: the component's name, or a path below it. */
  path: string
  /** By metric name. A histogram appears as its count, min, max, mean, p50, p90 and p99. */
  metrics: Record<string, Metric>
}

export interface Metric {
  kind: MetricKind
  /** Unit of the value: "bytes", "packets", "ms"; empty for none. */
  unit: string
  description: string
  /** Unset: the metric is no number of a histogram. */
  histogram?: MetricHistogram | undefined
  /** Of a place that is somebody's at times, such as that of an RTP stream: the metric of the same collection that is 0 while nobody has it. Unset: the metric belongs to no such place. */
  occupancy?: string | undefined
  /** Of a number of packets: what became of them, so that created + come in = consumed + lost + held + gone out. Unset: it says nothing of that. */
  role?: MetricRole | undefined
  /** Of what passed a port of the component: which one. The unit tells packets from bytes. */
  port?: MetricPort | undefined
  // At most one of these (value).
  doubleValue?: number | undefined
  int64Value?: bigint | number | undefined
  uint64Value?: bigint | number | undefined
  boolValue?: boolean | undefined
  stringValue?: string | undefined
}

export type MetricKind = 'GAUGE' | 'COUNTER'

/** What a metric is of a histogram. */
export interface MetricHistogram {
  /** The histogram's name; those of its component are distinct. */
  name: string
  part: MetricHistogramPart
}

export type MetricHistogramPart = 'COUNT' | 'MIN' | 'MAX' | 'MEAN' | 'P50' | 'P90' | 'P99'

export interface MetricPort {
  /** Name of the port, as in the configuration. */
  name: string
  side: MetricPortSide
}

export type MetricPortSide = 'INPUT' | 'OUTPUT'

/** One KPI of the configuration, evaluated. */
export interface Kpi {
  id: string
  label: string
  description: string
  /** Columns of the display it should span. */
  columnSpan?: number | undefined
  // At most one of these (result).
  valueOverTime?: KpiValueOverTime | undefined
  value?: KpiValue | undefined
  gauge?: KpiGauge | undefined
  dataRate?: KpiDataRate | undefined
  valueOverTimeComparison?: KpiValueOverTimeComparison | undefined
  valueToText?: KpiText | undefined
  valueToTextConditions?: KpiText | undefined
  multipleValuesOverTime?: KpiMultipleValuesOverTime | undefined
  multipleValues?: KpiMultipleValues | undefined
  /** Why it could not be evaluated. */
  error?: string | undefined
}

export interface KpiValueOverTime {
  value: number
  unit?: string | undefined
  min?: number | undefined
  max?: number | undefined
  avg?: number | undefined
}

export interface KpiValue {
  value: number
  unit?: string | undefined
}

export interface KpiGauge {
  value: number
}

export interface KpiDataRate {
  goodput: number
  overhead: number
  type: DataRateType
}

export type DataRateType = 'TOTAL' | 'RATE'

export interface KpiValueOverTimeComparison {
  value1: number
  value2: number
  unit?: string | undefined
  value1Text?: string | undefined
  value2Text?: string | undefined
  value1Min?: number | undefined
  value2Min?: number | undefined
  value1Max?: number | undefined
  value2Max?: number | undefined
  value1Avg?: number | undefined
  value2Avg?: number | undefined
}

/** The text that the value, or the first condition that holds, maps to; empty when there is none. */
export interface KpiText {
  text: string
  color?: string | undefined
  /** The value that was mapped. */
  value?: number | undefined
}

export interface KpiMultipleValuesOverTime {
  unit?: string | undefined
  values: KpiMultipleValuesItem[]
  graphType: MultipleValuesOverTimeGraphType
}

export interface KpiMultipleValuesItem {
  value: number
  label: string
  description?: string | undefined
  color?: string | undefined
}

export type MultipleValuesOverTimeGraphType = 'AREA_STACK' | 'LINE'

export interface KpiMultipleValues {
  unit?: string | undefined
  values: KpiMultipleValuesItem[]
}

export interface CapturedPackets {
  packets: CapturedPacket[]
  /** Packets that found no room, since the stream was opened. */
  dropped: bigint | number
  /** The connection points that are captured; in the first message, which has no packets. */
  links: string[]
}

/** A packet as it was handed over. */
export interface CapturedPacket {
  /** Nanoseconds since 1970. */
  time: bigint | number
  /** Bytes of the whole packet. */
  length: number
  /** Its bytes, at most as many as were asked for. */
  data: Uint8Array
  /** Index in `links`. */
  link: number
}

/** Operations with one request and one response. */
export interface UnaryOperations {
  /** Makes a token. Fails with ALREADY_EXISTS when the name is taken. */
  createToken: { request: CreateTokenRequest; response: CreateTokenResponse }
  /** Lists the tokens, without their secrets, by name. */
  getTokens: { request: GetTokensRequest; response: GetTokensResponse }
  /** Revokes a token: calls with it are refused from now on, its open streams, and calls that wait for an answer, end. */
  revokeToken: { request: RevokeTokenRequest; response: RevokeTokenResponse }
  /** Tells the id of the node hosting the API and whether it holds a sign-in to a hub server. */
  getLocalNodeId: { request: GetLocalNodeIdRequest; response: GetLocalNodeIdResponse }
  /** Reads a node's details from the node itself. */
  getNode: { request: GetNodeRequest; response: GetNodeResponse }
  /** Replaces a node's name and metadata. */
  setNode: { request: SetNodeRequest; response: SetNodeResponse }
  /** Asks a hub server to let this node join, and waits for the operator's answer. */
  authenticateByRequest: { request: AuthenticateByRequestRequest; response: AuthenticateByRequestResponse }
  /** Leaves the hub, even if the hub server cannot be told. */
  disconnect: { request: DisconnectRequest; response: DisconnectResponse }
  /** Lists the nodes on the hub that match the filters. */
  getNodes: { request: GetNodesRequest; response: GetNodesResponse }
  /** Disconnects a node from the hub server and removes it from the hub. */
  removeNode: { request: RemoveNodeRequest; response: RemoveNodeResponse }
  /** Lists the authentication requests that wait for an answer now. */
  getPendingAuthenticationRequests: {
    request: GetPendingAuthenticationRequestsRequest
    response: GetPendingAuthenticationRequestsResponse
  }
  /** Lists the node's pipelines, in the order in which they were created. Each comes with its configuration of up to 1 MiB: over gRPC a client may have to raise the longest message it takes (docs/limits.md). Beyond 64 MiB another node's list is RESOURCE_EXHAUSTED. */
  getPipelines: { request: GetPipelinesRequest; response: GetPipelinesResponse }
  getPipelineById: { request: GetPipelineByIdRequest; response: GetPipelineByIdResponse }
  /** Fails with NOT_FOUND when no pipeline, or more than one, has the name. */
  getPipelineByName: { request: GetPipelineByNameRequest; response: GetPipelineByNameResponse }
  /** Finds the pipeline that a run belongs to, and the run's record. */
  getPipelineByRunId: { request: GetPipelineByRunIdRequest; response: GetPipelineByRunIdResponse }
  /** Creates a pipeline; it is not started. */
  createPipeline: { request: CreatePipelineRequest; response: CreatePipelineResponse }
  /** Replaces the settings of a pipeline. A run that is on takes them over or, with force_restart, is followed by another; when it does not, in the pipeline's instructions_timeout, or the other one does not start, the settings stay as they were. */
  updatePipeline: { request: UpdatePipelineRequest; response: UpdatePipelineResponse }
  /** Says everything that is wrong with what createPipeline would be sent, and what in it is hardly meant; nothing is stored. */
  validatePipeline: { request: CreatePipelineRequest; response: ValidatePipelineResponse }
  /** Says what updatePipeline would ask of the run that is on; nothing is changed. Fails as updatePipeline does for settings that are wrong. */
  explainUpdate: { request: UpdatePipelineRequest; response: ExplainUpdateResponse }
  /** Deletes a pipeline with its runs; of one that is started, the run is stopped and its end awaited first. */
  deletePipeline: { request: DeletePipelineRequest; response: DeletePipelineResponse }
  /** Starts a new run and returns once it is running, 10 s at most. ABORTED when the run fails, or is stopped, before that; RESOURCE_EXHAUSTED when each of the node's threads has a run (docs/limits.md). */
  startPipeline: { request: StartPipelineRequest; response: StartPipelineResponse }
  /** Asks the current run to stop; does not wait for its end, nor for what is under way on the pipeline: a start, or an update that has the run replaced, fails with ABORTED then. */
  stopPipeline: { request: StopPipelineRequest; response: StopPipelineResponse }
}

/** Operations with one request and many messages. */
export interface StreamOperations {
  /** Sends the current connection state, then every change of it. */
  streamConnectionState: { request: StreamConnectionStateRequest; response: StreamConnectionStateResponse }
  /** Sends the nodes that match the filters, then every later change to any node. */
  streamNodes: { request: GetNodesRequest; response: StreamNodesResponse }
  /** Sends every change to the node's pipelines from now on, of their runs each state once and in order. */
  streamPipelines: { request: StreamPipelinesRequest; response: StreamPipelinesEvent }
  /** Sends past log lines of a run as asked for, then new ones. */
  openLogStream: { request: OpenLogStreamRequest; response: LogStreamMessages }
  /** Sends telemetry samples at regular intervals while the run is active, and ends with ABORTED, "run ended". Of a run that has ended it sends the last sample, then the same; samples are kept as long as the run's log, and the node is up. Metrics that one of the options' lists names are sent, all where all lists are empty; KPIs always. */
  openTelemetryStream: { request: OpenTelemetryStreamRequest; response: TelemetrySample }
  /** Copies packets on their way through a run: what comes to a component, or leaves it. Ends when the run ends. The run does not wait for who reads: packets that find no room are counted as dropped. */
  openCaptureStream: { request: OpenCaptureStreamRequest; response: CapturedPackets }
}

/** Operations with messages both ways. */
export interface BidiOperations {
  /** Sends a request each time a node asks to join, takes the operator's answers. An answer that is refused, since its request was answered, timed out, was withdrawn or never was, does not end the stream: on a WebSocket it is answered by an error; gRPC has no errors within a stream, so there it is passed over, and getPendingAuthenticationRequests tells what is pending still. */
  authenticationByRequests: { request: AuthenticationByRequestAnswer; response: AuthenticationByRequestRequest }
}
