/** rely_decoder: passes on the source packets of a rely_encoder and recovers missing ones. */
import { type Static, Type } from '@sinclair/typebox'
import { NS_PER_MS } from '../../engine/clock.ts'
import { defineComponent } from '../../engine/component.ts'
import { consumed, counter, created, drop, gauge, held, heldAtEnd } from '../../engine/metrics.ts'
import { Bool, Input, Int32Milliseconds, Output } from '../../engine/schema.ts'
import { MAX_LEAP } from './rely-leap.ts'
import { RelyReceiver, type RelyReceiverSettings } from './rely-receiver.ts'
import { MAX_SESSIONS } from './rely-sessions.ts'

const DEFAULT_TIMEOUT_MS = 200

const config = Type.Object({
  input: Input(),
  output: Output(),
  timeout: Int32Milliseconds(
    `How long a missing packet is waited for after a later one came; 0: ${DEFAULT_TIMEOUT_MS}.`,
    { default: 0 },
  ),
  release_in_order: Bool('Whether a packet waits for those before it, until they are recovered or given up.', {
    default: false,
  }),
})

function settingsOf({ timeout, release_in_order: inOrder }: Static<typeof config>): RelyReceiverSettings {
  return { timeout: (timeout || DEFAULT_TIMEOUT_MS) * NS_PER_MS, inOrder }
}

export const relyDecoder = defineComponent({
  key: 'rely_decoder',
  family: 'fec',
  summary: 'Recovers lost packets of a rely_encoder from its repair packets.',
  details:
    'Sources are passed on as they come and recovered packets as soon as the repair packets determine them, so out of order; with release_in_order each ' +
    'packet waits for those before it. A missing packet is given up `timeout` after a later one came, or when 4,096 are missing, the oldest first; with release_in_order also ' +
    'when a quarter of the packet slots of the run waits, of the session with the most of them. ' +
    'A timeout well below the window of the encoder gives up what a repair packet would still recover.\n\n' +
    `Each start of an encoder is a session of its own, whatever address it sends from, and up to ${MAX_SESSIONS} are followed side by side. When that many are ` +
    'known, a session that has sent nothing while a newcomer sent 8 packets gives way to it, the one silent longest. The sources of sessions that are not ' +
    'followed are passed on as they come, and nothing of them is recovered (unfollowed_packets). So are packets more than 4,096 ahead of all others, until 8 in ' +
    `a row are, near each other: after such an outage what it cost counts as given up. A packet that leaves out more than ${MAX_LEAP} is followed at once, but ` +
    'what it leaves out is not given up before 8 have come there: one alone may be damaged or made up, and is forgotten when the others go on where they were.\n\n' +
    'A repair packet that contradicts the sources that came, or whose result does, is dropped (malformed_packets), and every source that comes in time is passed ' +
    'on, once, whatever repairs said of it before. A forged repair that contradicts nothing yet makes a forged packet nevertheless (wrong_recoveries counts ' +
    'those that their source gave away later): where packets may be forged, put an authenticating component around the code.',
  config,
  metrics: {
    recovered_packets: created('Lost packets recovered.'),
    unrecovered_packets: counter('Source packets given up, those that an outage cost among them.', 'packets'),
    late_packets: drop('Packets that came after they had been recovered or given up.'),
    duplicate_packets: drop('Packets that had come before.'),
    wrong_recoveries: counter(
      'Packets recovered with a repair that, as their source showed when it came, was wrong.',
      'packets',
    ),
    replaced_packets: drop('Packets recovered wrongly that still waited for their turn when their source came.'),
    used_repair_packets: consumed('Repair packets that said something new.'),
    redundant_packets: consumed('Repair packets over packets that were all there, or that others had determined.'),
    unusable_repair_packets: consumed('Repair packets over packets too far behind or ahead of those that came.'),
    malformed_packets: drop('Packets that are none of a rely_encoder, and repair packets that contradict what came.'),
    unfollowed_packets: counter('Source packets passed on of sessions that there was no place to follow.', 'packets'),
    unfollowed_repair_packets: consumed(
      'Repair packets of such sessions, or of one that is under way, before its first source packet came.',
    ),
    followed_sessions: gauge('Sessions followed.', 'sessions'),
    no_slot_packets: counter('Recovered packets that were lost because no packet slot was free.', 'packets'),
    held_packets: held('Packets that wait for those before them.'),
    held_at_end_packets: heldAtEnd(),
    measured_loss: gauge(
      'Share of source packets lost on the way here, over about the last 10,000; a missing one counts once timeout is over.',
      'ratio',
    ),
  },
  live: ['timeout', 'release_in_order'],
  alters: true,
  create(fields, context) {
    const { outlets, metrics } = context
    const receiver = new RelyReceiver(context, outlets.output, metrics, settingsOf(fields))
    return {
      input: (batch) => receiver.input(batch),
      notify(notification) {
        if (notification === 'RESET') receiver.reset()
        outlets.output.notify(notification)
      },
      observe() {
        receiver.observe()
        metrics.measured_loss.set(receiver.loss.value)
        metrics.followed_sessions.set(receiver.followed)
      },
      reconfigure: (next) => receiver.reconfigure(settingsOf(next)),
      stop: () => receiver.stop(),
    }
  },
})
