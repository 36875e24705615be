/** `penstock pipelines tap`: packets on their way through a run, shown or written as pcapng. */
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import type { Writable } from 'node:stream'
import { finished } from 'node:stream/promises'
import type { Client } from '@penstock/client'
import { Failure } from './failure.ts'
import { type Format, interruption } from './options.ts'
import { type LinkType, looksLikeIp, PcapngWriter } from './pcapng-writer.ts'
import { untilAborted } from './streams.ts'
import { cut, paint, print, printDataLine, printJson, terminalWidth } from './terminal.ts'

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
  take(packet: Tapped): Promise<void>
  end(): Promise<void>
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
  let taken = 0
  let dropped = 0
  try {
    for await (const message of stream) {
      if (message.links.length > 0) links = message.links
      // The file is made once the node has agreed.
      taker ??= write === undefined ? lines(options.output) : await file(write, options.linkType)
      dropped = Number(message.dropped)
      for (const { time, length, data, link } of message.packets) {
        if (taken === count) break
        taken++
        await taker.take({ time: BigInt(time), length, data: Buffer.from(data, 'base64'), link: links[link] ?? '' })
      }
      if (taken === count) over.abort()
    }
  } finally {
    await taker?.end()
  }
  const summary = `${taken} packets captured${dropped > 0 ? `, ${dropped} dropped for want of room` : ''}`
  if (options.output === 'json' && write !== undefined && write !== '-') printJson({ captured: taken, dropped })
  else process.stderr.write(`${summary}\n`)
}

function lines(output: Format): Taker {
  return {
    async take({ time, length, data, link }) {
      if (output === 'json') {
        printDataLine({ time: String(time), link, length, data: data.toString('base64') })
        return
      }
      const at = new Date(Number(time / 1_000_000n)).toISOString().slice(11, -1)
      const micros = String((time / 1_000n) % 1_000n).padStart(3, '0')
      const bytes = data
        .subarray(0, SHOWN_BYTES)
        .toString('hex')
        .replaceAll(/(....)/g, '$1 ')
        .trim()
      const facts = `${at}${micros}  ${link}  ${length} B  `
      const room = Math.max(terminalWidth() - facts.length, 9)
      print(facts + paint(cut(`${bytes}${data.length > SHOWN_BYTES ? ' …' : ''}`, room), 'dim'))
    },
    async end() {},
  }
}

async function file(name: string, linkType: LinkType | undefined): Promise<Taker> {
  const target: Writable = name === '-' ? process.stdout : createWriteStream(name)
  if (name !== '-') {
    await once(target, 'open').catch((error: Error) => {
      throw new Failure(`cannot write ${name}: ${error.message}`)
    })
  }
  const writer = new PcapngWriter()
  const put = async (bytes: Buffer) => {
    if (!target.write(bytes)) await once(target, 'drain')
  }
  await put(writer.header())
  return {
    async take(packet) {
      const type = linkType ?? (looksLikeIp(packet.data, packet.length) ? 'raw' : 'user')
      await put(writer.packet(packet, packet.link, type))
    },
    async end() {
      if (name === '-') return
      target.end()
      await finished(target)
    },
  }
}
