/** Examples of the published documents: parameters, bodies, answers. A test holds them against the schemas. */
import { type Code, codeNumbers } from '../../contract/errors.ts'
import type { OperationName } from '../../contract/handlers.ts'

const NODE_ID = 'q5nxcmoywvnjkhgdnw5l7kunnq'
const PIPELINE_ID = '3VsGFFq2VhNTYMTtmziG4'
const RUN_ID = 'Ouh3cz3X0zKyBOjL_6e9I'

const CONFIG = {
  engine_config: {
    pipeline: {
      source: { uniform_traffic_source: { output: 'packets', total_packets: 1000, interval: 10 } },
      sink: { traffic_sink: { input: 'packets' } },
    },
  },
}

const node = {
  id: NODE_ID,
  name: 'edge',
  metadata: { items: { region: { stringValue: 'eu' } } },
  online: true,
  services: ['PIPELINES'],
  lastSeen: '2026-11-22T10:00:00.000Z',
}
const run = { id: RUN_ID, state: 'RUNNING', startedAt: '2026-11-22T10:00:00.000Z', cpu: 1 }
const settings = {
  name: 'first',
  jsonConfig: JSON.stringify(CONFIG),
  restartPolicy: { onFailure: { maxRestarts: 5 } },
  startupPolicy: { auto: {} },
}
const pipeline = {
  id: PIPELINE_ID,
  ...settings,
  defaultLoggingLevel: 'INFO',
  instructionsTimeout: 30,
  performanceMode: false,
  started: true,
  currentRun: run,
}
const request = { node, requestId: '7' }
const token = { name: 'dashboard', createdAt: '2026-11-22T10:00:00.000Z' }
const change = { pointer: '/engine_config/pipeline/source', reason: 'COMPONENT_ADDED', message: 'the component is new' }

const PARAMETERS: Readonly<Record<string, unknown>> = {
  nodeId: NODE_ID,
  id: PIPELINE_ID,
  runId: RUN_ID,
  name: 'first',
  component: 'sink',
  'options.lines': '100',
}

const BODIES: Partial<Record<OperationName, unknown>> = {
  getNodes: { metadataFilters: { region: { stringValue: 'eu' } }, serviceFilters: ['PIPELINES'] },
  streamNodes: { serviceFilters: ['HUB_SERVER'] },
  createToken: { name: 'dashboard' },
  setNode: { name: 'edge', metadata: node.metadata },
  authenticateByRequest: { hubServerAddress: 'https://hub.example:8769' },
  disconnect: {},
  createPipeline: settings,
  validatePipeline: settings,
  updatePipeline: { ...settings, defaultLoggingLevel: 'INFO', instructionsTimeout: 30, forceRestart: true },
  explainUpdate: { ...settings, defaultLoggingLevel: 'INFO', instructionsTimeout: 30 },
}

const ANSWERS: Readonly<Record<OperationName, unknown>> = {
  getNodes: { nodes: [node] },
  removeNode: {},
  streamNodes: { initialResponse: { nodes: [node] } },
  authenticationByRequests: request,
  getPendingAuthenticationRequests: { requests: [request] },
  createToken: { token, secret: 'penstock_…' },
  getTokens: { tokens: [token] },
  revokeToken: {},
  getLocalNodeId: { nodeId: NODE_ID, isAuthenticated: true },
  getNode: { node },
  setNode: { node },
  authenticateByRequest: {},
  disconnect: {},
  streamConnectionState: { state: 'CONNECTED' },
  getPipelines: { pipelines: [pipeline] },
  getPipelineById: { pipeline },
  getPipelineByName: { pipeline },
  getPipelineByRunId: { pipeline, run },
  createPipeline: { pipeline },
  updatePipeline: { pipeline },
  validatePipeline: {
    valid: false,
    problems: [{ pointer: '/engine_config/pipeline/sink', message: 'unknown component "trafic_sink".' }],
    warnings: [],
  },
  explainUpdate: { running: true, live: [], restart: [change] },
  deletePipeline: {},
  startPipeline: { runId: RUN_ID },
  stopPipeline: {},
  streamPipelines: { update: { pipeline } },
  openLogStream: {
    messages: [
      {
        timestamp: '2026-11-22T10:00:00.000Z',
        level: 'STATE',
        component: '',
        message: 'running',
        fields: { runId: RUN_ID },
      },
    ],
  },
  openTelemetryStream: {
    metricCollections: [
      {
        path: 'sink',
        metrics: {
          packets: { uint64Value: '1000', kind: 'COUNTER', unit: 'packets', description: 'Packets received.' },
        },
      },
    ],
    kpis: [{ id: 'rate', label: 'Rate', description: '', value: { value: 1.5, unit: 'Mbit/s' } }],
    timestamp: '2026-11-22T10:00:00.000Z',
  },
  openCaptureStream: {
    packets: [{ time: '1795341600000000000', length: 3, data: 'AAEC', link: 0 }],
    dropped: '0',
    links: [],
  },
}

/** Of a parameter in a path or a query, by its name. */
export function parameterExample(name: string): unknown {
  return PARAMETERS[name]
}

/** Of the body of an operation, without the fields in its path. */
export function bodyExample(operation: OperationName): unknown {
  return BODIES[operation]
}

/** Of an answer, or of a message of a stream. */
export function answerExample(operation: OperationName): unknown {
  return ANSWERS[operation]
}

const MESSAGES: Partial<Record<Code, string>> = {
  INVALID_ARGUMENT: '/name: must not be empty',
  NOT_FOUND: `this node has no pipeline ${PIPELINE_ID}`,
  UNAUTHENTICATED: 'callers from another machine need `Authorization: Bearer TOKEN`',
}

/** Of the answer to a call that failed. */
export function errorExample(code: Code): unknown {
  const message = MESSAGES[code] ?? 'what was wrong and what to do about it'
  const violation = { field: '/name', description: 'must not be empty' }
  const details =
    code === 'INVALID_ARGUMENT'
      ? [{ '@type': 'type.googleapis.com/google.rpc.BadRequest', fieldViolations: [violation] }]
      : []
  return { code: codeNumbers[code], message, details }
}
