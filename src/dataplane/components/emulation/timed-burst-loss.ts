/** timed_burst_loss: drops a burst, of packets or of time, after every interval of time. */
import { type Static, Type } from '@sinclair/typebox'
import { NS_PER_MS } from '../../engine/clock.ts'
import { defineComponent, type Fault } from '../../engine/component.ts'
import { gauge, intendedDrop } from '../../engine/metrics.ts'
import { Input, Int32, Int32Milliseconds, Optional, Output } from '../../engine/schema.ts'
import { applyLoss } from './loss-models.ts'
import { TimedBursts, type TimedBurstsParameters } from './timed-bursts.ts'

const config = Type.Object({
  input: Input(),
  output: Output(),
  interval_ms: Int32Milliseconds('Time without loss, before the first burst and after each.', { minimum: 1 }),
  burst_packets: Optional(
    Int32('Packets dropped in a row; 0 or unset: burst_duration_ms says how long.', { minimum: 0, unit: 'packets' }),
  ),
  burst_duration_ms: Optional(
    Int32Milliseconds('Time in which every packet is dropped; 0 or unset: burst_packets says how many.'),
  ),
  cancel_timer_ms: Optional(
    Int32Milliseconds('Time from its start after which a burst of packets is over; 0 or unset: never.'),
  ),
})

const parametersOf = (given: Static<typeof config>): TimedBurstsParameters => ({
  interval: given.interval_ms * NS_PER_MS,
  packets: given.burst_packets || Number.POSITIVE_INFINITY,
  duration: (given.burst_duration_ms || given.cancel_timer_ms || Number.POSITIVE_INFINITY) * NS_PER_MS,
})

function check({ burst_packets, burst_duration_ms, cancel_timer_ms }: Static<typeof config>): Fault[] {
  if (!burst_packets && !burst_duration_ms) {
    return [{ pointer: '', message: 'a burst has no length: set one of burst_packets and burst_duration_ms above 0' }]
  }
  if (burst_packets && burst_duration_ms) {
    const message = `${burst_duration_ms} ms besides burst_packets ${burst_packets}: set only one of the two`
    return [{ pointer: '/burst_duration_ms', message }]
  }
  if (burst_duration_ms && cancel_timer_ms) {
    const message = `${cancel_timer_ms} ms besides burst_duration_ms ${burst_duration_ms}: it is for burst_packets, leave it out`
    return [{ pointer: '/cancel_timer_ms', message }]
  }
  return []
}

export const timedBurstLoss = defineComponent({
  key: 'timed_burst_loss',
  family: 'emulation',
  summary: 'Drops a burst, of packets or of time, after every interval of time.',
  details:
    'The first interval begins when the run does, each further one at the end of a burst. A burst of packets drops the next ' +
    'burst_packets, if they come within cancel_timer_ms of its start; a burst of time drops all that comes. An interval or a burst that ' +
    'a change makes shorter than what is over of it ends with the change.',
  config,
  metrics: {
    emulated_loss: intendedDrop('Packets dropped by the model.'),
    bursting: gauge('1 while packets are dropped.'),
  },
  live: ['interval_ms', 'burst_packets', 'burst_duration_ms', 'cancel_timer_ms'],
  passes: true,
  check,
  create(given, context) {
    const { outlets, metrics } = context
    const model = new TimedBursts(context, parametersOf(given))
    return {
      input(batch) {
        applyLoss(batch, model, metrics.emulated_loss)
        outlets.output.send(batch)
      },
      observe: () => metrics.bursting.set(model.bursting ? 1 : 0),
      reconfigure: (next) => model.change(parametersOf(next)),
    }
  },
})
