/** JSON Schemas (2020-12) of what each command prints with `-o json`, by what is typed to call it; docs/output has them as files. */
import { type TSchema, Type } from '@sinclair/typebox'
import type { JsonSchema } from '../contract/json-schema.ts'
import {
  closed,
  configuration,
  count,
  definitionOf,
  definitionsOf,
  kpis,
  maybe,
  message,
  metrics,
  outcome,
  real,
  text,
} from './output-schema-parts.ts'
import { advice, simulated, sweepRow } from './output-schemas-simulate.ts'

export interface OutputSchema {
  /** Whether it prints one value, or a line for each of several. */
  form: 'value' | 'lines'
  /** With which options it is otherwise, and how. */
  otherwise?: string | undefined
  /** Messages of the API are references below `#/$defs/`. */
  schema: JsonSchema
}

const PIPELINE = message('pipeline.Pipeline')
const NODE = message('hub.Node')
const TOKEN = message('hub.Token')
const REQUEST = message('hub.AuthenticationByRequestRequest')

const value = (schema: JsonSchema, otherwise?: string): OutputSchema => ({ form: 'value', schema, otherwise })
const lines = (schema: JsonSchema, otherwise?: string): OutputSchema => ({ form: 'lines', schema, otherwise })
const WATCHED = 'with `--watch` a line each'
const either = (...anyOf: JsonSchema[]): JsonSchema => ({ anyOf })
const list = (items: JsonSchema): JsonSchema => ({ type: 'array', items })

const id = Type.Object({ id: text }, closed)
const nextRun = Type.Object({ nextRun: Type.Object({ id: text, startedAt: maybe(text) }, closed) }, closed)

const component = Type.Object(
  {
    ...{ key: text, family: text, summary: text, details: maybe(text) },
    fields: Type.Array(
      Type.Object(
        {
          ...{ name: text, type: text, unit: text, range: text, default: text },
          ...{ required: Type.Boolean(), live: Type.Boolean(), description: text },
        },
        closed,
      ),
    ),
    metrics: Type.Array(Type.Object({ name: text, kind: text, unit: text, help: text, role: text }, closed)),
    schema: Type.Object({}, { description: 'JSON Schema of the configuration of the component.' }),
  },
  closed,
)

const problem = Type.Object(
  { pointer: text, message: text, component: maybe(text), line: maybe(count), column: maybe(count) },
  closed,
)
const verdict = value(
  Type.Object({ valid: Type.Boolean(), problems: Type.Array(problem), warnings: Type.Array(problem) }, closed),
)

const direction = Type.Object({ delayMs: Type.Union([real, Type.Null()]) }, { additionalProperties: real })
const step = Type.Record(text, Type.Unknown())
const link = Type.Object({ up: Type.Array(step), down: Type.Array(step) }, closed)
const readings = { seconds: real, up: direction, down: direction }
const impair = either(
  Type.Object(
    {
      ...{ state: Type.Literal('READY'), listen: text, listenHost: text, listenPort: count },
      ...{ forward: text, forwardHost: text, forwardPort: count, link },
    },
    closed,
  ),
  Type.Object({ state: Type.Literal('RUNNING'), ...readings }, closed),
  Type.Object(
    { state: Type.Literal('ENDED'), outcome, error: maybe(text), exitCode: maybe(count), ...readings },
    closed,
  ),
  Type.Array(
    Type.Object({ name: text, description: text, source: text, up: Type.Array(step), down: Type.Array(step) }, closed),
  ),
  configuration,
)

const drop = Type.Object(
  {
    ...{ component: text, metric: text, perSecond: maybe(real), total: real },
    reason: Type.Union([Type.Literal('drop'), Type.Literal('overflow'), Type.Literal('intended')]),
  },
  closed,
)
const runStatus = Type.Object(
  {
    ...{ pipeline: text, name: text, run: text, startedAt: maybe(text), seconds: maybe(real) },
    busy: maybe(real),
    state: Type.Union(['STARTING', 'RUNNING', 'STOPPING', 'ENDED'].map((each) => Type.Literal(each))),
    ...{ enteredPerSecond: maybe(real), finishedPerSecond: maybe(real), droppedPerSecond: maybe(real) },
    ...{ bitsPerSecond: maybe(real), held: maybe(real), drops: maybe(Type.Array(drop)) },
  },
  closed,
)

