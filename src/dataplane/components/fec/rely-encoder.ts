/** rely_encoder: sends packets on with a number and, at the rate asked for, repair packets over the window of the newest. */
import { type Static, Type } from '@sinclair/typebox'
import { MAX_WINDOW } from '../../codes/sliding-window.ts'
import { NS_PER_MS } from '../../engine/clock.ts'
import { defineComponent } from '../../engine/component.ts'
import { counter, created, drop } from '../../engine/metrics.ts'
import { Double, Input, Int32, Int32Milliseconds, Optional, Output, Uint32 } from '../../engine/schema.ts'
import { REPAIR_HEADER_BYTES, SOURCE_HEADER_BYTES } from './rely-header.ts'
import { MAX_RATE, RelySender, type RelySettings, TOGETHER } from './rely-sender.ts'

const DEFAULT_WINDOW_MS = 100
const DEFAULT_MAX_PAYLOADS = 1024

const config = Type.Object({
  input: Input(),
  output: Output(),
  timeout: Int32Milliseconds('Age at which a packet leaves the window for good; 0: that of repair_time_window.', {
    default: 0,
  }),
  max_payloads: Int32(`Most packets that a repair packet covers, the newest; 0: ${DEFAULT_MAX_PAYLOADS}.`, {
    minimum: 0,
    maximum: MAX_WINDOW,
    unit: 'packets',
    default: 0,
  }),
  repair_time_window: Int32Milliseconds(
    `Age up to which a repair packet covers packets, where timeout is not less; 0: ${DEFAULT_WINDOW_MS}.`,
    { default: 0 },
  ),
  repair_target_rate: Double('Repair packets per source packet; 0: none.', {
    minimum: 0,
    maximum: MAX_RATE,
    hint: '0.1 is 10 %',
  }),
  flush_after_ms: Optional(
    Uint32('Silence after which packets that no repair packet covers yet get one; unset or 0: never.', { unit: 'ms' }),
  ),
})

function settingsOf(fields: Static<typeof config>): RelySettings {
  const window = fields.repair_time_window || DEFAULT_WINDOW_MS
  return {
    span: Math.min(window, fields.timeout || window) * NS_PER_MS,
    window: fields.max_payloads || DEFAULT_MAX_PAYLOADS,
    rate: fields.repair_target_rate,
    flushAfter: (fields.flush_after_ms ?? 0) * NS_PER_MS,
  }
}

export const relyEncoder = defineComponent({
  key: 'rely_encoder',
  family: 'fec',
  summary: 'Adds repair packets over a sliding window of the newest packets.',
  details:
    `Systematic: source packets leave at once, ${SOURCE_HEADER_BYTES} bytes longer. Each adds repair_target_rate to a credit, and when that has come to 1 a ` +
    `repair packet follows, ${REPAIR_HEADER_BYTES} bytes longer than the longest payload that it covers: the packets younger than ` +
    'repair_time_window and timeout, the newest max_payloads of them. Keep payloads at least 14 bytes below the MTU of what follows.\n\n' +
    'Any repair packet mends any loss in its window (but for one in 256, as the coefficients are random), so a lost packet waits for about as many repair ' +
    'packets as packets are missing, not for the end of a block: with a loss well below repair_target_rate that is a few packets. A window longer ' +
    'than the longest burst of losses over repair_target_rate is long enough; a longer one costs computing time in proportion.\n\n' +
    `Where ${TOGETHER} source packets or more come at once, the repair packets of each ${TOGETHER} follow these together, so that packets of one length leave in ` +
    'one piece.\n\n' +
    'Repair packets come with source packets: the last packets before a pause may be without one until the flow goes on. flush_after_ms sends one ' +
    'after that silence, and so does a FLUSH.',
  config,
  metrics: {
    source_packets: counter('Source packets sent on.', 'packets'),
    repair_packets: created('Repair packets sent.'),
    no_room_packets: drop('Packets that had no room for the header.'),
    unsent_repair_packets: counter('Repair packets not made because no packet slot was free.', 'packets'),
  },
  live: ['timeout', 'max_payloads', 'repair_time_window', 'repair_target_rate', 'flush_after_ms'],
  alters: true,
  room: () => ({ front: REPAIR_HEADER_BYTES, back: 0 }),
  create(fields, context) {
    const { outlets, metrics } = context
    const [a, b, c] = context.entropy(3)
    const sender = new RelySender(context, outlets.output, metrics, (a << 16) | (b << 8) | c, settingsOf(fields))
    return {
      input: (batch) => sender.input(batch),
      notify(notification) {
        if (notification === 'FLUSH') sender.flush()
        outlets.output.notify(notification)
      },
      active: () => sender.waits,
      reconfigure: (next) => sender.reconfigure(settingsOf(next)),
      stop: () => sender.stop(),
    }
  },
})
