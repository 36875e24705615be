/** forward: UDP → six components → UDP against a C program doing GRO receive and GSO send, and against node:dgram, by CPU time. */

import { type Bench, runAlone } from './measure.ts'
import type { Link } from './support/chain.ts'
import { cForwarder, dgramForwarder, medianOf, medianRatio, penstockForwarder, race } from './support/forwarding.ts'

export const SIX: readonly Link[] = [
  { throughput_tracker: {} },
  { flow_combiner: {} },
  { uniform_loss: { loss_prob: 0, seed: 1 } },
  { observer: {} },
  { splitter: {} },
  { throughput_tracker: {} },
]

export const bench: Bench = async () => {
  const { c, penstock, dgram } = await race(15, {
    c: await cForwarder(),
    penstock: await penstockForwarder(SIX, 'LINUX'),
    dgram: await dgramForwarder(),
  })
  const [ofC, ours, ofDgram] = [c, penstock, dgram].map((rounds) => medianOf(rounds, 'perCpuSecond'))
  const unit = 'packets per CPU second'
  return {
    name: 'forward: 1200 B datagrams through six components',
    rows: [
      { label: 'C forwarder, GRO and GSO', value: ofC, unit },
      { label: 'penstock against C', value: ours, unit, ratio: ours / ofC, goal: '≥ 0.85' },
      {
        label: 'the same, median of 15 pairs',
        value: ours,
        unit,
        ratio: medianRatio(penstock, c, 'perCpuSecond'),
        goal: '≥ 0.9',
      },
      {
        label: 'the same without starting the load',
        value: medianOf(penstock, 'perCpuSecondOfLoad'),
        unit,
        ratio: medianRatio(penstock, c, 'perCpuSecondOfLoad'),
      },
      {
        label: 'the same by throughput',
        value: medianOf(penstock, 'perSecond'),
        unit: 'packets per second',
        ratio: medianRatio(penstock, c, 'perSecond'),
        goal: '≥ 0.9',
      },
      { label: 'node:dgram', value: ofDgram, unit },
      { label: 'penstock against node:dgram', value: ours, unit, ratio: ours / ofDgram, goal: '≥ 30' },
    ],
  }
}

await runAlone(import.meta.url, bench)
