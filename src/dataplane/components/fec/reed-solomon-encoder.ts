/** reed_solomon_encoder: sends packets on in blocks of `symbols` and adds `repair` repair packets to each block. */
import { type Static, Type } from '@sinclair/typebox'
import { MAX_SYMBOLS } from '../../codes/cauchy.ts'
import { defineComponent } from '../../engine/component.ts'
import { counter, created, drop } from '../../engine/metrics.ts'
import { Input, Int32, Output } from '../../engine/schema.ts'
import { BlockEncoder } from './block-encoder.ts'
import { BLOCK_HEADER_BYTES } from './block-header.ts'

const config = Type.Object({
  input: Input(),
  output: Output(),
  symbols: Int32('Source packets of a block (k).', { minimum: 1, maximum: MAX_SYMBOLS, unit: 'packets' }),
  repair: Int32('Repair packets of a block (r), k + r at most 255.', {
    minimum: 0,
    maximum: MAX_SYMBOLS - 1,
    unit: 'packets',
  }),
})

export const reedSolomonEncoder = defineComponent({
  key: 'reed_solomon_encoder',
  family: 'fec',
  summary: 'Adds repair packets, so that any k packets of a block give back all of its k source packets.',
  details:
    'Systematic: source packets leave at once, 14 bytes longer; after the k-th follow the r repair packets, 14 bytes longer than the ' +
    'longest payload of the block. Keep payloads at least 14 bytes below the MTU of what follows. A block stays open until k packets ' +
    'have come: flows with pauses want a FLUSH (see notification_injector), which closes it early with all r repairs.',
  config,
  metrics: {
    source_packets: counter('Source packets sent on.', 'packets'),
    repair_packets: created('Repair packets sent.'),
    no_room_packets: drop('Packets that had no room for the header.'),
    unsent_repair_packets: counter('Repair packets not made because no packet slot was free.', 'packets'),
    unprotected_packets: counter('Source packets left without repairs because no packet slot was free.', 'packets'),
  },
  check({ symbols, repair }: Static<typeof config>) {
    if (symbols + repair <= MAX_SYMBOLS) return []
    const sum = `symbols + repair is ${symbols + repair}, more than the ${MAX_SYMBOLS} that a block can have`
    return [{ pointer: '/repair', message: sum }]
  },
  alters: true,
  room: () => ({ front: BLOCK_HEADER_BYTES, back: 0 }),
  create({ symbols, repair }, { packets, outlets, metrics, memory, entropy }) {
    const [a, b, c] = entropy(3)
    const encoder = new BlockEncoder(packets, memory(), outlets.output, metrics, {
      k: symbols,
      r: repair,
      session: (a << 16) | (b << 8) | c,
      block: 0,
    })
    return {
      input: (batch) => encoder.input(batch),
      notify(notification) {
        if (notification === 'FLUSH') encoder.flush()
        outlets.output.notify(notification)
      },
      kept: () => encoder.kept,
      stop: () => encoder.stop(),
    }
  },
})
