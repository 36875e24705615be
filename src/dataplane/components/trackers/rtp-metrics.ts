/** The metrics of each place for an RTP stream. */
import { type Gauge, gauge, type MetricDeclaration } from '../../engine/metrics.ts'
import type { RtpStream } from './rtp-stream.ts'

const OF_A_STREAM = {
  ssrc: gauge('SSRC of the stream in this place.'),
  payload_type: gauge('Payload type of its newest packet.'),
  clock_rate: gauge('Clock rate of its timestamps; 0 while it is not known.', 'Hz'),
  packets: gauge('Packets of it that came, duplicates not counted; 0: nobody has the place.', 'packets'),
  lost_packets: gauge('Packets of it that are missing; goes down when they arrive late.', 'packets'),
  loss: gauge('Share of its packets that are missing.', 'fraction'),
  duplicate_packets: gauge('Packets of it that had come before.', 'packets'),
  reordered_packets: gauge('Packets of it that came after one sent later.', 'packets'),
  jitter: gauge('Interarrival jitter (RFC 3550); 0 while the clock rate is not known.', 'ns'),
  bits_per_second: gauge('Bit rate of the last whole second, RTP headers included.', 'bit/s'),
}

type Field = keyof typeof OF_A_STREAM
type Name = `stream_${number}_${Field}`
type Declarations = Record<Name, (typeof OF_A_STREAM)[Field] & Pick<MetricDeclaration, 'occupancy' | 'each'>>

/** Declares them for `places` places: `stream_0_ssrc` and so on. */
export function streamMetrics(places: number): Declarations {
  const declared: Declarations = {}
  for (let place = 0; place < places; place++) {
    for (const [field, declaration] of Object.entries(OF_A_STREAM)) {
      const occupancy: Name = `stream_${place}_packets`
      const each = { name: `stream_${field}`, label: 'stream', value: String(place) }
      declared[`stream_${place}_${field as Field}`] = { ...declaration, occupancy, each }
    }
  }
  return declared
}

/** The gauges of one place. */
export class StreamGauges {
  private readonly gauges: Record<Field, Gauge>

  constructor(metrics: Readonly<Record<Name, Gauge>>, place: number) {
    const fields = Object.keys(OF_A_STREAM) as Field[]
    const of = fields.map((field) => [field, metrics[`stream_${place}_${field}`]] as const)
    this.gauges = Object.fromEntries(of) as Record<Field, Gauge>
  }

  /** Shows a stream as it is now. */
  show(stream: RtpStream): void {
    const { gauges } = this
    const { packets, lost } = stream
    gauges.ssrc.set(stream.ssrc >>> 0)
    gauges.payload_type.set(stream.payloadType)
    gauges.clock_rate.set(stream.clock.rate)
    gauges.packets.set(packets)
    gauges.lost_packets.set(lost)
    gauges.loss.set(lost > 0 ? lost / (lost + packets) : 0)
    gauges.duplicate_packets.set(stream.duplicates)
    gauges.reordered_packets.set(stream.reordered)
    gauges.jitter.set(stream.jitter)
    gauges.bits_per_second.set(stream.bitsPerSecond)
  }
}
