/** The text for Prometheus from numbers made up: names, units, labels, histograms. */
import { expect, test } from 'vitest'
import type { Histogram } from '../dataplane/engine/histogram.ts'
import { bindMetrics, counter, type Gauge, gauge, histogram, MetricLayout } from '../dataplane/engine/metrics.ts'
import { ProcessMeter } from './process-meter.ts'
import { prometheusText } from './prometheus.ts'

const process = (() => {
  const meter = new ProcessMeter()
  return { entries: meter.entries, values: Float64Array.of(1_500_000_000, 2e8, 1e8, 30, 12) }
})()

/** The lines about a family, without those of the process. */
function linesOf(
  declarations: Parameters<MetricLayout['declare']>[1],
  values: (bound: ReturnType<typeof bindMetrics>) => void,
) {
  const layout = new MetricLayout()
  const places = layout.declare('sink', declarations)
  const numbers = new Float64Array(layout.values)
  const made: Histogram[] = []
  values(bindMetrics(declarations, places, numbers, made))
  const run = { pipeline: 'p', run: 'r', entries: layout.entries, values: numbers }
  const text = prometheusText([run], process, 0)
  return text.split('\n').filter((line) => line.includes('penstock_'))
}

test('counters end in _total, times are seconds, rates bytes, shares ratios; the unit is in the name once', () => {
  const lines = linesOf(
    {
      lost_packets: counter('Lost.', 'packets'),
      emulated_loss: counter('Emulated.', 'packets'),
      skipped_ms: counter('Skipped.', 'ms'),
      opened_connections: counter('Opened.'),
      jitter: gauge('Jitter.', 'ns'),
      bits_per_second: gauge('Rate.', 'bit/s'),
      goodput: gauge('Goodput.', 'bit/s'),
      bytes_per_second: gauge('Bytes.', 'bytes/s'),
      loss: gauge('Loss.', 'fraction'),
      flows: gauge('Flows.', 'flows'),
      bytes: counter('All bytes.', 'bytes'),
    },
    (bound) => {
      for (const metric of Object.values(bound)) (metric as { add(value: number): void }).add(8)
    },
  )
  const values = lines.filter((line) => !line.startsWith('#')).map((line) => line.replace(/\{.*\}/, ''))
  expect(values).toEqual([
    'penstock_bytes_per_second 1',
    'penstock_bytes_per_second 8',
    'penstock_bytes_total 8',
    'penstock_emulated_loss_packets_total 8',
    'penstock_flows 8',
    'penstock_goodput_bytes_per_second 1',
    'penstock_jitter_seconds 8e-9',
    'penstock_loss_ratio 8',
    'penstock_lost_packets_total 8',
    'penstock_opened_connections_total 8',
    'penstock_skipped_seconds_total 0.008',
  ])
  expect(lines.slice(-3)).toEqual([
    '# HELP penstock_skipped_seconds_total Skipped.',
    '# TYPE penstock_skipped_seconds_total counter',
    'penstock_skipped_seconds_total{pipeline="p",run="r",component="sink"} 0.008',
  ])
})

test('a histogram has cumulative buckets, its sum and its count, and nothing else', () => {
  const lines = linesOf({ delay: histogram('Delay.', 'ns') }, ({ delay }) => {
    for (const value of [500, 1024, 1025, 1e6, 1e18]) (delay as Histogram).record(value)
  })
  const rest = '{pipeline="p",run="r",component="sink"'
  expect(lines.slice(0, 5)).toEqual([
    '# HELP penstock_delay_seconds Delay.',
    '# TYPE penstock_delay_seconds histogram',
    `penstock_delay_seconds_bucket${rest},le="0.000001024"} 2`,
    `penstock_delay_seconds_bucket${rest},le="0.000002048"} 3`,
    `penstock_delay_seconds_bucket${rest},le="0.000004096"} 3`,
  ])
  expect(lines[2 + 10]).toBe(`penstock_delay_seconds_bucket${rest},le="0.001048576"} 4`)
  expect(lines.slice(2 + 30)).toEqual([
    `penstock_delay_seconds_bucket${rest},le="1099.511627776"} 4`,
    `penstock_delay_seconds_bucket${rest},le="+Inf"} 5`,
    `penstock_delay_seconds_sum${rest}} ${(500 + 1024 + 1025 + 1e6 + 1e18) / 1e9}`,
    `penstock_delay_seconds_count${rest}} 5`,
  ])
})

