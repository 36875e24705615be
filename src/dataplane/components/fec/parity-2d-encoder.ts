/** parity_2d_encoder: sends packets on in blocks of rows and columns, and adds the parity of each. */
import { Type } from '@sinclair/typebox'
import { NS_PER_MS } from '../../engine/clock.ts'
import { defineComponent } from '../../engine/component.ts'
import { Input, Int32, Optional, Output, Uint32 } from '../../engine/schema.ts'
import { blockEncoderMetrics } from './block-metrics.ts'
import { ParityEncoder } from './parity-encoder.ts'
import { MAX_GRID, MIN_GRID, PARITY_HEADER_BYTES } from './parity-header.ts'

export const parity2dEncoder = defineComponent({
  key: 'parity_2d_encoder',
  family: 'fec',
  summary:
    'Adds parity packets over the rows and the columns of a block, which repair scattered losses and bursts at little cost.',
  details:
    'Systematic: source packets leave at once, 16 bytes longer, and fill a block row by row. The parity of a row, the exclusive or of its packets, ' +
    'follows its last one, those of the columns follow the last row; each is 16 bytes longer than the longest payload of its line. Keep payloads ' +
    'at least 16 bytes below the MTU of what follows.\n\n' +
    'One lost packet of a row is back as soon as the row has ended. A burst of up to `columns` packets is one packet of each column, so it is ' +
    'back when the block has ended. Of the packets sent, rows + columns for each rows × columns are parities.\n\n' +
    'flush_after_ms closes a block early, with the parities of what is there, when nothing has come for that long, and so does a FLUSH. A packet ' +
    'that comes alone is sent with two parities.',
  config: Type.Object({
    input: Input(),
    output: Output(),
    columns: Int32('Source packets of a row.', { minimum: MIN_GRID, maximum: MAX_GRID, unit: 'packets' }),
    rows: Int32('Source packets of a column.', { minimum: MIN_GRID, maximum: MAX_GRID, unit: 'packets' }),
    flush_after_ms: Optional(
      Uint32('Silence after which an unfinished block is closed with its parity packets; unset or 0: never.', {
        unit: 'ms',
      }),
    ),
  }),
  metrics: blockEncoderMetrics,
  live: ['flush_after_ms'],
  alters: true,
  room: () => ({ front: PARITY_HEADER_BYTES, back: 0 }),
  create({ columns, rows, flush_after_ms }, context) {
    const { outlets, metrics, entropy } = context
    const [a, b, c] = entropy(3)
    const encoder = new ParityEncoder(context, outlets.output, metrics, {
      columns,
      rows,
      session: (a << 16) | (b << 8) | c,
      silence: (flush_after_ms ?? 0) * NS_PER_MS,
    })
    return {
      input: (batch) => encoder.input(batch),
      notify(notification) {
        if (notification === 'FLUSH') encoder.flush()
        outlets.output.notify(notification)
      },
      reconfigure: (next) => encoder.closeAfter((next.flush_after_ms ?? 0) * NS_PER_MS),
      kept: () => encoder.kept,
      stop: () => encoder.stop(),
    }
  },
})
