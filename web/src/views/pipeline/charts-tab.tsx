/** The KPIs of the configuration, and any metric over the last ten minutes. */
import { useState } from 'react'
import { type History, MAX_SERIES, metricKey } from '../../data/history.ts'
import { useLive } from '../../data/live.ts'
import { runMetricsOf } from '../../data/run-metrics.ts'
import { CURVES } from '../../parts/chart-data.ts'
import { TimeChart } from '../../parts/time-chart.tsx'
import { KpiCard } from './kpi-card.tsx'
import { type ChosenMetric, rateUnit } from './metric-choice.ts'
import { MetricPicker } from './metric-picker.tsx'
import type { TabProps } from './tab-props.ts'
import './charts.css'

/** The charts of each pipeline, kept while the page is open. */
const charts = new Map<string, readonly ChosenMetric[]>()

export function ChartsTab({ nodeId, pipeline, runId }: TabProps) {
  if (runId === undefined) return <p className="quiet">It was never started: there is nothing to draw yet.</p>
  return <Charts nodeId={nodeId} runId={runId} pipelineId={pipeline.id} />
}

interface ChartsProps {
  readonly nodeId: string
  readonly runId: string
  readonly pipelineId: string
}

function Charts({ nodeId, runId, pipelineId }: ChartsProps) {
  const { value, status } = useLive(runMetricsOf(nodeId, runId))
  const [chosen, setChosen] = useState(charts.get(pipelineId) ?? [])
  const choose = (next: readonly ChosenMetric[]): void => {
    charts.set(pipelineId, next)
    setChosen(next)
  }
  const { sample, history } = value
  if (sample === undefined) {
    return <p className="quiet">{status === 'failed' ? 'The figures of the last run are not kept.' : 'Measuring…'}</p>
  }
  return (
    <>
      {sample.kpis.length > 0 && (
        <div className="kpis">
          {sample.kpis.map((kpi) => (
            <KpiCard key={kpi.id} kpi={kpi} history={history} />
          ))}
        </div>
      )}
      <section aria-label="Metrics over time">
        <MetricPicker sample={sample} chosen={chosen} onAdd={(metric) => choose([...chosen, metric])} />
        {chosen.length === 0 && sample.kpis.length === 0 && (
          <p className="quiet">Choose a metric above to see it over time. The configuration has no KPIs.</p>
        )}
        <div className="kpis">
          {chosen.map((metric) => (
            <MetricCard
              key={metricKey(metric.path, metric.name)}
              metric={metric}
              history={history}
              onClose={() => choose(chosen.filter((each) => each !== metric))}
            />
          ))}
        </div>
      </section>
    </>
  )
}

interface CardProps {
  readonly metric: ChosenMetric
  readonly history: History
  readonly onClose: () => void
}

function MetricCard({ metric, history, onClose }: CardProps) {
  const { path, name, unit, isCounter, description } = metric
  const [isRate, setRate] = useState(isCounter)
  const key = metricKey(path, name)
  const values = isRate ? history.rates(key) : history.values(key)
  const isBits = isRate && unit === 'bytes'
  const drawn = isBits ? values.map((value) => (value === undefined ? undefined : value * 8)) : values
  return (
    <section className="card kpi span-2" aria-label={`${path} ${name}`}>
      <header>
        <h2>
          <span className="quiet">{path}</span> {name}
        </h2>
        {isCounter && (
          <label className="switch small">
            <input type="checkbox" checked={isRate} onChange={(event) => setRate(event.target.checked)} /> per second
          </label>
        )}
        <button
          type="button"
          className="button plain icon"
          aria-label={`Remove the chart of ${name}`}
          onClick={onClose}
        >
          ×
        </button>
      </header>
      <p className="quiet small">{description}</p>
      {values.every((value) => value === undefined) && history.times().length > 2 ? (
        <p className="quiet small">There is no curve: of a run, {MAX_SERIES} metrics at most are kept.</p>
      ) : (
        <TimeChart
          label={`${path} ${name}`}
          times={history.times()}
          curves={[{ label: isRate ? 'per second' : 'value', colour: CURVES[0], values: drawn }]}
          unit={isRate ? rateUnit(unit) : unit}
        />
      )}
    </section>
  )
}
