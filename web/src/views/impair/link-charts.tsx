/** What a link carries and loses now, beside what it is set to. */
import type { Link } from '../../data/emulation.ts'
import { figuresOf } from '../../data/link-figures.ts'
import { useLive } from '../../data/live.ts'
import { runMetricsOf } from '../../data/run-metrics.ts'
import { CURVES } from '../../parts/chart-data.ts'
import { TimeChart } from '../../parts/time-chart.tsx'

interface Props {
  readonly nodeId: string
  readonly runId: string
  readonly link: Link
}

export function LinkCharts({ nodeId, runId, link }: Props) {
  const { sample, history } = useLive(runMetricsOf(nodeId, runId)).value
  if (sample === undefined) return <p className="quiet small">Measuring…</p>
  const { times, bits, loss } = figuresOf(link, sample, history)
  return (
    <div className="link-charts">
      <TimeChart
        label="Throughput"
        times={times}
        curves={[{ label: 'Throughput', colour: CURVES[0], values: bits }]}
        unit="bit/s"
        height={130}
      />
      <TimeChart
        label="Loss"
        times={times}
        curves={[{ label: 'Loss', colour: CURVES[1], values: loss }]}
        unit="fraction"
        height={130}
        least={0.01}
      />
    </div>
  )
}
