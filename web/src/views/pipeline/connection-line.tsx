/** A connection in the graph, with the packets and bits per second that pass it. */
import { BaseEdge, EdgeLabelRenderer, type EdgeProps, getBezierPath, getSmoothStepPath, Position } from '@xyflow/react'
import type { End } from '../../data/configuration.ts'
import { useLive } from '../../data/live.ts'
import type { PortRate } from '../../data/rates.ts'
import { runMetricsOf } from '../../data/run-metrics.ts'
import { bitRateText } from '../../parts/format.ts'
import { perSecondText } from '../../parts/quantity.ts'

interface Data {
  readonly nodeId: string
  readonly runId: string
  readonly from: End
}

const NOTHING: PortRate = { packets: 0, bits: 0 }

export function ConnectionLine(props: EdgeProps) {
  const { runId } = props.data as unknown as Data
  return runId === '' ? <Line {...props} rate={undefined} /> : <Measured {...props} />
}

function Measured(props: EdgeProps) {
  const { nodeId, runId, from } = props.data as unknown as Data
  const { sample, rates } = useLive(runMetricsOf(nodeId, runId)).value
  const rate = rates.get(from.component)?.ports.get(from.port) ?? NOTHING
  return <Line {...props} rate={sample === undefined ? undefined : rate} />
}

function Line({ id, rate, ...ends }: EdgeProps & { readonly rate: PortRate | undefined }) {
  // One that goes on in the next row takes the way between the rows.
  const isBack = ends.sourcePosition === Position.Right && ends.targetX < ends.sourceX
  const [path, x, y] = isBack ? getSmoothStepPath(ends) : getBezierPath(ends)
  const isFlowing = rate !== undefined && rate.packets > 0
  // A line for kilobits is thin, one for gigabits thick.
  const width = isFlowing ? Math.min(5, 1.5 + Math.log10(1 + rate.bits / 1e5)) : 1.5
  return (
    <>
      <BaseEdge id={id} path={path} className={isFlowing ? 'flowing' : 'still'} style={{ strokeWidth: width }} />
      {rate !== undefined && (
        <EdgeLabelRenderer>
          <div
            className={isFlowing ? 'rate' : 'rate still'}
            style={{ transform: `translate(-50%, -50%) translate(${x}px, ${y}px)` }}
            title={id}
          >
            {isFlowing ? (
              <>
                <b>{bitRateText(rate.bits)}</b>
                <span>{perSecondText(rate.packets)} packets/s</span>
              </>
            ) : (
              'nothing'
            )}
          </div>
        </EdgeLabelRenderer>
      )}
    </>
  )
}
