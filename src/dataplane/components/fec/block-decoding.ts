/** A running decoder of a block code: what the components of each such code do. */
import type { Batch } from '../../engine/batch.ts'
import type { Notification } from '../../engine/flow.ts'
import type { Gauge } from '../../engine/metrics.ts'
import type { Outlet } from '../../engine/outlet.ts'
import type { Packets } from '../../engine/packets.ts'
import type { BlockDecoderCounters } from './block-counters.ts'
import { BlockDecoder } from './block-decoder.ts'
import { type BlockFormat, BlockHeaders } from './block-header.ts'
import type { BlockRecovery } from './block-recovery.ts'

interface DecodingContext {
  readonly packets: Packets
  readonly outlets: { readonly output: Outlet }
  readonly metrics: BlockDecoderCounters & { readonly measured_loss: Gauge; readonly followed_sessions: Gauge }
  memory(): number
}

/** A decoder of packets of this format, of at most `sessions` encoders at once, and the instance of its component, from its input to its output. */
export function blockDecoding(
  { packets, outlets, metrics, memory }: DecodingContext,
  format: BlockFormat,
  Recovery: new (packets: Packets, memory: number, format: BlockFormat) => BlockRecovery,
  sessions: number,
) {
  const headers = new BlockHeaders(memory(), format)
  const recovery = new Recovery(packets, memory(), format)
  const decoder = new BlockDecoder(packets, outlets.output, metrics, headers, recovery, sessions)
  const instance = {
    input: (batch: Batch) => decoder.input(batch),
    notify(notification: Notification) {
      if (notification === 'RESET') decoder.reset()
      outlets.output.notify(notification)
    },
    observe() {
      metrics.measured_loss.set(decoder.loss)
      metrics.followed_sessions.set(decoder.followed)
    },
    kept: () => decoder.kept,
    stop: () => decoder.stop(),
  }
  return { decoder, instance }
}
