/** traffic_sink: consumes packets and measures what became of them on the way. */
import { Type } from '@sinclair/typebox'
import { NS_PER_MS, NS_PER_S } from '../../engine/clock.ts'
import { defineComponent } from '../../engine/component.ts'
import { consumed, counter, gauge, histogram } from '../../engine/metrics.ts'
import { Input, Int32, Milliseconds, ZERO_UNSET } from '../../engine/schema.ts'
import { ProbeReader } from './probe.ts'
import type { ProbeFlow } from './probe-flow.ts'
import { MAX_FLOWS, ProbeFlows } from './probe-flows.ts'

export const trafficSink = defineComponent({
  key: 'traffic_sink',
  family: 'sources',
  summary: 'Consumes packets and measures loss, order, duplicates, damage, delay and goodput of probes.',
  details:
    `Several sources may end in one sink: it tells ${MAX_FLOWS} of them apart. One more takes the place of the one that was silent longest; when ` +
    'that one is heard again it goes on where it was, only that no duplicates of before are recognised, nor what was missing then found. Duplicates and late packets are ' +
    'recognised up to 65,536 packets back. A probe is missing once one that was sent later is there: what was lost after the last that came, or of a source of which ' +
    'nothing came, is not known here; the source counts what it has sent. Delays between two hosts are as good as their clocks agree.',
  config: Type.Object({
    input: Input(),
    mtu: Int32('Packets larger than this are counted as oversize; 0: none are.', {
      default: 0,
      minimum: 0,
      maximum: 65_535,
      unit: 'bytes',
    }),
    latency_budget: Milliseconds('Probes that took longer are counted as late.', { default: 100 }),
    timeout_ms: Milliseconds('Silence after which a flow counts as finished.', {
      default: 10_000,
      minimum: 1,
      ...ZERO_UNSET,
    }),
  }),
  metrics: {
    packets: consumed('Packets that arrived.'),
    bytes: counter('Bytes that arrived.', 'bytes'),
    goodput_bytes: counter('Bytes of intact probes, duplicates not counted.', 'bytes'),
    goodput: gauge('Goodput of the past second.', 'bit/s'),
    mean_goodput: gauge('Goodput from the first packet to the last.', 'bit/s'),
    probe_packets: counter('Intact probes, duplicates not counted.', 'packets'),
    lost_packets: gauge('Probes that are missing; goes down when they arrive late.', 'packets'),
    loss: gauge('Share of probes that are missing.', 'fraction'),
    duplicate_packets: counter('Probes that had arrived before.', 'packets'),
    reordered_packets: counter('Probes that arrived after one sent later.', 'packets'),
    corrupt_packets: counter('Probes damaged on the way: length or CRC is wrong.', 'packets'),
    unmarked_packets: counter('Packets that are no probes.', 'packets'),
    late_packets: counter('Probes that took longer than latency_budget.', 'packets'),
    oversize_packets: counter('Packets larger than mtu.', 'packets'),
    delay: histogram('One-way delay from the source to here.', 'ns'),
    flows: gauge('Sources heard of late.', 'flows'),
    finished_flows: gauge('Of these, sources that have been silent for timeout_ms.', 'flows'),
    finished: gauge('1 while packets have come before but none for timeout_ms.'),
  },
  live: ['mtu', 'latency_budget', 'timeout_ms'],
  create(config, { packets, clock, memory, metrics, log, timer }) {
    let { mtu } = config
    let budget = config.latency_budget * NS_PER_MS
    let timeout = config.timeout_ms * NS_PER_MS
    const probe = new ProbeReader({ packets, clock, memory })
    const flows = new ProbeFlows()
    // The flow of the packet before, which is most often the flow of this one.
    let source = -1
    let flow: ProbeFlow | null = null
    let firstArrival = 0
    let lastArrival = -1
    let secondBytes = 0
    let secondStart = 0

    const silence = timer(() => endSilentFlows())
    const second = timer(() => measureSecond())

    function flowOf({ source: id, sequence }: ProbeReader): ProbeFlow {
      source = id
      flow = flows.of(id, sequence)
      return flow
    }

    /** Marks what has been silent too long, and what no longer is by a longer timeout; waits for the next flow that may be. */
    function endSilentFlows(): void {
      const { now } = clock
      let next = Number.POSITIVE_INFINITY
      for (const [id, candidate] of flows.entries) {
        // The sum by which the timer is set: of times with fractions the difference may be rounded to less than `timeout` when it is due.
        if (now < candidate.last + timeout) {
          next = Math.min(next, candidate.last)
          candidate.finished = false
        } else if (!candidate.finished) {
          candidate.finished = true
          const { unique, lost, duplicate, reordered } = candidate
          const text = `flow ${id.toString(16).padStart(8, '0')} finished: ${unique} packets, ${lost} lost`
          log('INFO', text, { source: id, packets: unique, lost, duplicate, reordered })
        }
      }
      if (now < lastArrival + timeout) {
        next = Math.min(next, lastArrival)
        metrics.finished.set(0)
      } else if (metrics.finished.value === 0) {
        metrics.finished.set(1)
        log('INFO', `no packet for ${timeout / NS_PER_MS} ms: finished`)
      }
      if (next < Number.POSITIVE_INFINITY) silence.at(next + timeout)
    }

    function measureSecond(): void {
      const { now } = clock
      metrics.goodput.set((secondBytes * 8 * NS_PER_S) / (now - secondStart))
      if (secondBytes === 0) return
      secondBytes = 0
      secondStart = now
      second.at(now + NS_PER_S)
    }

    function takeProbe(bytes: number): number {
      const { now } = clock
      const known = flow !== null && source === probe.source ? flow : flowOf(probe)
      known.last = now
      known.finished = false
      const arrival = known.take(probe.sequence)
      if (arrival === 'DUPLICATE') {
        metrics.duplicate_packets.add(1)
        return 0
      }
      if (arrival === 'LATE') metrics.reordered_packets.add(1)
      metrics.probe_packets.add(1)
      metrics.delay.record(probe.delay)
      if (probe.delay > budget) metrics.late_packets.add(1)
      return bytes
    }

    return {
      input(batch) {
        const { handles, length } = batch
        const { now } = clock
        let bytes = 0
        let goodBytes = 0
        for (let i = 0; i < length; i++) {
          const packet = handles[i]
          const size = packets.length[packet]
          bytes += size
          if (mtu > 0 && size > mtu) metrics.oversize_packets.add(1)
          const verdict = probe.read(packet)
          if (verdict === 'PROBE') goodBytes += takeProbe(size)
          else if (verdict === 'CORRUPT') metrics.corrupt_packets.add(1)
          else metrics.unmarked_packets.add(1)
        }
        metrics.packets.add(length)
        metrics.bytes.add(bytes)
        metrics.goodput_bytes.add(goodBytes)
        secondBytes += goodBytes
        if (lastArrival < 0) firstArrival = now
        lastArrival = now
        if (metrics.finished.value !== 0) metrics.finished.set(0)
        if (!silence.armed) silence.at(now + timeout)
        if (!second.armed) {
          secondStart = now
          second.at(now + NS_PER_S)
        }
        packets.releaseAll(batch)
      },
      observe() {
        const { lost } = flows
        let finished = 0
        for (const [, { finished: over }] of flows.entries) if (over) finished++
        const arrived = metrics.probe_packets.value
        metrics.lost_packets.set(lost)
        metrics.loss.set(lost > 0 ? lost / (lost + arrived) : 0)
        metrics.flows.set(flows.size)
        metrics.finished_flows.set(finished)
        const elapsed = lastArrival - firstArrival
        if (elapsed > 0) metrics.mean_goodput.set((metrics.goodput_bytes.value * 8 * NS_PER_S) / elapsed)
      },
      reconfigure(next) {
        mtu = next.mtu
        budget = next.latency_budget * NS_PER_MS
        timeout = next.timeout_ms * NS_PER_MS
        if (lastArrival >= 0) silence.at(clock.now)
      },
      stop() {
        silence.cancel()
        second.cancel()
      },
    }
  },
})
