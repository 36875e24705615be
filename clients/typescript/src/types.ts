/** Messages and enums of the API as JSON; generated from the protos by `npm run types`. */

/** A number; those that JSON has not are strings. */
export type Double = number | 'NaN' | 'Infinity' | '-Infinity'

/** What a node can offer to others. */
export type NodeService = 'HUB_SERVER' | 'PIPELINES'

/** How the node stands with its hub server. */
export type ConnectionState = 'UNAUTHENTICATED' | 'DISCONNECTED' | 'CONNECTED'

/** How much a log line matters. */
export type Level = 'STATE' | 'DEBUG' | 'INFO' | 'WARN' | 'ERROR' | 'FATAL'

export type RunState = 'STARTING' | 'RUNNING' | 'STOPPING' | 'ENDED'

export type RunOutcome = 'STOPPED' | 'FAILED' | 'COMPLETED'

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

export type MetricRole = 'CREATED' | 'CONSUMED' | 'DROP' | 'INTENDED' | 'OVERFLOW' | 'HELD'

export type MetricKind = 'GAUGE' | 'COUNTER'

export type MetricHistogramPart = 'COUNT' | 'MIN' | 'MAX' | 'MEAN' | 'P50' | 'P90' | 'P99'

export type MetricPortSide = 'INPUT' | 'OUTPUT'

export type DataRateType = 'TOTAL' | 'RATE'

export type MultipleValuesOverTimeGraphType = 'AREA_STACK' | 'LINE'

export type OpenCaptureStreamRequestSide = 'OUTPUT' | 'INPUT'

export interface CreateTokenResponse {
  token?: Token
  /** What a caller sends as `Authorization: Bearer SECRET`. Told once: the node keeps only its hash. */
  secret: string
}

/** What the node knows of a token; not the token itself. */
export interface Token {
  /** Letters, digits, dots, dashes and underscores, at most 64, neither `.` nor `..`; unique. */
  name: string
  createdAt?: string
  /** To the minute; absent: never used. */
  lastUsed?: string
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
  node?: Node
}

/** A participant of a hub. */
export interface Node {
  /** Generated from the node's public key; never changes. */
  id: string
  /** Name of the node. Set with setNode. */
  name: string
  /** Metadata of the node. Set with setNode. */
  metadata?: NodeMetadata
  /** Whether the node has a live connection to the hub now. */
  online: boolean
  /** What the node offers. */
  services: NodeService[]
  /** When the hub last heard of the node. */
  lastSeen?: string
}

/** What an operator says about a node, by key. */
export interface NodeMetadata {
  items: Record<string, NodeMetadataItem>
}

/** One value. Two items are equal only if they have the same type and equal values. */
export interface NodeMetadataItem {
  // At most one of these (value).
  stringValue?: string
  bytesValue?: string
  intValue?: string
  doubleValue?: Double
  boolValue?: boolean
}

export interface SetNodeResponse {
  /** The node after the change. */
  node?: Node
}

export type AuthenticateByRequestResponse = Record<string, never>

export type DisconnectResponse = Record<string, never>

export interface StreamConnectionStateResponse {
  state: ConnectionState
}

export interface GetNodesResponse {
  nodes: Node[]
}

export type RemoveNodeResponse = Record<string, never>

export interface StreamNodesResponse {
  // At most one of these (response).
  /** The first message, sent once. */
  initialResponse?: StreamNodesInitialResponse
  /** Every later message; never filtered. */
  updateResponse?: StreamNodesUpdateResponse
}

/** The nodes that match the filters when the stream opens. */
export interface StreamNodesInitialResponse {
  nodes: Node[]
}

/** One change; the node as it is after it. */
export interface StreamNodesUpdateResponse {
  // At most one of these (update).
  /** The node was accepted on the hub. */
  authenticatedNode?: Node
  /** The node left the hub or was removed from it. */
  deauthenticatedNode?: Node
  /** The node's link to the hub came up. */
  connectedNode?: Node
  /** The node's link to the hub went down. */
  disconnectedNode?: Node
  /** The node's details changed. */
  updatedNode?: Node
}

/** A node asks to join the hub. */
export interface AuthenticationByRequestRequest {
  /** The node that asks. */
  node?: Node
  /** Used when answering; rises, never reused. */
  requestId: string
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
  restartPolicy?: RestartPolicy
  startupPolicy?: StartupPolicy
  defaultLoggingLevel: Level
  /** Id of the related node. */
  nodeReferenceId?: string
  /** Seconds before a pipeline instruction is considered timed out. */
  instructionsTimeout: number
  /** CPU thread, from 0; unset: the node chooses. */
  cpuPin?: number
  /** Whether the run's thread never sleeps. */
  performanceMode: boolean
  /** Whether the pipeline is started. */
  started: boolean
  /** Of a started pipeline its run. Of a stopped one the last run, ENDED, with how and when it ended; unset: it was never started. */
  currentRun?: Run
  /** What the restart policy has done; unset: nothing since the last start, or since the last run that was on for a minute. */
  restarts?: Restarts
}

