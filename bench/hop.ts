/** hop: what one more pass-through component costs a packet in a batch. */

import { type Bench, inTurn, runAlone } from './measure.ts'
import { Chain, type Link } from './support/chain.ts'

const HOPS = 8
const PACKETS = 2_000_000

const CANDIDATES: Record<string, Link> = {
  flow_combiner: { flow_combiner: {} },
  splitter: { splitter: {} },
  throughput_tracker: { throughput_tracker: {} },
  observer: { observer: {} },
  uniform_loss: { uniform_loss: { loss_prob: 0, seed: 1 } },
  gilbert_elliot_loss: {
    gilbert_elliot_loss: { good_loss_prob: 0, bad_loss_prob: 0, good_to_bad_prob: 0.1, bad_to_good_prob: 0.5, seed: 1 },
  },
}

export const bench: Bench = async () => {
  const empty = new Chain([], 1200)
  const chains = Object.entries(CANDIDATES).map(([name, link]) => ({
    name,
    chain: new Chain(Array(HOPS).fill(link), 1200),
  }))
  const runs = Object.fromEntries([
    ['none', () => empty.run(PACKETS)],
    ...chains.map(({ name, chain }) => [name, () => chain.run(PACKETS)]),
  ]) as Record<string, () => number>
  for (const run of Object.values(runs)) run()
  const costs = await inTurn(5, runs)
  return {
    name: 'hop: cost of one pass-through component, batches of 256 packets of 1200 B',
    rows: chains.map(({ name }) => ({
      label: name,
      value: (costs[name] - costs.none) / HOPS,
      unit: 'ns a packet',
      goal: '≤ 30',
    })),
  }
}

await runAlone(import.meta.url, bench)
