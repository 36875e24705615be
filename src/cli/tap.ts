/** `penstock pipelines tap`: packets on their way through a run, shown or written as pcapng. */
import type { Client } from '@penstock/client'
import { openCaptureFile } from './capture-file.ts'
import type { Failure } from './failure.ts'
import { type Format, interruption } from './options.ts'
import { type LinkType, looksLikeIp, PcapngWriter } from './pcapng-writer.ts'
import { untilAborted } from './streams.ts'
import { cut, named, paint, print, printDataLine, printJson, terminalWidth } from './terminal.ts'

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

/** Shows or writes packets until `count` have come, the run has ended, or Ctrl-C. */
export async function tap(client: Client, node: string, run: string, options: TapOptions): Promise<void> {
  const { component, input, count = Number.POSITIVE_INFINITY, snapLength, write } = options
  const over = new AbortController()
  const signal = AbortSignal.any([interruption(), over.signal])
  const request = { nodeId: node, runId: run, component, side: input ? 'INPUT' : 'OUTPUT', snapLength } as const
  const stream = untilAborted(client.openCaptureStream(request, { signal }), signal)
  let taker: Taker | undefined
  let links: readonly string[] = []
  let dropped = 0
  let failure: Failure | undefined
  try {
    for await (const message of stream) {
      if (message.links.length > 0) links = message.links
      // The file is made once the node has agreed.
      taker ??= write === undefined ? lines(options.output) : await file(write, options.linkType, signal)
      if (taker === undefined) break
      dropped = Number(message.dropped)
      const packets = message.packets.slice(0, count - taker.taken).map(({ time, length, data, link }) => ({
        time: BigInt(time),
        length,
        data: Buffer.from(data, 'base64'),
        link: links[link] ?? '',
      }))
      if (!(await taker.take(packets)) || taker.taken === count) over.abort()
    }
  } finally {
    failure = await taker?.end()
  }
  const taken = taker?.taken ?? 0
  const summary = `${taken} packets captured${dropped > 0 ? `, ${dropped} dropped for want of room` : ''}`
  if (options.output === 'json' && write !== undefined && write !== '-') printJson({ captured: taken, dropped })
  else process.stderr.write(`${summary}\n`)
  if (failure) throw failure
}

function lines(output: Format): Taker {
  let taken = 0
  return {
    get taken() {
      return taken
    },
    async take(packets) {
      for (const packet of packets) {
        if (output === 'json') printDataLine(json(packet))
        else print(line(packet))
      }
      taken += packets.length
      return true
    },
    end: async () => undefined,
  }
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
  const facts = `${at}${micros}  ${named(link)}  ${length} B  `
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
