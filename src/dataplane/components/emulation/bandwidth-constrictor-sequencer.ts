/** bandwidth_constrictor_sequencer: a link with a queue in front; bandwidth and queue change by a list of intervals. */
import { type Static, Type } from '@sinclair/typebox'
import { NS_PER_MS } from '../../engine/clock.ts'
import { defineComponent } from '../../engine/component.ts'
import { gauge } from '../../engine/metrics.ts'
import type { Packets } from '../../engine/packets.ts'
import { Input, Int32, List, Megabits, Output } from '../../engine/schema.ts'
import { type LinkPhase, PhasedLink } from './phased-link.ts'
import { Intervals, Repeat, SEQUENCE_DETAILS, unequalLists } from './phases.ts'
import { LINK_DETAILS, linkMetrics, queueLimit } from './serial-link.ts'

const config = Type.Object({
  input: Input(),
  output: Output(),
  bandwidth_limits_mbit: List(
    Megabits('Bandwidth of the link in this interval.', { proto: 'float' }),
    'Bandwidths of the link, one for each interval.',
    { unit: 'Mbit/s' },
  ),
  max_queue_sizes: List(
    Int32('Packets that wait while one is on the link; 0: none.', { minimum: 0, unit: 'packets' }),
    'Packets that wait while one is on the link, for each interval; empty: a quarter of the packet slots of the run.',
    { minItems: 0, default: [], unit: 'packets' },
  ),
  intervals: Intervals(),
  repeat: Repeat(),
})

const phasesOf = (given: Static<typeof config>, packets: Packets): LinkPhase[] =>
  given.intervals.map((interval, i) => ({
    duration: interval * NS_PER_MS,
    mbit: given.bandwidth_limits_mbit[i],
    limit: queueLimit(given.max_queue_sizes[i], packets),
  }))

export const bandwidthConstrictorSequencer = defineComponent({
  key: 'bandwidth_constrictor_sequencer',
  family: 'emulation',
  summary:
    'Sends packets one after the other at a bandwidth that changes by a list of intervals; a queue holds what waits.',
  details: `${SEQUENCE_DETAILS} ${LINK_DETAILS}`,
  config,
  metrics: { ...linkMetrics, phase: gauge('Index of the interval that holds, from 0.') },
  live: ['bandwidth_limits_mbit', 'max_queue_sizes', 'intervals', 'repeat'],
  check: (given) =>
    unequalLists(given, ['bandwidth_limits_mbit', ...(given.max_queue_sizes.length > 0 ? ['max_queue_sizes'] : [])]),
  create(given, context) {
    const { outlets, metrics, packets } = context
    const list = phasesOf(given, packets)
    const phased = new PhasedLink(context, list, given.repeat, [outlets.output], metrics.queue_full_packets, 0)
    const { link } = phased
    return {
      input: (batch) => phased.take(batch, 0),
      notify: (notification) => link.notify(notification, 0),
      observe() {
        metrics.queued_packets.set(link.held)
        metrics.phase.set(phased.index)
      },
      reconfigure: (next) => phased.change(phasesOf(next, packets), next.repeat),
      stop: () => metrics.held_at_end_packets.add(link.stop()),
    }
  },
})
