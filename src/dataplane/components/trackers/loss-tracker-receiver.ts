/** loss_tracker_receiver: takes the numbers of loss_tracker_senders off and measures loss, duplicates and reordering. */
import { Type } from '@sinclair/typebox'
import { NS_PER_MS } from '../../engine/clock.ts'
import { defineComponent } from '../../engine/component.ts'
import { counter, drop, gauge } from '../../engine/metrics.ts'
import { Input, Milliseconds, Output, ZERO_UNSET } from '../../engine/schema.ts'
import { MAX_SENDERS, Senders } from '../shared/senders.ts'
import { Interval } from './interval.ts'
import { LossFlow } from './loss-flow.ts'
import { LOSS_HEADER_BYTES } from './loss-tracker-sender.ts'

export const lossTrackerReceiver = defineComponent({
  key: 'loss_tracker_receiver',
  family: 'trackers',
  summary: 'Measures loss, duplicates and reordering since a loss_tracker_sender, and passes its packets on.',
  details:
    'Takes the 8 bytes of the sender off and passes every packet on, duplicates too. A missing packet counts as lost once 1,024 later ones ' +
    'have passed, or at the end of the second whole interval after the one in which it was missed. The loss of an interval is over the ' +
    'packets that were decided in it: those up to the first one that is still awaited. What is missing before the first packet heard, or ' +
    'after the last, is not known of.\n\n' +
    `Each start of a sender is told apart, whatever address it sends from, and up to ${MAX_SENDERS} are followed side by side. When that many ` +
    'are known, one that has sent nothing while a newcomer sent 8 packets gives way to it, the one silent longest; the packets of others ' +
    'are passed on and not measured (unfollowed_packets). The figures are those of all senders together. A gap of more than 65,536 packets ' +
    'counts when a second packet confirms it. A RESET makes it forget the senders.',
  config: Type.Object({
    input: Input(),
    output: Output(),
    sampling_interval_ms: Milliseconds('Interval that the figures of an interval are of.', {
      default: 1000,
      minimum: 1,
      ...ZERO_UNSET,
    }),
  }),
  metrics: {
    expected_packets: counter('Packets of which it is decided whether they came, those lost included.', 'packets'),
    lost_packets: counter('Packets that count as lost.', 'packets'),
    duplicate_packets: counter('Packets that had come before; they are passed on.', 'packets'),
    reordered_packets: counter('Packets that came after one sent later.', 'packets'),
    late_packets: counter('Packets that came after they had counted as lost, or 1,024 others before them.', 'packets'),
    loss: gauge('Share of the packets decided in the last interval that were lost.', 'fraction'),
    longest_loss: gauge('Most packets lost in a row among those of the last interval.', 'packets'),
    interval_duplicates: gauge('Duplicates that came in the last interval.', 'packets'),
    interval_reordered: gauge('Packets that came after one sent later, in the last interval.', 'packets'),
    followed_senders: gauge('Senders followed.', 'senders'),
    unfollowed_packets: counter('Packets passed on of senders that there was no place to follow.', 'packets'),
    malformed_packets: drop('Packets dropped because they are too short for the header.'),
  },
  live: ['sampling_interval_ms'],
  alters: true,
  create(config, context) {
    const { packets, outlets, metrics } = context
    const { expected_packets, lost_packets, duplicate_packets, reordered_packets } = metrics
    const senders = new Senders()
    const flows = Array.from({ length: MAX_SENDERS }, () => new LossFlow(metrics))
    let expected = 0
    let lost = 0
    let duplicates = 0
    let reordered = 0

    function sample(): void {
      let longest = 0
      for (let i = 0; i < MAX_SENDERS; i++) longest = Math.max(longest, flows[i].endInterval())
      const decided = expected_packets.value - expected
      metrics.loss.set(decided > 0 ? (lost_packets.value - lost) / decided : 0)
      metrics.longest_loss.set(longest)
      metrics.interval_duplicates.set(duplicate_packets.value - duplicates)
      metrics.interval_reordered.set(reordered_packets.value - reordered)
      expected = expected_packets.value
      lost = lost_packets.value
      duplicates = duplicate_packets.value
      reordered = reordered_packets.value
    }

    function take(id: number, sequence: number): void {
      const place = senders.place(id)
      if (place < 0) metrics.unfollowed_packets.add(1)
      else if (flows[place].is(id)) flows[place].take(sequence)
      else flows[place].begin(id, sequence)
    }

    const interval = new Interval(context, config.sampling_interval_ms * NS_PER_MS, sample)
    return {
      input(batch) {
        const { view } = packets
        const { handles, length } = batch
        let kept = 0
        for (let i = 0; i < length; i++) {
          const packet = handles[i]
          if (packets.length[packet] < LOSS_HEADER_BYTES) {
            packets.release(packet)
            continue
          }
          const at = packets.trimFront(packet, LOSS_HEADER_BYTES)
          take(view.getInt32(at), view.getInt32(at + 4))
          handles[kept++] = packet
        }
        metrics.malformed_packets.add(length - kept)
        batch.length = kept
        outlets.output.send(batch)
      },
      notify(notification) {
        if (notification === 'RESET') {
          senders.reset()
          for (const flow of flows) flow.forget()
        }
        outlets.output.notify(notification)
      },
      observe: () => metrics.followed_senders.set(senders.length),
      reconfigure: (next) => interval.setLength(next.sampling_interval_ms * NS_PER_MS),
      stop: () => interval.stop(),
    }
  },
})
