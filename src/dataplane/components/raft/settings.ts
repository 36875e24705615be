/** The configuration of raft, and what the transport makes of it: times in ns, rates in bytes per ns. */
import { type Static, Type } from '@sinclair/typebox'
import { NS_PER_MS } from '../../engine/clock.ts'
import type { Fault } from '../../engine/component.ts'
import { Bool, Enumeration, Input, List, Milliseconds, Optional, Output, Uint32 } from '../../engine/schema.ts'
import { DATA_HEADER_BYTES } from './packet.ts'

/** What a carrier takes whose MTU is not known: the payload of a UDP datagram in 1,500 bytes of IPv4. */
const DEFAULT_PACKET_BYTES = 1472
const MIN_PACKET_BYTES = 128
/** Longest packet that is put together of pieces, bytes, where nothing else in the run has longer ones; a longer MTU says nothing of a path. */
export const MAX_JOINED_PACKET = 9_216
/** Longest payload of a packet of the application. */
export const MAX_PAYLOAD = 65_535
const DEFAULT_TIMEOUT_MS = 100
/** A transit packet that would wait longer to be sent is dropped: in a queue that stands, and in a burst, such as follows when what a lost packet has held up is acknowledged at once. */
export const MAX_TRANSIT_QUEUE_NS = 100 * NS_PER_MS
export const MAX_TRANSIT_BURST_NS = 200 * NS_PER_MS
/** One that has waited longer than that is dropped too: since it came carriers have been left, or have become slower. */
export const MAX_TRANSIT_WAIT_NS = 400 * NS_PER_MS

const DeliveryPolicy = (early: string) =>
  Enumeration(
    `ON_TIMEOUT: in order, each when its time is over; ON_ORDERED: ${early}`,
    'DeliveryPolicy',
    {
      ON_TIMEOUT: 0,
      ON_ORDERED: 1,
    },
    { default: 'ON_ORDERED' },
  )

const Stream = Type.Object(
  {
    input: Optional(Input('Connection point to read packets of the application from.')),
    output: Optional(Output('Connection point to write packets of the application to.')),
    stream_handle: Uint32('Number of the stream, the same at both ends.'),
    realtime_stream: Optional(
      Type.Object(
        {
          timeout: Milliseconds('How long a packet is useful; 0: 100.'),
          delivery_policy: DeliveryPolicy('as soon as everything before is there or given up.'),
          extension: Optional(
            Type.Object(
              {
                fixed_replication: Optional(
                  Type.Object(
                    {},
                    { description: 'Every packet goes out on every carrier; nothing is repaired otherwise.' },
                  ),
                ),
              },
              { description: 'Another way to repair.' },
            ),
          ),
        },
        { description: 'Packets that are useful for a limited time; this or transit_stream.' },
      ),
    ),
    transit_stream: Optional(
      Type.Object(
        {
          bonding_delay: Milliseconds('How long reordering across carriers is held for at most.'),
          delivery_policy: DeliveryPolicy('as soon as everything before is there or has been waited for.'),
        },
        { description: 'Tunnelled TCP or QUIC; this or realtime_stream.' },
      ),
    ),
  },
  { exactlyOne: ['realtime_stream', 'transit_stream'] },
)

const Carrier = Type.Object({
  input: Input('Connection point to read packets of the path from.'),
  output: Output('Connection point to write packets of the path to.'),
  carrier_handle: Uint32('Number of the carrier, the same at both ends.'),
  bandwidth_priority: Optional(Uint32('Higher is filled first; unset: 0.')),
  max_bandwidth_mbps: Optional(Uint32('Most that is sent on it; unset or 0: no limit.', { unit: 'Mbit/s' })),
  auto_bandwidth_estimation: Bool('Measure what the path carries and send no more.', { default: false }),
})

export const RaftConfig = Type.Object({
  streams: List(Stream, 'Packets of the application, in both directions.'),
  carriers: List(Carrier, 'Paths to the other end.'),
  max_packet_bytes: Optional(
    Uint32(
      `Longest packet on a carrier, ${MIN_PACKET_BYTES} bytes at least; unset or 0: the least MTU of what the carriers lead to, less what components between write around a packet; ${DEFAULT_PACKET_BYTES} where that is not known or over ${MAX_JOINED_PACKET}.`,
      { maximum: 65_535, unit: 'bytes' },
    ),
  ),
})

type Config = Static<typeof RaftConfig>

export interface StreamSettings {
  handle: number
  realtime: boolean
  /** Each packet leaves when its time is over, not before. */
  onTimeout: boolean
  /** Timeout of a realtime stream, bonding delay of a transit stream, ns. */
  hold: number
  /** How long after it came in a packet is worth sending, ns. */
  life: number
  replicated: boolean
}

