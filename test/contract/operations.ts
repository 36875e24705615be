/** The operation and message tables of both specification documents, with what the project decided where they are silent, as data. */

/** One operation: kind, request and response message, and its HTTP forms (`*` after a path: the body holds the other fields). */
export interface ExpectedOperation {
  readonly kind: 'unary' | 'server' | 'bidi'
  readonly request: string
  readonly response: string
  readonly http: readonly string[]
}

function unary(request: string, response: string, ...http: string[]): ExpectedOperation {
  return { kind: 'unary', request, response, http }
}

function server(request: string, response: string, ...http: string[]): ExpectedOperation {
  return { kind: 'server', request, response, http }
}

/** Operations by service, then by name. */
export const operations: Readonly<Record<string, Readonly<Record<string, ExpectedOperation>>>> = {
  'servicegrpc.hub.HubServerService': {
    getNodes: unary('hub.GetNodesRequest', 'hub.GetNodesResponse', 'GET /v1/nodes', 'POST /v1/nodes/search *'),
    removeNode: unary('hub.RemoveNodeRequest', 'hub.RemoveNodeResponse', 'DELETE /v1/nodes/{node_id}'),
    streamNodes: server(
      'hub.GetNodesRequest',
      'hub.StreamNodesResponse',
      'GET /v1/streams/nodes',
      'POST /v1/streams/nodes *',
    ),
    authenticationByRequests: {
      kind: 'bidi',
      request: 'hub.AuthenticationByRequestAnswer',
      response: 'hub.AuthenticationByRequestRequest',
      http: ['GET /v1/streams/hub-server/authentication-requests'],
    },
    // Decided by the project: what is pending now.
    getPendingAuthenticationRequests: unary(
      'hub.GetPendingAuthenticationRequestsRequest',
      'hub.GetPendingAuthenticationRequestsResponse',
      'GET /v1/hub-server/authentication-requests',
    ),
  },
  // Decided by the project: tokens for callers from other machines.
  'servicegrpc.hub.AccessService': {
    createToken: unary('hub.CreateTokenRequest', 'hub.CreateTokenResponse', 'POST /v1/access/tokens *'),
    getTokens: unary('hub.GetTokensRequest', 'hub.GetTokensResponse', 'GET /v1/access/tokens'),
    revokeToken: unary('hub.RevokeTokenRequest', 'hub.RevokeTokenResponse', 'DELETE /v1/access/tokens/{name}'),
  },
  'servicegrpc.hub.HubClientService': {
    getLocalNodeId: unary(
      'hub.GetLocalNodeIdRequest',
      'hub.GetLocalNodeIdResponse',
      'GET /v1/hub-client/local-node-id',
    ),
    getNode: unary('hub.GetNodeRequest', 'hub.GetNodeResponse', 'GET /v1/nodes/{node_id}'),
    setNode: unary('hub.SetNodeRequest', 'hub.SetNodeResponse', 'PUT /v1/nodes/{node_id} *'),
    authenticateByRequest: unary(
      'hub.AuthenticateByRequestRequest',
      'hub.AuthenticateByRequestResponse',
      'POST /v1/hub-client/authenticate-by-request *',
    ),
    disconnect: unary('hub.DisconnectRequest', 'hub.DisconnectResponse', 'POST /v1/hub-client/disconnect *'),
    streamConnectionState: server(
      'hub.StreamConnectionStateRequest',
      'hub.StreamConnectionStateResponse',
      'GET /v1/streams/hub-client/connection-state',
    ),
  },
  'servicegrpc.pipeline.PipelinesService': {
    getPipelines: unary(
      'pipeline.GetPipelinesRequest',
      'pipeline.GetPipelinesResponse',
      'GET /v1/nodes/{node_id}/pipelines',
    ),
    getPipelineById: unary(
      'pipeline.GetPipelineByIdRequest',
      'pipeline.GetPipelineByIdResponse',
      'GET /v1/nodes/{node_id}/pipelines/{id}',
    ),
    getPipelineByName: unary(
      'pipeline.GetPipelineByNameRequest',
      'pipeline.GetPipelineByNameResponse',
      'GET /v1/nodes/{node_id}/pipelines-by-name/{name}',
    ),
    getPipelineByRunId: unary(
      'pipeline.GetPipelineByRunIdRequest',
      'pipeline.GetPipelineByRunIdResponse',
      'GET /v1/nodes/{node_id}/pipeline-runs/{id}',
    ),
    createPipeline: unary(
      'pipeline.CreatePipelineRequest',
      'pipeline.CreatePipelineResponse',
      'POST /v1/nodes/{node_id}/pipelines *',
    ),
    updatePipeline: unary(
      'pipeline.UpdatePipelineRequest',
      'pipeline.UpdatePipelineResponse',
      'PUT /v1/nodes/{node_id}/pipelines/{id} *',
    ),
    // Decided by the project: what a create request and an update would come to.
    validatePipeline: unary(
      'pipeline.CreatePipelineRequest',
      'pipeline.ValidatePipelineResponse',
      'POST /v1/nodes/{node_id}/pipelines:validate *',
    ),
    explainUpdate: unary(
      'pipeline.UpdatePipelineRequest',
      'pipeline.ExplainUpdateResponse',
      'POST /v1/nodes/{node_id}/pipelines/{id}/explain-update *',
    ),
    deletePipeline: unary(
      'pipeline.DeletePipelineRequest',
      'pipeline.DeletePipelineResponse',
      'DELETE /v1/nodes/{node_id}/pipelines/{id}',
    ),
    startPipeline: unary(
      'pipeline.StartPipelineRequest',
      'pipeline.StartPipelineResponse',
      'POST /v1/nodes/{node_id}/pipelines/{id}/start',
      'POST /v1/nodes/{node_id}/pipelines-by-name/{name}/start',
    ),
    stopPipeline: unary(
      'pipeline.StopPipelineRequest',
      'pipeline.StopPipelineResponse',
      'POST /v1/nodes/{node_id}/pipelines/{id}/stop',
      'POST /v1/nodes/{node_id}/pipelines-by-name/{name}/stop',
      'POST /v1/nodes/{node_id}/pipeline-runs/{run_id}/stop',
    ),
    streamPipelines: server(
      'pipeline.StreamPipelinesRequest',
      'pipeline.StreamPipelinesEvent',
      'GET /v1/streams/nodes/{node_id}/pipelines',
    ),
    openLogStream: server(
      'pipeline.OpenLogStreamRequest',
      'pipeline.LogStreamMessages',
      'GET /v1/streams/nodes/{node_id}/pipeline-runs/{run_id}/logs',
    ),
    openTelemetryStream: server(
      'pipeline.OpenTelemetryStreamRequest',
      'pipeline.TelemetrySample',
      'GET /v1/streams/nodes/{node_id}/pipeline-runs/{run_id}/telemetry',
    ),
    openCaptureStream: server(
      'pipeline.OpenCaptureStreamRequest',
      'pipeline.CapturedPackets',
      'GET /v1/streams/nodes/{node_id}/pipeline-runs/{run_id}/capture',
    ),
  },
}