test('names are escaped as the format wants it', () => {
  const layout = new MetricLayout()
  layout.declare('a"b', { packets: counter('One\nline, one \\.', 'packets') })
  const run = { pipeline: 'back\\slash\nline', run: 'r', entries: layout.entries, values: Float64Array.of(Number.NaN) }
  expect(prometheusText([run], process, 0)).toContain(
    [
      String.raw`# HELP penstock_packets_total One\nline, one \\.`,
      '# TYPE penstock_packets_total counter',
      String.raw`penstock_packets_total{pipeline="back\\slash\nline",run="r",component="a\"b"} NaN`,
      '',
    ].join('\n'),
  )
})

test('several runs stand in one family, the process once', () => {
  const layout = new MetricLayout()
  layout.declare('sink', { packets: counter('Packets.', 'packets') })
  layout.declare('/engine', { breaths: counter('Breaths.') })
  const runOf = (run: string) => ({ pipeline: 'p', run, entries: layout.entries, values: Float64Array.of(1, 2) })
  expect(prometheusText([runOf('a'), runOf('b')], process, 1_500).split('\n')).toEqual([
    expect.stringMatching(/^# HELP nodejs_heap_size_used_bytes /),
    '# TYPE nodejs_heap_size_used_bytes gauge',
    'nodejs_heap_size_used_bytes 100000000',
    '# HELP penstock_engine_breaths_total Breaths.',
    '# TYPE penstock_engine_breaths_total counter',
    'penstock_engine_breaths_total{pipeline="p",run="a"} 2',
    'penstock_engine_breaths_total{pipeline="p",run="b"} 2',
    '# HELP penstock_packets_total Packets.',
    '# TYPE penstock_packets_total counter',
    'penstock_packets_total{pipeline="p",run="a",component="sink"} 1',
    'penstock_packets_total{pipeline="p",run="b",component="sink"} 1',
    expect.stringMatching(/^# HELP process_cpu_seconds_total /),
    '# TYPE process_cpu_seconds_total counter',
    'process_cpu_seconds_total 1.5',
    expect.stringMatching(/^# HELP process_open_fds /),
    '# TYPE process_open_fds gauge',
    'process_open_fds 30',
    expect.stringMatching(/^# HELP process_resident_memory_bytes /),
    '# TYPE process_resident_memory_bytes gauge',
    'process_resident_memory_bytes 200000000',
    expect.stringMatching(/^# HELP process_start_time_seconds /),
    '# TYPE process_start_time_seconds gauge',
    'process_start_time_seconds 1.5',
    expect.stringMatching(/^# HELP process_threads /),
    '# TYPE process_threads gauge',
    'process_threads 12',
    '',
  ])
})

test('what there are several of has one name and a label; places that nobody has are left out', () => {
  const of = (value: string) => ({
    occupancy: `stream_${value}_packets`,
    each: { name: 'stream_packets', label: 'stream', value },
  })
  const lines = linesOf(
    Object.fromEntries(
      ['0', '1', '2'].map((n) => [`stream_${n}_packets`, { ...gauge('Packets.', 'packets'), ...of(n) }]),
    ),
    ({ stream_1_packets }) => (stream_1_packets as Gauge).set(5),
  )
  expect(lines.slice(2)).toEqual(['penstock_stream_packets{pipeline="p",run="r",component="sink",stream="1"} 5'])
})