export interface CarrierSettings {
  handle: number
  priority: number
  /** Bytes per ns; Infinity without limit. */
  limit: number
  measured: boolean
}

export function streamSettings({
  stream_handle,
  realtime_stream,
  transit_stream,
}: Config['streams'][number]): StreamSettings {
  const handle = stream_handle | 0
  if (realtime_stream) {
    const { timeout, delivery_policy, extension } = realtime_stream
    const hold = (timeout || DEFAULT_TIMEOUT_MS) * NS_PER_MS
    const replicated = extension?.fixed_replication !== undefined
    return { handle, realtime: true, onTimeout: delivery_policy === 'ON_TIMEOUT', hold, life: hold, replicated }
  }
  const hold = (transit_stream?.bonding_delay ?? 0) * NS_PER_MS
  const onTimeout = transit_stream?.delivery_policy === 'ON_TIMEOUT'
  return { handle, realtime: false, onTimeout, hold, life: hold + MAX_TRANSIT_WAIT_NS, replicated: false }
}

export function carrierSettings(carrier: Config['carriers'][number]): CarrierSettings {
  const { carrier_handle, bandwidth_priority = 0, max_bandwidth_mbps = 0, auto_bandwidth_estimation } = carrier
  return {
    handle: carrier_handle | 0,
    priority: bandwidth_priority,
    limit: max_bandwidth_mbps === 0 ? Number.POSITIVE_INFINITY : max_bandwidth_mbps / 8000,
    measured: auto_bandwidth_estimation,
  }
}

type LongestFrom = (output: string) => number

/** Longest packet on a carrier, bytes; `longestFrom` says what goes on whole from an output. */
export function packetBytes({ max_packet_bytes, carriers }: Config, longestFrom: LongestFrom): number {
  if (max_packet_bytes) return max_packet_bytes
  const least = Math.min(...carriers.map(({ output }) => longestFrom(output)))
  return least > MAX_JOINED_PACKET ? DEFAULT_PACKET_BYTES : Math.max(least, MIN_PACKET_BYTES)
}

/** Bytes of a payload that a packet of a carrier has room for; a repair is as long as the longest data packet, and four more. */
export const pieceBytes = (bytes: number): number => bytes - DATA_HEADER_BYTES - 4

/** Carriers on which packets of the longest kind would be dropped. */
export function raftWarnings(config: Config, longestFrom: LongestFrom): Fault[] {
  const bytes = packetBytes(config, longestFrom)
  return config.carriers.flatMap(({ output }, i) => {
    const most = longestFrom(output)
    if (most >= bytes) return []
    const advice = config.max_packet_bytes ? `set max_packet_bytes to that, or leave it unset` : 'raise the MTU there'
    const message = `packets of up to ${bytes} bytes are sent, but what this leads to takes ${most} of one and drops those that are longer; ${advice}`
    return [{ pointer: `/carriers/${i}/output`, message }]
  })
}

/** Rules over several fields. */
export function raftFaults(config: Config): Fault[] {
  const faults: Fault[] = []
  config.streams.forEach(({ realtime_stream, transit_stream }, i) => {
    if ((realtime_stream === undefined) !== (transit_stream === undefined)) return
    const message = `a stream is one of realtime_stream and transit_stream, here ${realtime_stream ? 'both are' : 'neither is'} set`
    faults.push({ pointer: `/streams/${i}`, message })
  })
  faults.push(
    ...repeated(
      'streams',
      'stream_handle',
      config.streams.map(({ stream_handle }) => stream_handle),
    ),
  )
  faults.push(
    ...repeated(
      'carriers',
      'carrier_handle',
      config.carriers.map(({ carrier_handle }) => carrier_handle),
    ),
  )
  const { max_packet_bytes: bytes } = config
  if (bytes && bytes < MIN_PACKET_BYTES) {
    const message = `${bytes} bytes leave no room for headers and reports; at least ${MIN_PACKET_BYTES} are needed`
    faults.push({ pointer: '/max_packet_bytes', message })
  }
  return faults
}

function repeated(list: string, field: string, handles: readonly number[]): Fault[] {
  const first = new Map<number, number>()
  return handles.flatMap((handle, i) => {
    const before = first.get(handle)
    if (before === undefined) {
      first.set(handle, i)
      return []
    }
    const message = `handle ${handle} is that of ${list}/${before} too; give each its own`
    return [{ pointer: `/${list}/${i}/${field}`, message }]
  })
}
