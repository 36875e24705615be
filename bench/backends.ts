/** backends: the same forwarding through GENERIC, LINUX_NO_GRO and LINUX sockets. */
import { penstockForwarder } from './forwarding.ts'
import { type Bench, inTurn, runAlone } from './measure.ts'

export const bench: Bench = async () => {
  const through = (backend: string) => () => penstockForwarder(1, [{ flow_combiner: {} }], backend)
  const rates = await inTurn(5, {
    GENERIC: through('GENERIC'),
    LINUX_NO_GRO: through('LINUX_NO_GRO'),
    LINUX: through('LINUX'),
  })
  const against = (rate: number) => rate / rates.GENERIC
  return {
    name: 'backends: 1200 B datagrams, ratios against GENERIC',
    rows: [
      { label: 'GENERIC', value: rates.GENERIC, unit: 'packets/s' },
      { label: 'LINUX_NO_GRO', value: rates.LINUX_NO_GRO, unit: 'packets/s', ratio: against(rates.LINUX_NO_GRO) },
      { label: 'LINUX', value: rates.LINUX, unit: 'packets/s', ratio: against(rates.LINUX), goal: '≥ 5' },
    ],
  }
}

await runAlone(import.meta.url, bench)
