/** The components as a table: the same as the graph, for keyboards, screen readers and small screens. */
import type { Configuration } from '../../data/configuration.ts'
import { useLive } from '../../data/live.ts'
import type { ComponentRates } from '../../data/rates.ts'
import { type RunMetrics, runMetricsOf } from '../../data/run-metrics.ts'
import { bitRateText, nameText } from '../../parts/format.ts'
import { numberText, perSecondText } from '../../parts/quantity.ts'
import { chiefFigures } from './chief-figures.ts'
import { FamilySign, familyClass, familyTitle } from './families.tsx'
import type { GraphProps } from './graph.tsx'

export function ComponentList(props: GraphProps) {
  return props.runId === '' ? <Table {...props} metrics={undefined} /> : <Measured {...props} />
}

function Measured(props: GraphProps) {
  const { value } = useLive(runMetricsOf(props.nodeId, props.runId))
  return <Table {...props} metrics={value} />
}

function Table({
  configuration,
  selected,
  onSelect,
  metrics,
}: GraphProps & { readonly metrics: RunMetrics | undefined }) {
  const collections = new Map(metrics?.sample?.metricCollections.map((each) => [each.path, each.metrics]))
  return (
    <div className="table-scroll card">
      <table className="components">
        <thead>
          <tr>
            <th scope="col">Component</th>
            <th scope="col">Sends to</th>
            <th scope="col">In</th>
            <th scope="col">Out</th>
            <th scope="col">Dropped</th>
            <th scope="col">Figures</th>
          </tr>
        </thead>
        <tbody>
          {configuration.components.map(({ name, key, family }) => {
            const rates = metrics?.rates.get(name)
            const own = collections.get(name)
            return (
              <tr key={name} aria-selected={name === selected}>
                <th scope="row">
                  <button type="button" className={`plain-link ${familyClass(family)}`} onClick={() => onSelect(name)}>
                    <FamilySign family={family} />
                    <span>
                      <span>{name}</span>{' '}
                      <small className="quiet">
                        {key}, {familyTitle(family).toLowerCase()}
                      </small>
                    </span>
                  </button>
                </th>
                <td>{targetsOf(configuration, name) || '–'}</td>
                <td>{passing(rates?.in)}</td>
                <td>{passing(rates?.out)}</td>
                <td>{rates === undefined ? '–' : numberText(rates.dropped)}</td>
                <td>
                  {own !== undefined &&
                    rates !== undefined &&
                    chiefFigures(own, rates)
                      .map(({ label, value }) => `${label} ${value}`)
                      .join(', ')}
                </td>
              </tr>
            )
          })}
        </tbody>
      </table>
    </div>
  )
}

function targetsOf({ connections }: Configuration, name: string): string {
  return connections.flatMap(({ from, to }) => (from.component === name ? [nameText(to.component)] : [])).join(', ')
}

function passing(rate: ComponentRates['in'] | undefined): string {
  if (rate === undefined) return '–'
  return rate.packets === 0 ? 'nothing' : `${bitRateText(rate.bits)}, ${perSecondText(rate.packets)} packets/s`
}
