/** Components for tests of the engine in real threads: they misbehave on request, fill the slab, watch the timers, take their time. */
import { Type } from '@sinclair/typebox'

/** More than may be logged in the seconds that they take, also on a loaded machine. */
const MANY_LINES = 100_000

const port = (kind) => Type.String({ port: kind, proto: 'string', minLength: 1 })

/**
 * Passes packets on with `mark` as their last byte. '!' as the first byte makes it throw, '.' ends the run, '-' ends it with
 * an error, '*' with a FATAL line behind many others, '?' never comes back, '%' ends the thread, '#' has it log more than a run may in a
 * second, and go on. The marks above 253 are not taken by one that runs; 255 not even given back.
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
  create(config, { packets, outlets, end, log }) {
    let { mark } = config
    let isBroken = false
    if (config.throw_at_start) throw new Error('refused to start')
    return {
      input(batch) {
        for (let i = 0; i < batch.length; i++) {
          const packet = batch.handles[i]
          const first = String.fromCharCode(packets.data[packets.offset[packet]])
          if (first === '!') throw new Error('told to throw')
          if (first === '.') end()
          if (first === '-') end(new Error('told to end'))
          if (first === '*') {
            for (let line = 0; line < 1200; line++) log('DEBUG', 'told to say too much')
            log('FATAL', 'told to end with a FATAL line')
          }
          if (first === '#') for (let line = 0; line < MANY_LINES; line++) log('DEBUG', 'told to say far too much')
          if (first === '%') process.exit(7)
          while (first === '?');
          packets.data[packets.offset[packet] + packets.length[packet] - 1] = mark
        }
        outlets.output.send(batch)
      },
      reconfigure(next) {
        if (isBroken || next.mark > 253) {
          isBroken = next.mark === 255
          mark = 0
          throw new Error(`mark ${next.mark} is not taken`)
        }
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

/** Has a timer that is due every millisecond, and looks at the end of every breath whether it was fired when it was due. */
const ticker = {
  key: 'test_ticker',
  family: 'trackers',
  summary: 'Watches the timers.',
  config: Type.Object({}),
  metrics: {
    ticks: { type: 'counter', unit: '', help: 'Times the timer fired.' },
    passed_over: { type: 'counter', unit: '', help: 'Breaths that ended with the timer due and not fired.' },
  },
  create(_config, { clock, timer, metrics }) {
    const tick = timer(() => {
      metrics.ticks.add(1)
      tick.at(clock.now + 1e6)
    })
    tick.at(clock.now)
    return {
      flush() {
        if (tick.due <= clock.now) metrics.passed_over.add(1)
      },
    }
  },
}

/** Says `lines` lines every millisecond, numbered from 0. */
const chatter = {
  key: 'test_chatter',
  family: 'trackers',
  summary: 'Talks.',
  config: Type.Object({ lines: Type.Integer({ proto: 'u32' }) }),
  metrics: { said: { type: 'counter', unit: '', help: 'Lines said.' } },
  create({ lines }, { clock, timer, metrics, log }) {
    const tick = timer(() => {
      for (let line = 0; line < lines; line++) {
        log('INFO', `${metrics.said.value}`, { line: metrics.said.value })
        metrics.said.add(1)
      }
      tick.at(clock.now + 1e6)
    })
    tick.at(clock.now)
    return {}
  },
}

/** Takes its time over every batch, and before the run begins. */
const slow = {
  key: 'test_slow',
  family: 'trackers',
  summary: 'Takes its time.',
  config: Type.Object({
    input: port('input'),
    output: port('output'),
    milliseconds: Type.Integer({ proto: 'u32' }),
    start_milliseconds: Type.Integer({ proto: 'u32', default: 0 }),
  }),
  metrics: {},
  passes: true,
  create({ milliseconds, start_milliseconds }, { outlets }) {
    spend(start_milliseconds)
    return {
      input(batch) {
        spend(milliseconds)
        outlets.output.send(batch)
      },
    }
  },
}

function spend(milliseconds) {
  const end = performance.now() + milliseconds
  while (performance.now() < end);
}

/** Writes into the log, when the run ends, the sequence numbers of the probes that came, `total` bits. */
const attendance = {
  key: 'test_attendance',
  family: 'trackers',
  summary: 'Says which probes came.',
  config: Type.Object({ input: port('input'), total: Type.Integer({ proto: 'u32' }) }),
  metrics: { came: { type: 'counter', unit: 'packets', help: 'Packets that came.', role: 'consumed' } },
  create({ total }, { packets, metrics, log }) {
    const came = new Uint8Array(total)
    const view = new DataView(packets.data.buffer, packets.data.byteOffset)
    return {
      input(batch) {
        for (let i = 0; i < batch.length; i++) came[view.getUint32(packets.offset[batch.handles[i]] + 12)] = 1
        metrics.came.add(batch.length)
        packets.releaseAll(batch)
      },
      stop: () => log('INFO', 'probes that came', { came: came.join('') }),
    }
  },
}

export default [chatter, trigger, hoard, ticker, slow, attendance]
