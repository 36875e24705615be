/** trace_traffic_source: the packets of a capture, at the times at which they were recorded. */
import { Type } from '@sinclair/typebox'
import { wordsOf } from '../../../text/error-message.ts'
import { NS_PER_MS } from '../../engine/clock.ts'
import { defineComponent } from '../../engine/component.ts'
import { counter } from '../../engine/metrics.ts'
import { FileName, Milliseconds, Optional, Output, Seed, Uint32 } from '../../engine/schema.ts'
import { readCapture } from './captures/read.ts'
import { MAX_RECORDED_PACKET, type Recording } from './captures/recording.ts'
import { sourceMetrics } from './generator.ts'
import { Replay, requireProgress } from './replay.ts'

/** Longest capture that is replayed, bytes: it is held in memory. */
const MAX_TRACE_BYTES = 536_870_912

export const traceTrafficSource = defineComponent({
  key: 'trace_traffic_source',
  family: 'sources',
  summary: 'Replays the packets of a capture file at the times at which they were recorded.',
  details:
    'The file is read when the run starts: pcap (microseconds or nanoseconds, in either byte order), pcapng, or lines `time_ms,size` whose ' +
    "packets are probes (see wire formats). Of a frame the IP packet is sent, cut to the packet's own length, without link headers and " +
    'VLAN tags; the link types are Ethernet, RAW, IPV4, IPV6, LINUX_SLL, LINUX_SLL2 and NULL. The first packet leaves at once, each other as long ' +
    'after it as it was recorded; a recorded time that goes back counts as no time passed, and a pcapng block without a time has that of the one before ' +
    'it. What is behind by more than 20 ms after a whole batch is taken up again from then. A file without a packet that can be sent is ' +
    'refused. Its name is relative to the directory `files` of the data directory (see configurations).',
  config: Type.Object({
    output: Output(),
    trace_file: FileName('The capture: pcap, pcapng, or lines `time_ms,size`; 512 MiB at most.'),
    loops: Uint32('How often it is played; 0: for ever.', { default: 1, unit: 'times' }),
    loop_delay: Milliseconds('From the last packet of one time to the first of the next.', { default: 0 }),
    seed: Optional(Seed('u32')),
  }),
  metrics: {
    ...sourceMetrics,
    skipped_frames: counter('Frames of the file that have no IP packet in them.', 'packets'),
    unsendable_packets: counter('Packets of the file that are cut short or longer than 9,216 bytes.', 'packets'),
  },
  live: ['loops', 'loop_delay'],
  mtu: () => MAX_RECORDED_PACKET,
  create(config, context) {
    const { trace_file: file, seed } = config
    const recording = read(file, context.file(file, MAX_TRACE_BYTES))
    const { packets, skippedFrames, unsendablePackets } = recording
    context.metrics.skipped_frames.add(skippedFrames)
    context.metrics.unsendable_packets.add(unsendablePackets)
    const seconds = recording.times[packets - 1] / (1000 * NS_PER_MS)
    context.log('INFO', `${packets} packets over ${seconds.toFixed(3)} s read from ${file}`, { packets, seconds })
    // Of all bytes that are sent only a probe's are random.
    const random = recording.content === null ? context.random(seed) : null
    const replay = new Replay(context, recording, random, config.loops, config.loop_delay * NS_PER_MS)
    return {
      active: () => replay.active,
      verify: (next) => requireProgress(recording, next.loops, next.loop_delay * NS_PER_MS),
      reconfigure: (next) => replay.adjust(next.loops, next.loop_delay * NS_PER_MS),
      stop: () => replay.stop(),
    }
  },
})

function read(file: string, bytes: Uint8Array): Recording {
  try {
    return readCapture(bytes)
  } catch (error) {
    throw new Error(`cannot replay ${file}: ${wordsOf(error)}`, { cause: error })
  }
}
