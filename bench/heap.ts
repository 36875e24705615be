/** heap: growth of the JavaScript heap while 10^7 packets pass six components. */
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { SIX } from './forward.ts'
import { type Bench, runAlone } from './measure.ts'
import { Chain } from './support/chain.ts'

export const bench: Bench = async () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const chain = new Chain(SIX, 1200)
  chain.run(2_000_000) // what the compiler allocates while it warms up
  collect()
  collect()
  const before = process.memoryUsage().heapUsed
  chain.run(10_000_000)
  collect()
  collect()
  const growth = process.memoryUsage().heapUsed - before
  return {
    name: 'heap: growth over 10^7 packets through six components, after garbage collection',
    rows: [
      { label: 'growth', value: growth, unit: 'bytes' },
      { label: 'growth a packet', value: Math.max(growth, 0) / 1e7, unit: 'bytes', goal: '≤ 0.01' },
    ],
  }
}

await runAlone(import.meta.url, bench)
