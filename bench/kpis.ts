/** kpis: evaluating expressions over metrics against the same arithmetic written in JavaScript, and reading their text. */

import { Kpis } from '../src/telemetry/kpis/kpis.ts'
import { parseExpression } from '../src/text/expressions.ts'
import { type Bench, type BenchRow, runAlone } from './measure.ts'
import { nanoseconds } from './support/suite.ts'

const COUNT = 20
const places = Array.from({ length: COUNT * 2 }, (_, index) => ({ path: 'sink', name: `m${index}`, index }))
const values = Float64Array.from(places, (_, i) => i + 1)

const kpisOf = (expression: (i: number) => string) =>
  new Kpis(
    {
      variables: {},
      metrics: Array.from({ length: COUNT }, (_, i) => ({
        id: `${i}`,
        label: '',
        description: '',
        value: { expression: expression(i) },
      })),
    },
    places,
  )

const share = (i: number) => `{sink/m${2 * i + 1}} > 0 ? round({sink/m${2 * i}} / {sink/m${2 * i + 1}} * 100, 0) : 0`

export const bench: Bench = async () => {
  const shares = kpisOf(share)
  const rates = kpisOf((i) => `rate({sink/m${i}}) * 8`)
  const windows = kpisOf((i) => `max({sink/m${i}}, "1m")`)
  let time = 0
  const taken = nanoseconds({
    shares: () => shares.evaluate(values, ++time),
    rates: () => rates.evaluate(values, ++time),
    windows: () => windows.evaluate(values, ++time),
    plain: () => {
      const kpis = []
      for (let i = 0; i < COUNT; i++) {
        const [part, whole] = [values[2 * i] as number, values[2 * i + 1] as number]
        const value = whole > 0 ? Math.round((part / whole) * 100) : 0
        kpis.push({ id: `${i}`, label: '', description: '', value: { value } })
      }
      return kpis
    },
    parse: () => parseExpression(share(1)),
  })
  const row = (label: string, value: number, ratio?: number): BenchRow => {
    return { label, value, unit: 'ns', ...(ratio === undefined ? {} : { ratio }) }
  }
  return {
    name: 'kpis: one KPI of twenty that are evaluated together',
    rows: [
      row('a share with ? : and round(), against JavaScript', taken.shares / COUNT, taken.plain / taken.shares),
      row('rate()', taken.rates / COUNT),
      row('max() of a minute', taken.windows / COUNT),
      row('reading the text of one', taken.parse),
    ],
  }
}

await runAlone(import.meta.url, bench)
