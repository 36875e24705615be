/** kodok_encoder: sends packets on in blocks and adds repair packets at several points of a block, over all of it so far. */
import { type Static, Type } from '@sinclair/typebox'
import { NS_PER_MS } from '../../engine/clock.ts'
import { defineComponent, type Fault } from '../../engine/component.ts'
import { Input, Int32, Int32Milliseconds, List, Optional, Output } from '../../engine/schema.ts'
import { BlockEncoder } from './block-encoder.ts'
import { headerBytes, KODOK, LENGTH_BYTES, MAX_BLOCK } from './block-header.ts'
import { blockEncoderMetrics } from './block-metrics.ts'
import { RandomRepairs } from './repair-maker.ts'

const config = Type.Object({
  input: Input(),
  output: Output(),
  repair_configs: List(
    Type.Object({
      source_packets: Int32('Source packets of the block after which repair packets follow.', {
        minimum: 1,
        maximum: MAX_BLOCK,
        unit: 'packets',
      }),
      repair_packets: Int32('Repair packets made then, over all source packets of the block so far.', {
        minimum: 0,
        maximum: MAX_BLOCK,
        unit: 'packets',
      }),
    }),
    'Where in a block repair packets are made, with rising source_packets; the last ends the block. At most 255 repair packets in all.',
    { minItems: 1 },
  ),
  timeout: Optional(
    Int32Milliseconds('Time after its first packet at which an unfinished block is closed; unset or 0: never.'),
  ),
})

export const kodokEncoder = defineComponent({
  key: 'kodok_encoder',
  family: 'fec',
  summary:
    'Adds repair packets at several points of a block: early ones for short delay, later ones for what those could not repair.',
  details:
    'Systematic: source packets leave at once, 14 bytes longer. When as many source packets of a block have come as an entry of repair_configs ' +
    'says, its repair packets follow, 18 bytes longer than the longest payload of the block so far, each a random linear combination of all ' +
    'packets of the block so far; the last entry ends the block. Keep payloads at least 18 bytes below the MTU of what follows.\n\n' +
    'A loss early in the block is repaired at the next entry, and repair packets that were not needed there help no more; those of later entries ' +
    'repair what is still missing anywhere in the block.\n\n' +
    'timeout closes a block that long after its first packet, with the repair packets of the next entry if a source packet has come since the ' +
    'last ones. So does a FLUSH.',
  config,
  metrics: blockEncoderMetrics,
  live: ['timeout'],
  alters: true,
  room: () => ({ front: headerBytes(KODOK), back: 0 }),
  computesFrom: -LENGTH_BYTES,
  check({ repair_configs }: Static<typeof config>) {
    const faults: Fault[] = []
    let repairs = 0
    repair_configs.forEach(({ source_packets, repair_packets }, n) => {
      const before = n === 0 ? 0 : repair_configs[n - 1].source_packets
      if (source_packets <= before) {
        const message = `source_packets is ${source_packets} after ${before}: they count from the block's start, so each must be larger than the one before`
        faults.push({ pointer: `/repair_configs/${n}/source_packets`, message })
      }
      repairs += repair_packets
      if (repairs > MAX_BLOCK && repairs - repair_packets <= MAX_BLOCK) {
        const message = `with these ${repair_packets} a block has ${repairs} repair packets, more than ${MAX_BLOCK}: make fewer`
        faults.push({ pointer: `/repair_configs/${n}/repair_packets`, message })
      }
    })
    return faults
  },
  create({ repair_configs, timeout }, context) {
    const { outlets, metrics, entropy } = context
    const random = new DataView(entropy(7).slice().buffer)
    const schedule = repair_configs.map((point) => ({ sources: point.source_packets, repairs: point.repair_packets }))
    const maker = new RandomRepairs(context.memory(), random.getInt32(3))
    const encoder = new BlockEncoder(context, outlets.output, metrics, maker, {
      format: KODOK,
      schedule,
      session: random.getUint32(0) >>> 8,
      silence: 0,
      age: (timeout ?? 0) * NS_PER_MS,
    })
    return {
      input: (batch) => encoder.input(batch),
      notify(notification) {
        if (notification === 'FLUSH') encoder.flush()
        outlets.output.notify(notification)
      },
      reconfigure: (next) => encoder.closeAfter(0, (next.timeout ?? 0) * NS_PER_MS),
      kept: () => encoder.kept,
      stop: () => encoder.stop(),
    }
  },
})
