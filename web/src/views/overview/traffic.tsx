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
        <Sparkline values={bits} span={MAX_POINTS} least={1} colour="--accent" label="Throughput of the last minute" />
        <span className="number">{bitRateText(last.bits)}</span>
      </span>
      <span className="figure">
        <Sparkline values={loss} span={MAX_POINTS} least={0.01} colour="--bad" label="Loss of the last minute" />
        <span className="number">{shareText(last.loss)} lost</span>
      </span>
    </span>
  )
}
