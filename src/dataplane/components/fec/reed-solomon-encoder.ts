/** reed_solomon_encoder: sends packets on in blocks of `symbols` and adds `repair` repair packets to each block. */
import { type Static, Type } from '@sinclair/typebox'
import { MAX_SYMBOLS } from '../../codes/cauchy.ts'
import { NS_PER_MS } from '../../engine/clock.ts'
import { defineComponent } from '../../engine/component.ts'
import { Input, Int32, Optional, Output, Uint32 } from '../../engine/schema.ts'
import { BlockEncoder } from './block-encoder.ts'
import { headerBytes, LENGTH_BYTES, REED_SOLOMON } from './block-header.ts'
import { blockEncoderMetrics } from './block-metrics.ts'
import { CauchyRepairs } from './repair-maker.ts'

const config = Type.Object({
  input: Input(),
  output: Output(),
  symbols: Int32('Source packets of a block (k).', { minimum: 1, maximum: MAX_SYMBOLS, unit: 'packets' }),
  repair: Int32('Repair packets of a block (r), k + r at most 255.', {
    minimum: 0,
    maximum: MAX_SYMBOLS - 1,
    unit: 'packets',
  }),
  flush_after_ms: Optional(
    Uint32('Silence after which an unfinished block is closed with its repair packets; unset or 0: never.', {
      unit: 'ms',
    }),
  ),
})

export const reedSolomonEncoder = defineComponent({
  key: 'reed_solomon_encoder',
  family: 'fec',
  summary: 'Adds repair packets, so that any k packets of a block give back all of its k source packets.',
  details:
    'Systematic: source packets leave at once, 14 bytes longer; after the k-th follow the r repair packets, 14 bytes longer than the ' +
    'longest payload of the block. Keep payloads at least 14 bytes below the MTU of what follows.\n\n' +
    'A block stays open until k packets have come, and a lost packet is recovered only then: with pauses in the flow that may be seconds. ' +
    'flush_after_ms closes a block early, with all r repairs, when nothing has come for that long, and so does a FLUSH. ' +
    'It costs what it saves in time: a packet that comes alone is sent with r repairs, 200 % more packets with repair 2, and more than that ' +
    'with more. A flow that pauses less than flush_after_ms between packets pays nothing. 8 ms suits tunnels that carry calls or shells.',
  config,
  metrics: blockEncoderMetrics,
  check({ symbols, repair }: Static<typeof config>) {
    if (symbols + repair <= MAX_SYMBOLS) return []
    const sum = `symbols + repair is ${symbols + repair}, more than the ${MAX_SYMBOLS} that a block can have`
    return [{ pointer: '/repair', message: sum }]
  },
  live: ['flush_after_ms'],
  alters: true,
  room: () => ({ front: headerBytes(REED_SOLOMON), back: 0 }),
  computesFrom: -LENGTH_BYTES,
  create({ symbols, repair, flush_after_ms }, context) {
    const { outlets, metrics } = context
    const [a, b, c] = context.entropy(3)
    const maker = new CauchyRepairs(context.memory(), symbols, repair)
    const encoder = new BlockEncoder(context, outlets.output, metrics, maker, {
      format: REED_SOLOMON,
      schedule: [{ sources: symbols, repairs: repair }],
      session: (a << 16) | (b << 8) | c,
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