const failed = Type.Array(Type.Object({ id: text, name: text, run: maybe(text), error: maybe(text) }, closed))
const counts = { pipelines: maybe(count), running: maybe(count), failed: maybe(failed) }
const noAnswer = Type.Object({ code: text, message: text }, closed)

/** With --all-nodes: of each node what it answers, or why it does not. */
const ofNodes = (answer: Record<string, TSchema>): JsonSchema =>
  Type.Array(Type.Object({ id: text, name: text, error: maybe(noAnswer), ...answer }, closed))

const applied = Type.Object(
  {
    ...{ name: text, id: maybe(text), file: maybe(text), started: Type.Boolean(), runId: maybe(text) },
    result: Type.Union(['created', 'updated', 'unchanged', 'deleted', 'refused'].map((each) => Type.Literal(each))),
    changes: maybe(Type.Unsafe(message('pipeline.ExplainUpdateResponse'))),
    ...{ error: maybe(text), problems: maybe(Type.Array(problem)) },
  },
  closed,
)
const pipelines = Type.Array(applied)
const appliedToOne = Type.Object({ node: text, dryRun: Type.Boolean(), pipelines }, closed)
const appliedToSeveral = Type.Object(
  {
    dryRun: Type.Boolean(),
    nodes: Type.Array(Type.Object({ id: text, name: text, pipelines, error: maybe(noAnswer) }, closed)),
  },
  { ...closed, description: 'With --all-nodes, and with --node given several times.' },
)

const givenConfiguration = {
  type: 'object',
  description: 'With --config: the configuration by itself, as it was given.',
  anyOf: [{ required: ['engine_config'] }, { required: ['engineConfig'] }],
}

const exported = Type.Object(
  {
    pipelines: Type.Array(
      Type.Object(
        {
          ...{ name: text, restartPolicy: text, startupPolicy: text, defaultLoggingLevel: text },
          ...{ instructionsTimeout: count, cpuPin: maybe(count), performanceMode: Type.Boolean() },
          ...{ nodeReferenceId: maybe(text), config: Type.Object({}) },
        },
        closed,
      ),
    ),
  },
  closed,
)

const status = Type.Object(
  {
    ...{ url: text, fingerprint: maybe(text), nodeId: text, node: text, name: text, isAuthenticated: Type.Boolean() },
    state: Type.Union(['UNAUTHENTICATED', 'DISCONNECTED', 'CONNECTED'].map((each) => Type.Literal(each))),
    servers: maybe(Type.Array(Type.Object({ id: text, name: text, online: Type.Boolean() }, closed))),
    ...{ hub: maybe(text), nodes: maybe(count), nodesOnline: maybe(count), pipelines: count, running: count, failed },
  },
  closed,
)

const { properties, required, ...token } = definitionOf('Token')
const tokenWithSecret = {
  ...token,
  properties: { ...(properties as object), secret: text },
  required: [...(required as string[]), 'secret'],
}

const answered = list(Type.Object({ requestId: text, accepted: maybe(Type.Boolean()), error: maybe(text) }, closed))

