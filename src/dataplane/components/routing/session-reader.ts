/** session_reader: follows the newest session of a session_writer and announces it with a RESET. */
import { Type } from '@sinclair/typebox'
import { defineComponent } from '../../engine/component.ts'
import { counter, drop } from '../../engine/metrics.ts'
import { Input, Output } from '../../engine/schema.ts'
import { SESSION_BYTES } from './session-writer.ts'

/** Sessions remembered that were followed before the present one. */
const MAX_FORMER_SESSIONS = 16

/** Which session is followed; an id is 64 bits in two words. */
class Sessions {
  private known = false
  private high = 0
  private low = 0
  private readonly former = new Int32Array(MAX_FORMER_SESSIONS * 2)
  private count = 0

  isCurrent(high: number, low: number): boolean {
    return this.known && high === this.high && low === this.low
  }

  /** Follows a session that is not the current one; false when it was followed before. */
  enter(high: number, low: number): boolean {
    const { former } = this
    const remembered = Math.min(this.count, MAX_FORMER_SESSIONS) * 2
    for (let i = 0; i < remembered; i += 2) if (former[i] === high && former[i + 1] === low) return false
    if (this.known) {
      const at = (this.count++ % MAX_FORMER_SESSIONS) * 2
      former[at] = this.high
      former[at + 1] = this.low
    }
    this.known = true
    this.high = high
    this.low = low
    return true
  }
}

export const sessionReader = defineComponent({
  key: 'session_reader',
  family: 'routing',
  summary: 'Takes the session id of a session_writer off every packet and drops what an earlier session sent.',
  details:
    'A session never seen becomes the one that is followed, and a RESET goes ahead of its first packet, so that decoders behind forget ' +
    `what the earlier run of the sender left with them. The last ${MAX_FORMER_SESSIONS} sessions are remembered: what still comes of them is dropped. It is made for ` +
    'one sender: two that send at the same time would be told for two sessions, and the first dropped. Ids prove nothing: where packets ' +
    'may be forged, put an authenticating component around it.',
  config: Type.Object({ input: Input(), output: Output() }),
  metrics: {
    sessions: counter('Sessions that were followed, the present one included.', 'sessions'),
    stale_session_packets: drop('Packets dropped because they are of a session that was followed before.'),
    malformed_packets: drop('Packets dropped because they are too short for a session id.'),
  },
  alters: true,
  create(_config, { packets, outlets, metrics }) {
    const sessions = new Sessions()
    const { output } = outlets
    return {
      input({ handles, length }) {
        const { view } = packets
        for (let i = 0; i < length; i++) {
          const packet = handles[i]
          if (packets.length[packet] < SESSION_BYTES) {
            packets.release(packet)
            metrics.malformed_packets.add(1)
            continue
          }
          const at = packets.trimFront(packet, SESSION_BYTES)
          const high = view.getInt32(at)
          const low = view.getInt32(at + 4)
          if (!sessions.isCurrent(high, low)) {
            if (!sessions.enter(high, low)) {
              packets.release(packet)
              metrics.stale_session_packets.add(1)
              continue
            }
            metrics.sessions.add(1)
            output.notify('RESET')
          }
          output.push(packet)
        }
        output.flush()
      },
    }
  },
})
