/** A running decoder of a random linear block code: what the components of each such code do. */
import type { Batch } from '../../engine/batch.ts'
import type { Notification } from '../../engine/flow.ts'
import type { Gauge } from '../../engine/metrics.ts'
import type { Outlet } from '../../engine/outlet.ts'
import type { Packets } from '../../engine/packets.ts'
import { MAX_SENDERS } from '../shared/senders.ts'
import type { BlockDecoderCounters } from './block-counters.ts'
import type { Kinds } from './combination-header.ts'
import { LinearBlockDecoder } from './linear-block-decoder.ts'

interface DecodingContext {
  readonly packets: Packets
  readonly outlets: { readonly output: Outlet }
  readonly metrics: BlockDecoderCounters & { readonly measured_loss: Gauge; readonly followed_sessions: Gauge }
  memory(): number
}

/** The instance of a component that decodes packets of these kinds from its input to its output. */
export function linearBlockDecoding({ packets, outlets, metrics, memory }: DecodingContext, kinds: Kinds) {
  const decoder = new LinearBlockDecoder(packets, memory(), outlets.output, metrics, kinds, MAX_SENDERS)
  return {
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
}
