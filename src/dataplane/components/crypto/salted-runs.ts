/** Takes apart batches of packets that begin with salt and counter: what shares a salt, one after the other, shares a key. */
import { BATCH_CAPACITY } from '../../engine/batch.ts'
import type { ComponentContext } from '../../engine/component.ts'
import type { Receiver } from '../../engine/flow.ts'
import type { Counter } from '../../engine/metrics.ts'
import type { Outlet } from '../../engine/outlet.ts'

/**
 * Opens the first `count` of `run`, which all have the salt (`high`, `low`); leaves those to pass on in front, in order, has released and
 * counted the others, and returns how many pass on.
 */
export type OpenRun = (run: Int32Array, count: number, high: number, low: number) => number

/** Hands the packets of every batch to `open`, salt by salt, and sends on what it leaves; shorter ones than `least` are malformed. */
export function saltedRuns(
  { packets }: Pick<ComponentContext<never, never>, 'packets'>,
  outlet: Outlet,
  least: number,
  malformed: Counter,
  open: OpenRun,
): Receiver {
  const run = new Int32Array(BATCH_CAPACITY)
  const openInto = (count: number, high: number, low: number, handles: Int32Array, at: number): number => {
    const kept = open(run, count, high, low)
    for (let i = 0; i < kept; i++) handles[at + i] = run[i]
    return at + kept
  }
  return (batch) => {
    const { handles, length } = batch
    const { view, offset } = packets
    let kept = 0
    let count = 0
    let high = 0
    let low = 0
    for (let i = 0; i < length; i++) {
      const packet = handles[i]
      if (packets.length[packet] < least) {
        packets.release(packet)
        malformed.add(1)
        continue
      }
      const at = offset[packet]
      const packetHigh = view.getInt32(at)
      const packetLow = view.getInt32(at + 4)
      if (count > 0 && (packetHigh !== high || packetLow !== low)) {
        kept = openInto(count, high, low, handles, kept)
        count = 0
      }
      high = packetHigh
      low = packetLow
      run[count++] = packet
    }
    if (count > 0) kept = openInto(count, high, low, handles, kept)
    batch.length = kept
    outlet.send(batch)
  }
}
