/** backends: the same forwarding through GENERIC, LINUX_NO_GRO and LINUX sockets. */

import { type Bench, runAlone } from './measure.ts'
import { medianOf, penstockForwarder, race } from './support/forwarding.ts'

export const bench: Bench = async () => {
  const through = (backend: string) => penstockForwarder([{ flow_combiner: {} }], backend)
  const seen = await race(9, {
    GENERIC: await through('GENERIC'),
    LINUX_NO_GRO: await through('LINUX_NO_GRO'),
    LINUX: await through('LINUX'),
  })
  const rates = {
    GENERIC: medianOf(seen.GENERIC, 'perCpuSecond'),
    LINUX_NO_GRO: medianOf(seen.LINUX_NO_GRO, 'perCpuSecond'),
    LINUX: medianOf(seen.LINUX, 'perCpuSecond'),
  }
  const against = (rate: number) => rate / rates.GENERIC
  return {
    name: 'backends: 1200 B datagrams, ratios against GENERIC',
    rows: [
      { label: 'GENERIC', value: rates.GENERIC, unit: 'packets per CPU second' },
      {
        label: 'LINUX_NO_GRO',
        value: rates.LINUX_NO_GRO,
        unit: 'packets per CPU second',
        ratio: against(rates.LINUX_NO_GRO),
      },
      { label: 'LINUX', value: rates.LINUX, unit: 'packets per CPU second', ratio: against(rates.LINUX), goal: '≥ 5' },
    ],
  }
}

await runAlone(import.meta.url, bench)