/** Whether a run that ended by itself is followed by another. */
export interface RestartPolicy {
  // At most one of these (policy).
  never?: RestartPolicyNever
  always?: RestartPolicyAlways
  onFailure?: RestartPolicyOnFailure
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
  manual?: StartupPolicyManual
  auto?: StartupPolicyAuto
}

/** Only startPipeline starts it. */
export type StartupPolicyManual = Record<string, never>

/** It starts when the node starts. */
export type StartupPolicyAuto = Record<string, never>

/** One start of a pipeline. */
export interface Run {
  id: string
  state: RunState
  startedAt?: string
  endedAt?: string
  /** CPU thread the run is pinned to. */
  cpu?: number
  /** How the run ended. */
  outcome?: RunOutcome
  /** Why the run failed. */
  error?: string
}

/** A row of restarts, none of which led to a run that was on for a minute. */
export interface Restarts {
  /** How many there were. */
  count: number
  /** When the next one is due; unset: none is waited for. */
  nextAt?: string
}

export interface GetPipelineByIdResponse {
  pipeline?: Pipeline
}

export interface GetPipelineByNameResponse {
  pipeline?: Pipeline
}

export interface GetPipelineByRunIdResponse {
  pipeline?: Pipeline
  /** The run that was asked for, which need not be the pipeline's current one. */
  run?: Run
}

export interface CreatePipelineResponse {
  /** Includes the generated id. */
  pipeline?: Pipeline
}

export interface UpdatePipelineResponse {
  /** The pipeline after the update. */
  pipeline?: Pipeline
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

export type DeletePipelineResponse = Record<string, never>

export interface StartPipelineResponse {
  /** Id of the new run. */
  runId: string
}

export type StopPipelineResponse = Record<string, never>

export interface StreamPipelinesEvent {
  // At most one of these (event).
  create?: StreamPipelinesCreateEvent
  update?: StreamPipelinesUpdateEvent
  delete?: StreamPipelinesDeleteEvent
}

/** The pipeline was created. */
export interface StreamPipelinesCreateEvent {
  pipeline?: Pipeline
}

/** The pipeline was changed, started or stopped. */
export interface StreamPipelinesUpdateEvent {
  pipeline?: Pipeline
}

/** The pipeline was deleted; its last state. */
export interface StreamPipelinesDeleteEvent {
  pipeline?: Pipeline
}

export interface LogStreamMessages {
  messages: LogMessage[]
}

/** One log line. */
export interface LogMessage {
  timestamp?: string
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
  timestamp?: string
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
  histogram?: MetricHistogram
  /** Of a place that is somebody's at times, such as that of an RTP stream: the metric of the same collection that is 0 while nobody has it. Unset: the metric belongs to no such place. */
  occupancy?: string
  /** Of a number of packets: what became of them, so that created + come in = consumed + lost + held + gone out. Unset: it says nothing of that. */
  role?: MetricRole
  /** Of what passed a port of the component: which one. The unit tells packets from bytes. */
  port?: MetricPort
  // At most one of these (value).
  doubleValue?: Double
  int64Value?: string
  uint64Value?: string
  boolValue?: boolean
  stringValue?: string
}

/** What a metric is of a histogram. */
export interface MetricHistogram {
  /** The histogram's name; those of its component are distinct. */
  name: string
  part: MetricHistogramPart
}

export interface MetricPort {
  /** Name of the port, as in the configuration. */
  name: string
  side: MetricPortSide
}

/** One KPI of the configuration, evaluated. */
export interface Kpi {
  id: string
  label: string
  description: string
  /** Columns of the display it should span. */
  columnSpan?: number
  // At most one of these (result).
  valueOverTime?: KpiValueOverTime
  value?: KpiValue
  gauge?: KpiGauge
  dataRate?: KpiDataRate
  valueOverTimeComparison?: KpiValueOverTimeComparison
  valueToText?: KpiText
  valueToTextConditions?: KpiText
  multipleValuesOverTime?: KpiMultipleValuesOverTime
  multipleValues?: KpiMultipleValues
  /** Why it could not be evaluated. */
  error?: string
}

export interface KpiValueOverTime {
  value: Double
  unit?: string
  min?: Double
  max?: Double
  avg?: Double
}

export interface KpiValue {
  value: Double
  unit?: string
}

export interface KpiGauge {
  value: Double
}

export interface KpiDataRate {
  goodput: Double
  overhead: Double
  type: DataRateType
}

export interface KpiValueOverTimeComparison {
  value1: Double
  value2: Double
  unit?: string
  value1Text?: string
  value2Text?: string
  value1Min?: Double
  value2Min?: Double
  value1Max?: Double
  value2Max?: Double
  value1Avg?: Double
  value2Avg?: Double
}

/** The text that the value, or the first condition that holds, maps to; empty when there is none. */
export interface KpiText {
  text: string
  color?: string
  /** The value that was mapped. */
  value?: Double
}

export interface KpiMultipleValuesOverTime {
  unit?: string
  values: KpiMultipleValuesItem[]
  graphType: MultipleValuesOverTimeGraphType
}

export interface KpiMultipleValuesItem {
  value: Double
  label: string
  description?: string
  color?: string
}

export interface KpiMultipleValues {
  unit?: string
  values: KpiMultipleValuesItem[]
}

export interface CapturedPackets {
  packets: CapturedPacket[]
  /** Packets that found no room, since the stream was opened. */
  dropped: string
  /** The connection points that are captured; in the first message, which has no packets. */
  links: string[]
}

/** A packet as it was handed over. */
export interface CapturedPacket {
  /** Nanoseconds since 1970. */
  time: string
  /** Bytes of the whole packet. */
  length: number
  /** Its bytes, at most as many as were asked for. */
  data: string
  /** Index in `links`. */
  link: number
}

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
  metadata?: NodeMetadataInput | undefined
}

