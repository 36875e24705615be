/** One pipeline: its state, its run's metrics and log as they come. */
import { hashOf } from '../../app/routes.ts'
import { useLive } from '../../data/live.ts'
import { logOf } from '../../data/logs.ts'
import { pipelinesOf } from '../../data/pipelines.ts'
import { telemetryOf } from '../../data/telemetry.ts'
import { Badge } from '../../parts/badge.tsx'
import { Failure } from '../../parts/failure.tsx'
import { stateOf } from '../../parts/pipeline-state.ts'
import Configuration from '../configuration/configuration.tsx'

interface Props {
  readonly nodeId: string
  readonly pipelineId: string
}

export default function PipelineView({ nodeId, pipelineId }: Props) {
  const { value, status, error } = useLive(pipelinesOf(nodeId))
  const pipeline = value.get(pipelineId)
  if (status === 'failed' && error !== undefined) return <Failure error={error} title="The pipeline is not known" />
  if (status === 'opening') return <p className="quiet">Loading…</p>
  if (pipeline === undefined) return <p>There is no such pipeline on this node.</p>
  const [tone, text] = stateOf(pipeline)
  return (
    <>
      <h1>{pipeline.name}</h1>
      <p>
        <Badge tone={tone}>{text}</Badge> <a href={hashOf({ view: 'editor', nodeId, pipelineId })}>Edit</a>
      </p>
      <Configuration nodeId={nodeId} pipeline={pipeline} />
      {pipeline.currentRun !== undefined && <Run nodeId={nodeId} runId={pipeline.currentRun.id} />}
    </>
  )
}

function Run({ nodeId, runId }: { readonly nodeId: string; readonly runId: string }) {
  const samples = useLive(telemetryOf(nodeId, runId)).value
  const { value: lines } = useLive(logOf(nodeId, runId))
  return (
    <>
      <section className="card" aria-label="Metrics">
        <h2>Metrics</h2>
        {samples.at(-1)?.metricCollections.map(({ path, metrics }) => (
          <details key={path}>
            <summary>{path}</summary>
            <dl>
              {Object.entries(metrics).map(
                ([name, { doubleValue, int64Value, uint64Value, boolValue, stringValue, unit }]) => (
                  <div key={name}>
                    <dt>{name}</dt>
                    <dd>
                      {String(doubleValue ?? int64Value ?? uint64Value ?? boolValue ?? stringValue ?? '')} {unit}
                    </dd>
                  </div>
                ),
              )}
            </dl>
          </details>
        ))}
      </section>
      <section className="card" aria-label="Log">
        <h2>Log</h2>
        <pre className="log">
          {lines.map(({ timestamp, level, component, message }) => `${timestamp} ${level} ${component} ${message}\n`)}
        </pre>
      </section>
    </>
  )
}
