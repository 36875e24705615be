/** One pipeline: how it is and what can be done with it, and tabs that show its graph, its figures, its log. */
import type { Pipeline } from '@penstock/client'
import { useEffect, useMemo, useState } from 'react'
import { hashOf } from '../../app/routes.ts'
import { readConfiguration } from '../../data/configuration.ts'
import { configSchema } from '../../data/documents.ts'
import { kpiDefinitions } from '../../data/kpi-definitions.ts'
import { useLive } from '../../data/live.ts'
import { pipelinesOf } from '../../data/pipelines.ts'
import { defineKpis, runMetricsOf } from '../../data/run-metrics.ts'
import { seenRuns } from '../../data/seen-runs.ts'
import { NodeLost } from '../../parts/connection-lost.tsx'
import { Failure } from '../../parts/failure.tsx'
import { nameText } from '../../parts/format.ts'
import { Nothing } from '../../parts/nothing.tsx'
import { useTitle } from '../../parts/use-title.ts'
import { GoneHead, PipelineHead } from './pipeline-head.tsx'
import type { TabProps } from './tab-props.ts'
import { tabsOf } from './tabs.ts'
import './pipeline.css'

interface Props {
  readonly nodeId: string
  readonly pipelineId: string
  readonly tab: string | undefined
}

export default function PipelineView({ nodeId, pipelineId, tab }: Props) {
  const { value, status, error } = useLive(pipelinesOf(nodeId))
  const found = value.get(pipelineId)
  /** What is shown stays, with what is typed into it, whatever becomes of the stream and the pipeline. */
  const [pipeline, setPipeline] = useState(found)
  if (found !== undefined && found !== pipeline) setPipeline(found)
  useTitle(pipeline && nameText(pipeline.name))
  if (pipeline === undefined) {
    if (status === 'failed' && error !== undefined) {
      return (
        <Nothing title="No pipeline">
          <Failure error={error} title="The pipeline is not known" />
        </Nothing>
      )
    }
    if (status === 'opening') return <p className="quiet">Loading…</p>
    // Whether there is one is not known while the node is away.
    if (status === 'lost') return <NodeLost nodeId={nodeId} />
    return (
      <Nothing title="No pipeline">
        <p>There is no such pipeline on this node.</p>
      </Nothing>
    )
  }
  const isGone = status === 'live' && found === undefined
  return (
    <>
      <NodeLost nodeId={nodeId} />
      {isGone ? (
        <GoneHead nodeId={nodeId} name={pipeline.name} />
      ) : (
        <PipelineHead nodeId={nodeId} pipeline={pipeline} />
      )}
      <Tabs nodeId={nodeId} pipeline={pipeline} isGone={isGone} chosen={tab} />
    </>
  )
}

interface TabsProps {
  readonly nodeId: string
  readonly pipeline: Pipeline
  readonly isGone: boolean
  readonly chosen: string | undefined
}

function Tabs({ nodeId, pipeline, isGone, chosen }: TabsProps) {
  const { value: schema, status, error } = useLive(configSchema)
  const configuration = useMemo(
    () => (schema === undefined ? undefined : readConfiguration(pipeline.jsonConfig, schema)),
    [pipeline.jsonConfig, schema],
  )
  if (configuration === undefined) {
    if (status === 'failed' && error !== undefined) return <Failure error={error} title="Components are not known" />
    return <p className="quiet">Loading…</p>
  }
  const { id, currentRun } = pipeline
  const runs = seenRuns(pipeline)
  const props: TabProps = { nodeId, pipeline, isGone, configuration, runId: currentRun?.id, runs }
  const tabs = tabsOf(props)
  const open = chosen === undefined ? tabs[0] : tabs.find((tab) => tab.id === chosen)
  return (
    <>
      <nav className="tabs" aria-label="Of this pipeline">
        {tabs.map((tab, i) => (
          <a
            key={tab.id}
            href={hashOf({ view: 'pipeline', nodeId, pipelineId: id, ...(i > 0 && { tab: tab.id }) })}
            aria-current={tab === open ? 'page' : undefined}
          >
            {tab.title}
          </a>
        ))}
      </nav>
      {currentRun !== undefined && <Watch nodeId={nodeId} runId={currentRun.id} jsonConfig={pipeline.jsonConfig} />}
      {open === undefined ? <p>This pipeline has nothing to show there.</p> : <open.View key={open.id} {...props} />}
    </>
  )
}

interface WatchProps {
  readonly nodeId: string
  readonly runId: string
  readonly jsonConfig: string
}

/** Follows the run's numbers whatever tab is open, so that curves have no holes. */
function Watch({ nodeId, runId, jsonConfig }: WatchProps) {
  useLive(runMetricsOf(nodeId, runId))
  useEffect(() => defineKpis(nodeId, runId, kpiDefinitions(jsonConfig)), [nodeId, runId, jsonConfig])
  return null
}