export const OUTPUT_SCHEMAS: Readonly<Record<string, OutputSchema>> = {
  run: value(Type.Object({ outcome, error: maybe(text), seconds: real, kpis: maybe(kpis), metrics }, closed)),
  simulate: value(
    either(
      Type.Object(simulated, closed),
      Type.Object({ runs: Type.Array(Type.Object({ file: text, ...simulated }, closed)) }, closed),
      sweepRow,
    ),
    'in a sweep (`--set` of several values, `--repeat`, `--metric`, `--kpi`) a line each',
  ),
  'fec advise': value(advice),
  schema: value(Type.Object({ $schema: text, $defs: Type.Object({}) })),
  impair: lines(impair, 'with `--list` and `--print` one value'),
  validate: verdict,
  components: value(
    either(Type.Array(Type.Object({ key: text, family: text, summary: text }, closed)), component, configuration),
  ),
  'pipelines list': value(
    either(
      list(PIPELINE),
      message('pipeline.StreamPipelinesEvent'),
      ofNodes({ pipelines: maybe(Type.Array(Type.Unsafe(PIPELINE))) }),
    ),
    WATCHED,
  ),
  'pipelines get': value(either(PIPELINE, givenConfiguration)),
  'pipelines create': value(PIPELINE),
  'pipelines validate': verdict,
  'pipelines update': value(either(PIPELINE, message('pipeline.ExplainUpdateResponse'))),
  'pipelines set': value(PIPELINE),
  'pipelines apply': value(either(appliedToOne, appliedToSeveral)),
  'pipelines export': value(exported),
  'pipelines delete': value(id),
  'pipelines start': value(
    Type.Object({ runId: text }, closed),
    'with `--follow` the lines of `pipelines logs` come after it',
  ),
  'pipelines stop': value(Type.Object({}, closed)),
  'pipelines logs': lines(either(message('logging.Message'), nextRun)),
  'pipelines telemetry': lines(
    either(
      Type.Object({ timestamp: text, kpis, metrics }, closed),
      Type.Object({ outcome, error: maybe(text), seconds: real, kpis, metrics }, closed),
      nextRun,
    ),
  ),
  'pipelines tap': lines(
    either(
      Type.Object({ time: text, link: text, length: count, data: text }, closed),
      Type.Object({ captured: count, dropped: count }, closed),
    ),
    'with `--write` of a file one value',
  ),
  top: lines(Type.Object({ timestamp: text, node: text, runs: Type.Array(runStatus) }, closed)),
  status: value(either(status, ofNodes(counts))),
  'nodes list': value(either(list(NODE), message('hub.StreamNodesResponse')), WATCHED),
  'nodes set': value(NODE),
  'nodes remove': value(id),
  'authenticate-by-request': value(
    Type.Object({ nodeId: text, hubServerAddress: text, hubNodeId: maybe(text), hubName: maybe(text) }, closed),
  ),
  disconnect: value(Type.Object({ left: Type.Boolean() }, closed)),
  'authentication-requests list': value(list(REQUEST)),
  'authentication-requests approve': value(answered),
  'authentication-requests reject': value(answered),
  'token create': value(tokenWithSecret),
  'token list': value(list(TOKEN)),
  'token revoke': value(Type.Object({ name: text }, closed)),
  'hub export': value(Type.Object({ file: text, hubId: text, members: count }, closed)),
  'hub import': value(
    Type.Object(
      {
        ...{ file: text, hubId: text, members: count },
        pipelines: Type.Array(Type.Object({ id: text, name: text, node: text }, closed)),
      },
      closed,
    ),
  ),
  'hub key create': value(Type.Object({ file: text, hubId: text }, closed)),
  'hub key show': value(Type.Object({ file: text, hubId: text }, closed)),
  'hub key adopt': value(
    Type.Object(
      { file: text, hubId: text, nodeId: text, pipelines: Type.Array(Type.Object({ id: text, name: text }, closed)) },
      closed,
    ),
  ),
  'config check': value(Type.Array(Type.Object({ key: text, value: maybe(Type.Unknown()), origin: text }, closed))),
  demo: value(
    Type.Object(
      {
        ...{ sent: count, entered: count, left: count, lost: count, recovered: count, unrecovered: count },
        ...{ delivered: count, missing: Type.Integer(), duplicate: count, corrupt: count },
      },
      closed,
    ),
  ),
  doctor: value(
    Type.Array(
      Type.Object(
        {
          ...{ check: text, found: text, advice: maybe(text) },
          grade: Type.Union([Type.Literal('ok'), Type.Literal('warn'), Type.Literal('fail')]),
        },
        closed,
      ),
    ),
  ),
  version: value(Type.Object({ penstock: text, node: text, platform: text }, closed)),
}

/** The whole JSON Schema of what the command at `path` prints, each line of it where there are several values. */
export function documentOf(path: string): JsonSchema {
  const { form, schema, otherwise } = OUTPUT_SCHEMAS[path] as OutputSchema
  const $defs = definitionsOf(schema)
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title: `penstock ${path} -o json`,
    $comment: `${form === 'lines' ? 'Each line of the output' : 'The output'}${otherwise === undefined ? '' : `; ${otherwise.replaceAll('`', '')}`}.`,
    ...schema,
    ...(Object.keys($defs).length > 0 && { $defs }),
  }
}
