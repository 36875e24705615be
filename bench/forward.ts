/** forward: UDP → six components → UDP against a C program doing GRO receive and GSO send, and against node:dgram, by CPU time. */

import { type Bench, runAlone } from './measure.ts'
import type { Link } from './support/chain.ts'
import { cForwarder, dgramForwarder, penstockForwarder, race } from './support/forwarding.ts'

export const SIX: readonly Link[] = [
  { throughput_tracker: {} },
  { flow_combiner: {} },
  { uniform_loss: { loss_prob: 0, seed: 1 } },
  { observer: {} },
  { splitter: {} },
  { throughput_tracker: {} },
]

export const bench: Bench = async () => {
  const rates = await race(15, {
    c: await cForwarder(),
    penstock: await penstockForwarder(SIX, 'LINUX'),
    dgram: await dgramForwarder(),
  })
  return {
    name: 'forward: 1200 B datagrams through six components',
    rows: [
      { label: 'C forwarder, GRO and GSO', value: rates.c, unit: 'packets per CPU second' },
      {
        label: 'penstock against C',
        value: rates.penstock,
        unit: 'packets per CPU second',
        ratio: rates.penstock / rates.c,
        goal: '≥ 0.85',
      },
      { label: 'node:dgram', value: rates.dgram, unit: 'packets per CPU second' },
      {
        label: 'penstock against node:dgram',
        value: rates.penstock,
        unit: 'packets per CPU second',
        ratio: rates.penstock / rates.dgram,
        goal: '≥ 30',
      },
    ],
  }
}

await runAlone(import.meta.url, bench)
