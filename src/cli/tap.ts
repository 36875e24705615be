/** `penstock pipelines tap`: packets on their way through a run, shown or written as pcapng. */
import { once } from 'node:events'
import type { CapturedPacket, CapturedPackets, Client } from '@penstock/client'
import { openCaptureFile } from './capture-file.ts'
import type { Failure } from './failure.ts'
import { type Format, interruption } from './options.ts'
import { type LinkType, looksLikeIp, PcapngWriter } from './pcapng-writer.ts'
import { untilAborted } from './streams.ts'
import { cut, named, paint, print, printDataLine, printJson, terminalWidth } from './terminal.ts'
import { WaitingPackets } from './waiting-packets.ts'

/** Bytes of a packet shown on a line. */
const SHOWN_BYTES = 24

export interface TapOptions {
  readonly component: string
  readonly input?: boolean
  readonly count?: number
  readonly snapLength?: number
  /** A file, or `-`. */
  readonly write?: string
  readonly linkType?: LinkType
  readonly output: Format
}

interface Tapped {
  readonly time: bigint
  readonly length: number
  readonly data: Buffer
  readonly link: string
}

/** Where the packets go. */
interface Taker {
  /** How many it has taken. */
  readonly taken: number
  /** Whether it has taken all of them, and takes more. */
  take(packets: readonly Tapped[]): Promise<boolean>
  /** Gives what kept it from taking more, if that is a failure. */
  end(): Promise<Failure | undefined>
}

/**
 * Shows or writes packets until `count` have come, the run has ended, or Ctrl-C. The stream is read at once, whoever takes the packets: what finds no room
 * until then is dropped and counted.
 */
export async function tap(client: Client, node: string, run: string, options: TapOptions): Promise<void> {
  const { component, input, count = Number.POSITIVE_INFINITY, snapLength, write } = options
  const stop = interruption()
  const enough = new AbortController()
  const signal = AbortSignal.any([stop, enough.signal])
  const request = { nodeId: node, runId: run, component, side: input ? 'INPUT' : 'OUTPUT', snapLength } as const
  const messages = untilAborted(client.openCaptureStream(request, { signal }), signal)
  const waiting = new WaitingPackets<Tapped>()
  let links: readonly string[] = []
  let dropped = 0
  let taker: Taker | undefined
  const read = async (first: IteratorResult<CapturedPackets, void>) => {
    try {
      for (let next = first; !next.done; next = await messages.next()) {
        const message = next.value
        if (message.links.length > 0) links = message.links
        dropped = Number(message.dropped)
        waiting.add(message.packets.slice(0, count - waiting.accepted).map((packet) => tapped(packet, links)))
        if (waiting.accepted === count) enough.abort()
      }
    } finally {
      waiting.end()
    }
  }
  const deliver = async () => {
    try {
      taker = write === undefined ? lines(options.output, stop) : await file(write, options.linkType, stop)
      if (taker === undefined) return
      for (let packets = await waiting.next(); packets; packets = await waiting.next()) {
        if (!(await taker.take(packets))) break
      }
    } finally {
      enough.abort()
    }
    const failure = await taker.end()
    if (failure) throw failure
  }
  // The file is made once the node has agreed.
  const first = await messages.next()
  const ends = await Promise.allSettled(first.done ? [] : [deliver(), read(first)])
  const failures = ends.flatMap((end) => (end.status === 'rejected' ? [end.reason] : []))
  if (taker !== undefined || stop.aborted || failures.length === 0) {
    summarize({ captured: taker?.taken ?? 0, dropped: dropped + waiting.dropped }, options)
  }
  if (failures.length > 0) throw failures[0]
}

function tapped({ time, length, data, link }: CapturedPacket, links: readonly string[]): Tapped {
  return { time: BigInt(time), length, data: Buffer.from(data, 'base64'), link: links[link] ?? '' }
}

/** The last line, of failures too: of what the capture has, and of what it lacks. */
function summarize(counts: { captured: number; dropped: number }, { output, write }: TapOptions): void {
  const { captured, dropped } = counts
  if (output === 'json' && write !== undefined && write !== '-') printJson(counts)
  else
    process.stderr.write(`${captured} packets captured${dropped > 0 ? `, ${dropped} dropped for want of room` : ''}\n`)
}

/** At `signal` it takes no more. */
function lines(output: Format, signal: AbortSignal): Taker {
  let taken = 0
  return {
    get taken() {
      return taken
    },
    async take(packets) {
      if (signal.aborted) return false
      for (const packet of packets) {
        if (output === 'json') printDataLine(json(packet))
        else print(line(packet))
      }
      taken += packets.length
      await untilRead(signal)
      return true
    },
    end: async () => undefined,
  }
}

/** Resolves once standard output has room again, or `signal` aborts. */
async function untilRead(signal: AbortSignal): Promise<void> {
  if (process.stdout.writableNeedDrain) await once(process.stdout, 'drain', { signal }).catch(() => {})
}

const json = ({ time, link, length, data }: Tapped) => ({
  time: String(time),
  link,
  length,
  data: data.toString('base64'),
})

function line({ time, length, data, link }: Tapped): string {
  const at = new Date(Number(time / 1_000_000n)).toISOString().slice(11, -1)
  const micros = String((time / 1_000n) % 1_000n).padStart(3, '0')
  const bytes = data
    .subarray(0, SHOWN_BYTES)
    .toString('hex')
    .replaceAll(/(....)/g, '$1 ')
    .trim()
  const facts = `${at}${micros}Z  ${named(link)}  ${length} B  `
  const room = Math.max(terminalWidth() - facts.length, 9)
  return facts + paint(cut(`${bytes}${data.length > SHOWN_BYTES ? ' …' : ''}`, room), 'dim')
}

/** Undefined when `signal` aborts before there is somebody to write for. */
async function file(name: string, linkType: LinkType | undefined, signal: AbortSignal): Promise<Taker | undefined> {
  const target = await openCaptureFile(name, signal)
  if (target === undefined) return undefined
  const writer = new PcapngWriter()
  let taken = 0
  const hasHeader = (await target.write([writer.header()])) === 1
  return {
    get taken() {
      return taken
    },
    async take(packets) {
      const pieces = packets.map((packet) =>
        writer.packet(packet, packet.link, linkType ?? (looksLikeIp(packet.data, packet.length) ? 'raw' : 'user')),
      )
      const whole = await target.write(pieces)
      taken += whole
      return hasHeader && whole === pieces.length
    },
    end: () => target.close(),
  }
}
