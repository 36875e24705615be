/** rlnc_encoder: sends packets on in blocks of `symbols` and adds `repair` random linear combinations of each block. */
import { Type } from '@sinclair/typebox'
import { NS_PER_MS } from '../../engine/clock.ts'
import { defineComponent } from '../../engine/component.ts'
import { Input, Int32, Optional, Output, Uint32 } from '../../engine/schema.ts'
import { BlockEncoder } from './block-encoder.ts'
import { headerBytes, LENGTH_BYTES, MAX_BLOCK, RLNC } from './block-header.ts'
import { blockEncoderMetrics } from './block-metrics.ts'
import { RandomRepairs } from './repair-maker.ts'

export const rlncEncoder = defineComponent({
  key: 'rlnc_encoder',
  family: 'fec',
  summary:
    'Adds random linear combinations of a block as repair packets: as many of them as packets are lost nearly always give those back.',
  details:
    'Systematic: source packets leave at once, 14 bytes longer; after the last of a block follow the repair packets, 18 bytes longer than the ' +
    'longest payload of the block. Keep payloads at least 18 bytes below the MTU of what follows.\n\n' +
    'Coefficients are drawn at random from 256 values, for each repair packet anew. As many repair packets as source packets are missing ' +
    'are enough in 99.6 % of all cases, one more in 99.998 %. There may be up to 255 of both, where Reed-Solomon has 255 together.\n\n' +
    'flush_after_ms closes a block early, with all its repair packets, when nothing has come for that long, and so does a FLUSH. ' +
    'It costs what it saves in time: a packet that comes alone is sent with `repair` repair packets.',
  config: Type.Object({
    input: Input(),
    output: Output(),
    symbols: Int32('Source packets of a block.', { minimum: 1, maximum: MAX_BLOCK, unit: 'packets' }),
    repair: Int32('Repair packets of a block.', { minimum: 1, maximum: MAX_BLOCK, unit: 'packets' }),
    flush_after_ms: Optional(
      Uint32('Silence after which an unfinished block is closed with its repair packets; unset or 0: never.', {
        unit: 'ms',
      }),
    ),
  }),
  metrics: blockEncoderMetrics,
  live: ['flush_after_ms'],
  alters: true,
  room: () => ({ front: headerBytes(RLNC), back: 0 }),
  computesFrom: -LENGTH_BYTES,
  create({ symbols, repair, flush_after_ms }, context) {
    const { outlets, metrics, entropy } = context
    const random = new DataView(entropy(7).slice().buffer)
    const schedule = [{ sources: symbols, repairs: repair }]
    const maker = new RandomRepairs(context.memory(), random.getInt32(3))
    const encoder = new BlockEncoder(context, outlets.output, metrics, maker, {
      format: RLNC,
      schedule,
      session: random.getUint32(0) >>> 8,
      silence: (flush_after_ms ?? 0) * NS_PER_MS,
      age: 0,
    })
    return {
      input: (batch) => encoder.input(batch),
      notify(notification) {
        if (notification === 'FLUSH') encoder.flush()
        outlets.output.notify(notification)
      },
      reconfigure: (next) => encoder.closeAfter((next.flush_after_ms ?? 0) * NS_PER_MS, 0),
      kept: () => encoder.kept,
      stop: () => encoder.stop(),
    }
  },
})
