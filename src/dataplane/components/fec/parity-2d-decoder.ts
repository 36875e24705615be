/** parity_2d_decoder: passes on the source packets of a parity_2d_encoder and recovers missing ones. */
import { Type } from '@sinclair/typebox'
import { defineComponent } from '../../engine/component.ts'
import { Input, Output } from '../../engine/schema.ts'
import { blockDecoderMetrics } from './block-metrics.ts'
import { ParityDecoder } from './parity-decoder.ts'

export const parity2dDecoder = defineComponent({
  key: 'parity_2d_decoder',
  family: 'fec',
  summary: 'Recovers lost packets of a parity_2d_encoder from its parity packets.',
  details:
    'Sources are passed on as they come, recovered packets as soon as a row or column lacks one packet and its parity is there, so out of order; ' +
    'what is recovered in a row may leave one missing in a column, and so on. Rows and columns come with the packets. A block is given up when ' +
    'it is some 1,000 packets behind the newest (at least 4 blocks), or when the blocks kept take a quarter of the packet slots of the run; ' +
    'a block takes as many slots as it has rows and columns.\n\n' +
    'Each start of an encoder is a session of its own, whatever address it sends from, and up to 64 are followed side by side. When that many ' +
    'are known, a session that has sent nothing while a newcomer sent 8 packets gives way to it, the one silent longest. The sources of sessions ' +
    'that are not followed are passed on as they come, and nothing of them is recovered (unfollowed_packets).\n\n' +
    'A parity packet that contradicts the sources that came is dropped (malformed_packets), and every source that comes is passed on, once. A ' +
    'forged parity that contradicts nothing yet makes a forged packet nevertheless (wrong_recoveries counts those that their source gave away ' +
    'later): where packets may be forged, put an authenticating component around the code.',
  config: Type.Object({ input: Input(), output: Output() }),
  metrics: blockDecoderMetrics('a parity_2d_encoder'),
  alters: true,
  create(_config, { packets, outlets, metrics, memory }) {
    const decoder = new ParityDecoder(packets, memory(), outlets.output, metrics)
    return {
      input: (batch) => decoder.input(batch),
      notify(notification) {
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
  },
})
