/** Components for tests of the engine in real threads: one that misbehaves on request, one that fills the slab. */
import { Type } from '@sinclair/typebox'

const port = (kind) => Type.String({ port: kind, proto: 'string', minLength: 1 })

/**
 * Passes packets on with `mark` as their last byte. '!' as the first byte makes it throw, '.' ends the run, '-' ends it with
 * an error, '?' never comes back, '%' ends the thread.
 */
const trigger = {
  key: 'test_trigger',
  family: 'routing',
  summary: 'Misbehaves when told so.',
  config: Type.Object({
    input: port('input'),
    output: port('output'),
    mark: Type.Integer({ proto: 'u32', default: 0 }),
    throw_at_start: Type.Boolean({ proto: 'bool', default: false }),
    throw_at_stop: Type.Boolean({ proto: 'bool', default: false }),
  }),
  metrics: {},
  live: ['mark'],
  create(config, { packets, outlets, end }) {
    let { mark } = config
    if (config.throw_at_start) throw new Error('refused to start')
    return {
      input(batch) {
        for (let i = 0; i < batch.length; i++) {
          const packet = batch.handles[i]
          const first = String.fromCharCode(packets.data[packets.offset[packet]])
          if (first === '!') throw new Error('told to throw')
          if (first === '.') end()
          if (first === '-') end(new Error('told to end'))
          if (first === '%') process.exit(7)
          while (first === '?');
          packets.data[packets.offset[packet] + packets.length[packet] - 1] = mark
        }
        outlets.output.send(batch)
      },
      reconfigure(next) {
        mark = next.mark
      },
      stop() {
        if (config.throw_at_stop) throw new Error('refused to stop')
      },
    }
  },
}

/** Holds `count` packets, every byte of them written, until the run stops. */
const hoard = {
  key: 'test_hoard',
  family: 'sources',
  summary: 'Holds packets.',
  config: Type.Object({ output: port('output'), count: Type.Integer({ proto: 'u32' }) }),
  metrics: {
    created_packets: { type: 'counter', unit: 'packets', help: 'Packets made.', role: 'created' },
    dropped_packets: { type: 'counter', unit: 'packets', help: 'Packets given back.', role: 'drop' },
    held_packets: { type: 'gauge', unit: 'packets', help: 'Packets held.', role: 'held' },
  },
  create({ count }, { packets, metrics }) {
    const held = new Int32Array(count)
    for (let i = 0; i < count; i++) {
      held[i] = packets.allocate()
      const at = packets.append(held[i], 1472)
      packets.data.fill(i, at, at + 1472)
    }
    metrics.created_packets.add(count)
    return {
      observe: () => metrics.held_packets.set(held.length - metrics.dropped_packets.value),
      stop() {
        for (const packet of held) packets.release(packet)
        metrics.dropped_packets.add(count)
      },
    }
  },
}

export default [trigger, hoard]
