/** Tables of metrics: what is one histogram, and what has a rate, is said by the metrics' declarations and not by their names. */
import { expect, test, vi } from 'vitest'
import { counter, gauge, histogram, type MetricDeclarations, MetricLayout } from '../dataplane/engine/metrics.ts'
import { type MetricRow, metricsTable, rateOf } from './metrics-table.ts'

/** Rows of a component with these metrics, each with its position among them, from 1, as its value. */
function rowsOf(declarations: MetricDeclarations): MetricRow[] {
  const layout = new MetricLayout()
  layout.declare('box', declarations)
  return layout.entries.map((entry, i) => ({ ...entry, value: i + 1 }))
}

const linesOf = (rows: readonly MetricRow[]) => metricsTable(rows).split('\n').slice(1)

test('the numbers of a histogram are one row, whatever stands between them', () => {
  const rows = rowsOf({ delay_count: histogram('Delay.', 'ms'), level: gauge('Level.') })
  const [count, level] = [rows[0], rows.at(-1)] as MetricRow[]
  const lines = linesOf([count, level, ...rows.slice(1, -1)] as MetricRow[])
  expect(lines).toHaveLength(2)
  expect(lines[0]).toMatch(/delay_count +min 2 ms {2}mean 4 ms {2}p50 5 ms {2}p90 6 ms {2}p99 7 ms {2}max 3 ms +n=1/)
  expect(lines[1]).toMatch(/level +8/)
})

test('numbers that are only called like those of a histogram are rows of their own', () => {
  const names = ['count', 'min', 'max', 'mean', 'p50', 'p90', 'p99'].map((part) => `size_${part}`)
  const rows = rowsOf(Object.fromEntries(names.map((name) => [name, counter('A number.')])))
  expect(linesOf(rows).map((line) => /size_\w+/.exec(line)?.[0])).toEqual(names)
})

test('a histogram without values says so', () => {
  const rows = rowsOf({ delay: histogram('Delay.', 'ms') }).map((row) => ({ ...row, value: 0 }))
  expect(linesOf(rows)).toHaveLength(1)
  expect(linesOf(rows)[0]).toMatch(/delay +nothing recorded/)
})

test('counters of packets, bytes and events have a rate; times that add up, gauges and histograms have none', () => {
  const rows = rowsOf({
    packets: counter('Packets.', 'packets'),
    bytes: counter('Bytes.', 'bytes'),
    restarts: counter('Events.'),
    skipped_ms: counter('Time given up.', 'ms'),
    level: gauge('Level.', 'packets'),
    delay: histogram('Delay.', 'ms'),
  })
  const rates = rows.map((row) => [row.name, rateOf(row, 10, 5)] as const)
  expect(Object.fromEntries(rates.filter(([, rate]) => rate !== undefined))).toEqual({
    packets: 2,
    bytes: 2,
    restarts: 2,
  })
})

test('places that nobody has are left out and told of, or shown when all is asked for', () => {
  const rows = rowsOf({
    streams: gauge('Streams.'),
    a_ssrc: { ...gauge('SSRC.'), occupancy: 'a_packets' },
    a_packets: { ...gauge('Packets.', 'packets'), occupancy: 'a_packets' },
    b_ssrc: { ...gauge('SSRC.'), occupancy: 'b_packets' },
    b_packets: { ...gauge('Packets.', 'packets'), occupancy: 'b_packets' },
  })
  const other = rows.map((row) => ({ ...row, path: 'empty', value: 0 }))
  const own = rows.map((row) => ({ ...row, value: row.name === 'b_packets' ? 0 : row.value }))
  const [all, some] = [true, false].map((all) => metricsTable([...own, ...other], new Map(), { all }).split('\n'))
  const names = (lines: string[] = []) => lines.flatMap((line) => /\b(?:[ab]_\w+|streams)\b/.exec(line)?.[0] ?? [])
  expect(names(some)).toEqual(['streams', 'a_ssrc', 'a_packets', 'streams'])
  expect(some?.at(-1)).toBe('6 metrics of places that nobody has are left out: --all shows them')
  expect(names(all)).toEqual([...rows, ...rows].map(({ name }) => name))
  expect(all?.at(-1)).toMatch(/b_packets/)
})

test('in a narrow terminal the numbers of a histogram wrap, whole ones, and names stay whole', () => {
  const rows = rowsOf({ queueing_delay_of_packets: histogram('Delay.', 'ms'), packets: counter('Packets.', 'packets') })
  vi.stubEnv('COLUMNS', '80')
  try {
    const lines = linesOf(rows)
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(80)
    const text = lines.join('\n')
    for (const part of [
      'queueing_delay_of_packets',
      'min 2 ms',
      'mean 4 ms',
      'p50 5 ms',
      'p90 6 ms',
      'p99 7 ms',
      'max 3 ms',
    ]) {
      expect(text).toContain(part)
    }
  } finally {
    vi.unstubAllEnvs()
  }
})

test.each(['60', '40'])('in %s columns numbers and their units stay in one piece', (columns) => {
  const rows = rowsOf({ delay: histogram('Delay.', 'ms'), output_packets: counter('Packets.', 'packets') })
  vi.stubEnv('COLUMNS', columns)
  try {
    const text = linesOf(
      rows.map((row) => ({ ...row, value: row.name === 'output_packets' ? 10_416_667 : row.value })),
    ).join('\n')
    expect(text).toContain('10,416,667')
    expect(text).toContain('p90 6 ms')
  } finally {
    vi.unstubAllEnvs()
  }
})
