/** The one or two figures of a component that say most of what it does. */
import type { Metric } from '@penstock/client'
import { numberOf } from '../../data/history.ts'
import type { ComponentRates } from '../../data/rates.ts'
import { bitRateText, shareText } from '../../parts/format.ts'
import { perSecondText, quantityText } from '../../parts/quantity.ts'

interface Figure {
  readonly label: string
  readonly value: string
}

/** Figures shown in a box. */
const MAX_FIGURES = 2

/** Metrics that say more than what comes and goes, most telling first, with the words that they are shown by. */
const TELLING: readonly (readonly [metric: string, label: string])[] = [
  ['recovered_packets', 'recovered'],
  ['unrecovered_packets', 'unrecovered'],
  ['repair_packets', 'repair'],
  ['goodput', 'goodput'],
  ['loss', 'loss'],
  ['delay_p50', 'delay'],
  ['delay_mean', 'delay'],
  ['bits_per_second', 'rate'],
  ['authentication_failures', 'not authentic'],
  ['queued_packets', 'queued'],
  ['held_packets', 'held'],
]

/** `metrics` are those of the component, `rates` what passes it. */
export function chiefFigures(metrics: Readonly<Record<string, Metric>>, rates: ComponentRates): readonly Figure[] {
  const figures: Figure[] = []
  if (Object.values(metrics).some(({ role }) => role === 'INTENDED')) {
    figures.push({
      label: 'lost',
      value: shareText(rates.in.packets > 0 ? Math.min(1, rates.losing / rates.in.packets) : 0),
    })
  }
  for (const [name, label] of TELLING) {
    const metric = metrics[name]
    if (metric === undefined) continue
    const isCounter = metric.kind === 'COUNTER'
    const value = isCounter
      ? `${perSecondText(rates.counters.get(name) ?? 0)}/s`
      : quantityText(numberOf(metric), metric.unit === 'packets' ? '' : metric.unit)
    figures.push({ label, value })
  }
  if (figures.length < MAX_FIGURES) {
    const [label, rate] = rates.out.packets > 0 || rates.in.packets === 0 ? ['out', rates.out] : ['in', rates.in]
    figures.push({ label: label as string, value: bitRateText((rate as ComponentRates['in']).bits) })
  }
  return figures.slice(0, MAX_FIGURES)
}