const identifier = 'pipeline_identifier/id string; pipeline_identifier/name string'
const item = 'value/string_value string; value/bytes_value bytes; value/int_value i64'

/**
 * Fields of each message: `name type`, `?` optional, `[]` repeated, `oneof/name type` a member of a one-of; no type means string.
 * Types of the same package go without it.
 */
export const messages: Readonly<Record<string, string>> = {
  'hub.Node':
    'id; name; metadata NodeMetadata; online bool; services NodeService[]; last_seen google.protobuf.Timestamp',
  'hub.NodeMetadata': 'items map<string, NodeMetadataItem>',
  'hub.NodeMetadataItem': `${item}; value/double_value double; value/bool_value bool`,
  'hub.GetNodesRequest': 'metadata_filters map<string, NodeMetadataItem>; service_filters NodeService[]',
  'hub.GetNodesResponse': 'nodes Node[]',
  'hub.RemoveNodeRequest': 'node_id',
  'hub.RemoveNodeResponse': '',
  'hub.StreamNodesResponse':
    'response/initial_response StreamNodesInitialResponse; response/update_response StreamNodesUpdateResponse',
  'hub.StreamNodesInitialResponse': 'nodes Node[]',
  'hub.StreamNodesUpdateResponse':
    'update/authenticated_node Node; update/deauthenticated_node Node; update/connected_node Node; update/disconnected_node Node; update/updated_node Node',
  'hub.AuthenticationByRequestAnswer': 'request_id u64; accept bool',
  'hub.AuthenticationByRequestRequest': 'node Node; request_id u64',
  'hub.GetPendingAuthenticationRequestsRequest': '',
  'hub.GetPendingAuthenticationRequestsResponse': 'requests AuthenticationByRequestRequest[]',
  'hub.Token': 'name; created_at google.protobuf.Timestamp; last_used google.protobuf.Timestamp',
  'hub.CreateTokenRequest': 'name',
  'hub.CreateTokenResponse': 'token Token; secret',
  'hub.GetTokensRequest': '',
  'hub.GetTokensResponse': 'tokens Token[]',
  'hub.RevokeTokenRequest': 'name',
  'hub.RevokeTokenResponse': '',
  'hub.GetLocalNodeIdRequest': '',
  'hub.GetLocalNodeIdResponse': 'node_id; is_authenticated bool',
  'hub.GetNodeRequest': 'node_id',
  'hub.GetNodeResponse': 'node Node',
  'hub.SetNodeRequest': 'node_id; name; metadata NodeMetadata',
  'hub.SetNodeResponse': 'node Node',
  'hub.AuthenticateByRequestRequest': 'hub_server_address',
  'hub.AuthenticateByRequestResponse': '',
  'hub.DisconnectRequest': '',
  'hub.DisconnectResponse': '',
  'hub.StreamConnectionStateRequest': '',
  'hub.StreamConnectionStateResponse': 'state ConnectionState',

  'logging.Options': 'lines? u64',
  'logging.Message': 'timestamp google.protobuf.Timestamp; level Level; component; message; fields map<string, string>',

  'pipeline.Pipeline':
    'id; name; json_config; restart_policy RestartPolicy; startup_policy StartupPolicy; default_logging_level servicegrpc.logging.Level; node_reference_id?; instructions_timeout i32; cpu_pin? u32; performance_mode bool; started bool; current_run? Run; restarts? Restarts',
  // Decided by the project: what the restart policy does.
  'pipeline.Restarts': 'count u32; next_at? google.protobuf.Timestamp',
  'pipeline.Run':
    'id; state Run.State; started_at google.protobuf.Timestamp; ended_at? google.protobuf.Timestamp; cpu? u32; outcome? Run.Outcome; error?',
  'pipeline.RestartPolicy':
    'policy/never RestartPolicy.Never; policy/always RestartPolicy.Always; policy/on_failure RestartPolicy.OnFailure',
  'pipeline.RestartPolicy.Never': '',
  'pipeline.RestartPolicy.Always': 'max_restarts u32',
  'pipeline.RestartPolicy.OnFailure': 'max_restarts u32',
  'pipeline.StartupPolicy': 'policy/manual StartupPolicy.Manual; policy/auto StartupPolicy.Auto',
  'pipeline.StartupPolicy.Manual': '',
  'pipeline.StartupPolicy.Auto': '',
  'pipeline.GetPipelinesRequest': 'node_id',
  'pipeline.GetPipelinesResponse': 'pipelines Pipeline[]',
  'pipeline.GetPipelineByIdRequest': 'node_id; id',
  'pipeline.GetPipelineByIdResponse': 'pipeline Pipeline',
  'pipeline.GetPipelineByNameRequest': 'node_id; name',
  'pipeline.GetPipelineByNameResponse': 'pipeline Pipeline',
  'pipeline.GetPipelineByRunIdRequest': 'node_id; id',
  'pipeline.GetPipelineByRunIdResponse': 'pipeline Pipeline; run Run',
  'pipeline.CreatePipelineRequest':
    'node_id; name; json_config; restart_policy RestartPolicy; startup_policy StartupPolicy; optional_default_logging_level/default_logging_level servicegrpc.logging.Level; optional_node_reference_id/node_reference_id string; optional_instructions_timeout/instructions_timeout i32; optional_cpu_pin/cpu_pin u32; optional_performance_mode/performance_mode bool',
  'pipeline.CreatePipelineResponse': 'pipeline Pipeline',
  'pipeline.UpdatePipelineRequest':
    'node_id; id; name; json_config; restart_policy RestartPolicy; startup_policy StartupPolicy; default_logging_level servicegrpc.logging.Level; instructions_timeout i32; cpu_pin? u32; performance_mode? bool; node_reference_id?; force_restart bool',
  'pipeline.UpdatePipelineResponse': 'pipeline Pipeline',
  // Decided by the project.
  'pipeline.ValidatePipelineResponse': 'valid bool; problems SettingsProblem[]; warnings SettingsProblem[]',
  'pipeline.SettingsProblem': 'pointer; message',
  'pipeline.ExplainUpdateResponse': 'running bool; live FieldChange[]; restart FieldChange[]',
  'pipeline.FieldChange': 'pointer; reason FieldChange.Reason; message',
  'pipeline.DeletePipelineRequest': 'node_id; id',
  'pipeline.DeletePipelineResponse': '',
  'pipeline.StartPipelineRequest': `node_id; ${identifier}`,
  'pipeline.StartPipelineResponse': 'run_id',
  'pipeline.StopPipelineRequest': `node_id; ${identifier}; pipeline_identifier/run_id string`,
  'pipeline.StopPipelineResponse': '',
  'pipeline.StreamPipelinesRequest': 'node_id',
  'pipeline.StreamPipelinesEvent':
    'event/create StreamPipelinesCreateEvent; event/update StreamPipelinesUpdateEvent; event/delete StreamPipelinesDeleteEvent',
  'pipeline.StreamPipelinesCreateEvent': 'pipeline Pipeline',
  'pipeline.StreamPipelinesUpdateEvent': 'pipeline Pipeline',
  'pipeline.StreamPipelinesDeleteEvent': 'pipeline Pipeline',
  'pipeline.OpenLogStreamRequest': 'node_id; run_id; options? servicegrpc.logging.Options',
  'pipeline.LogStreamMessages': 'messages servicegrpc.logging.Message[]',
  'pipeline.OpenTelemetryStreamRequest': 'node_id; run_id',
  'pipeline.TelemetryOptions': 'interval_ms? u32; metrics string[]; roles Metric.Role[]; port_units string[]',
  'pipeline.OpenCaptureStreamRequest':
    'node_id; run_id; component; side servicegrpc.pipeline.OpenCaptureStreamRequest.Side; snap_length? u32',
  'pipeline.CapturedPackets': 'packets servicegrpc.pipeline.CapturedPacket[]; dropped u64; links string[]',
  'pipeline.CapturedPacket': 'time u64; length u32; data bytes; link u32',
  'pipeline.TelemetrySample': 'metric_collections Collection[]; kpis Kpi[]; timestamp google.protobuf.Timestamp',
  'pipeline.Collection': 'path; metrics map<string, Metric>',
  'pipeline.Metric':
    'value/double_value double; value/int64_value i64; value/uint64_value u64; value/bool_value bool; value/string_value string; kind Metric.Kind; unit; description; histogram? Metric.Histogram; occupancy?; role? Metric.Role; port? Metric.Port',
  'pipeline.Metric.Histogram': 'name; part Metric.Histogram.Part',
  'pipeline.Metric.Port': 'name; side Metric.Port.Side',
  'pipeline.Kpi':
    'id; label; description; column_span? i32; result/value_over_time Kpi.ValueOverTime; result/value Kpi.Value; result/gauge Kpi.Gauge; result/data_rate Kpi.DataRate; result/value_over_time_comparison Kpi.ValueOverTimeComparison; result/value_to_text Kpi.Text; result/value_to_text_conditions Kpi.Text; result/multiple_values_over_time Kpi.MultipleValuesOverTime; result/multiple_values Kpi.MultipleValues; result/error string',
  'pipeline.Kpi.Value': 'value double; unit?',
  'pipeline.Kpi.Gauge': 'value double',
  'pipeline.Kpi.ValueOverTime': 'value double; unit?; min? double; max? double; avg? double',
  'pipeline.Kpi.ValueOverTimeComparison':
    'value1 double; value2 double; unit?; value1_text?; value2_text?; value1_min? double; value2_min? double; value1_max? double; value2_max? double; value1_avg? double; value2_avg? double',
  'pipeline.Kpi.DataRate': 'goodput double; overhead double; type DataRateType',
  'pipeline.Kpi.Text': 'text; color?; value? double',
  'pipeline.Kpi.MultipleValuesItem': 'value double; label; description?; color?',
  'pipeline.Kpi.MultipleValues': 'unit?; values Kpi.MultipleValuesItem[]',
  'pipeline.Kpi.MultipleValuesOverTime':
    'unit?; values Kpi.MultipleValuesItem[]; graph_type MultipleValuesOverTimeGraphType',
}

/** Values of each enum, in the order of their numbers. */
export const enums: Readonly<Record<string, string>> = {
  'hub.NodeService': 'HUB_SERVER PIPELINES',
  'hub.ConnectionState': 'UNAUTHENTICATED DISCONNECTED CONNECTED',
  'logging.Level': 'STATE DEBUG INFO WARN ERROR FATAL',
  'pipeline.Run.State': 'STARTING RUNNING STOPPING ENDED',
  'pipeline.Run.Outcome': 'STOPPED FAILED COMPLETED',
  'pipeline.OpenCaptureStreamRequest.Side': 'OUTPUT INPUT',
  'pipeline.FieldChange.Reason':
    'LIVE BESIDE_THE_RUN COMPONENT_ADDED COMPONENT_REMOVED COMPONENT_REPLACED CONNECTIONS PACKET_SIZE FIXED THREAD LIFECYCLE',
  'pipeline.Metric.Kind': 'GAUGE COUNTER',
  'pipeline.Metric.Histogram.Part': 'COUNT MIN MAX MEAN P50 P90 P99',
  'pipeline.Metric.Role': 'CREATED CONSUMED DROP INTENDED OVERFLOW HELD',
  'pipeline.Metric.Port.Side': 'INPUT OUTPUT',
}
