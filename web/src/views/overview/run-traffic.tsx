/** What a run carries and loses: two numbers and their last minute. */
import { useMemo } from 'react'
import { useLive } from '../../data/live.ts'
import { trafficOf } from '../../data/telemetry.ts'
import { MAX_POINTS } from '../../data/traffic.ts'
import { bitRateText, shareText } from '../../parts/format.ts'
import { Sparkline } from '../../parts/sparkline.tsx'

export function RunTraffic({ nodeId, runId }: { readonly nodeId: string; readonly runId: string }) {
  const { points } = useLive(trafficOf(nodeId, runId)).value
  const bits = useMemo(() => points.map((point) => point.bits), [points])
  const loss = useMemo(() => points.map((point) => point.loss), [points])
  const last = points.at(-1)
  if (last === undefined) return <span className="traffic quiet small">measuring…</span>
  return (
    <span className="traffic">
      <span className="figure">
        <Sparkline values={bits} span={MAX_POINTS} least={1} label="Throughput of the last minute" />
        <span className="number" title="On the busiest connection">
          {bitRateText(last.bits)}
        </span>
      </span>
      <span className="figure">
        <Sparkline values={loss} span={MAX_POINTS} least={0.01} isBad label="Loss of the last minute" />
        <span className="number" title="Of the packets that ended in the last two seconds, dropped by any component">
          {shareText(last.loss)} lost
        </span>
      </span>
    </span>
  )
}