/** What an operator says about a node, by key. */
export interface NodeMetadataInput {
  items?: Record<string, NodeMetadataItemInput> | undefined
}

/** One value. Two items are equal only if they have the same type and equal values. */
export interface NodeMetadataItemInput {
  // At most one of these (value).
  stringValue?: string | undefined
  bytesValue?: string | undefined
  intValue?: string | undefined
  doubleValue?: Double | undefined
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
  metadataFilters?: Record<string, NodeMetadataItemInput> | undefined
  /** A node must offer every service listed. */
  serviceFilters?: NodeService[] | undefined
}

export interface RemoveNodeRequest {
  nodeId: string
}

/** The operator's answer to one authentication request. */
export interface AuthenticationByRequestAnswer {
  /** Id of the request being answered, as received. */
  requestId: string
  /** true accepts, false rejects. */
  accept?: boolean | undefined
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
  restartPolicy?: RestartPolicyInput | undefined
  /** Unset: start manually only. */
  startupPolicy?: StartupPolicyInput | undefined
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
export interface RestartPolicyInput {
  // At most one of these (policy).
  never?: RestartPolicyNeverInput | undefined
  always?: RestartPolicyAlwaysInput | undefined
  onFailure?: RestartPolicyOnFailureInput | undefined
}

export type RestartPolicyNeverInput = Record<string, never>

/** After every end but a stop. */
export interface RestartPolicyAlwaysInput {
  /** Restarts in a row; 0: no limit. */
  maxRestarts?: number | undefined
}

/** After a failure. */
export interface RestartPolicyOnFailureInput {
  /** Restarts in a row; 0: no limit. */
  maxRestarts?: number | undefined
}

/** Whether the pipeline starts by itself. */
export interface StartupPolicyInput {
  // At most one of these (policy).
  manual?: StartupPolicyManualInput | undefined
  auto?: StartupPolicyAutoInput | undefined
}

/** Only startPipeline starts it. */
export type StartupPolicyManualInput = Record<string, never>

/** It starts when the node starts. */
export type StartupPolicyAutoInput = Record<string, never>

/** What is left out is reset to its default, not kept. */
export interface UpdatePipelineRequest {
  nodeId: string
  id: string
  name: string
  /** PipelineConfig as a JSON string. */
  jsonConfig: string
  /** Unset: never restart. */
  restartPolicy?: RestartPolicyInput | undefined
  /** Unset: start manually only. */
  startupPolicy?: StartupPolicyInput | undefined
  /** Unset: STATE. */
  defaultLoggingLevel?: Level | undefined
  /** Seconds, greater than 0. */
  instructionsTimeout?: number | undefined
  /** CPU thread as the kernel numbers them, from 0, one of those that the node's process may use (taskset, cpusets); unset: the node chooses. */
  cpuPin?: number | undefined
  /** Unset: false. */
  performanceMode?: boolean | undefined
  /** Unset: none. */
  nodeReferenceId?: string | undefined
  /** Whether to restart a running pipeline when its run cannot take the new settings over. */
  forceRestart?: boolean | undefined
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
  lines?: string | undefined
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
  metrics?: string[] | undefined
  /** Metrics that are sent by what they say of packets. */
  roles?: MetricRole[] | undefined
  /** Metrics that are sent by their unit, of those that count what passed a port: "bytes", "packets". */
  portUnits?: string[] | undefined
}

export interface OpenCaptureStreamRequest {
  nodeId: string
  runId: string
  /** The component's name in the configuration. */
  component: string
  side?: OpenCaptureStreamRequestSide | undefined
  /** Bytes kept of each packet, at most; unset: all. */
  snapLength?: number | undefined
}
