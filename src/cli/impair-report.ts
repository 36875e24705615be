/** Says what `penstock impair` has to say: tables and lines for people, or lines of JSON. */
import { withoutBrackets } from '../contract/address.ts'
import type { LogLine, RunEnd } from '../dataplane/engine/run.ts'
import type { Direction } from '../node/impairment-profiles.ts'
import { spanText } from './durations.ts'
import { type Readings, readingFields, readingLine, readingTable } from './impair-readings.ts'
import { linkText, type Step } from './impairment.ts'
import { dataLine, harmless, LiveRegion, paint } from './terminal.ts'

/** `127.0.0.1:7000` and `[::1]:7000` in their parts. */
export function hostAndPort(address: string): { host: string; port: number } {
  const at = address.lastIndexOf(':')
  return { host: withoutBrackets(address.slice(0, at)), port: Number(address.slice(at + 1)) }
}

/** What a warning of packets that came and were not taken says here, where the cure is an option; undefined for any other line. */
function untakenText({ component, fields: { metric, mtu, slots } }: LogLine): string | undefined {
  const where = component === 'clients' ? 'come to --listen' : 'come from --forward'
  if (metric === 'received_oversize_packets') {
    return `datagrams that ${where} are longer than ${mtu} bytes and dropped: --mtu BYTES carries longer ones`
  }
  if (metric === 'kernel_dropped_packets') {
    const cure = 'run fewer programs beside it, or raise net.core.rmem_max (sysctl) where it has no CAP_NET_ADMIN'
    return `datagrams that ${where} are dropped by the kernel, as they come faster than they are read: ${cure}`
  }
  if (metric !== 'received_without_slot_packets') return undefined
  const cure = 'a shorter --delay or --queue has fewer under way; the smaller --mtu, the more slots, up to 131,072'
  return `datagrams ${where} while all ${slots} packet slots are in use and are dropped: ${cure}`
}

/** Says what impair itself has to say, on standard output, or on standard error where that is a command's. */
export class ImpairReport {
  private readonly stream: NodeJS.WriteStream
  private readonly json: boolean
  private readonly live: LiveRegion
  /** Between the beginning and the end. */
  private readonly isQuiet: boolean

  constructor(stream: NodeJS.WriteStream, json: boolean, isQuiet: boolean) {
    this.stream = stream
    this.json = json
    this.live = new LiveRegion(stream)
    this.isQuiet = isQuiet && !json
  }

  ready(listen: string, forward: string, steps: Readonly<Record<Direction, readonly Step[]>>): void {
    if (!this.json) {
      this.say(`${listen} → ${forward}: ${linkText(steps.up)}\n${forward} → ${listen}: ${linkText(steps.down)}`)
      return
    }
    const [near, far] = [hostAndPort(listen), hostAndPort(forward)]
    this.line({
      state: 'READY',
      ...{ listen, listenHost: near.host, listenPort: near.port },
      ...{ forward, forwardHost: far.host, forwardPort: far.port },
      link: steps,
    })
  }

  /** `elapsed` in seconds. */
  interval(readings: Readings, elapsed: number): void {
    const text = spanText(elapsed)
    if (this.json) this.line({ state: 'RUNNING', seconds: elapsed, ...readingFields(readings) })
    else if (this.isQuiet) return
    else if (this.live.available) this.live.draw(`${paint(text, 'bold')}\n${readingTable(readings)}`)
    else this.say(`${text}  ${readingLine(readings)}`)
  }

  ended({ outcome, error }: RunEnd, readings: Readings, seconds: number, exitCode: number | undefined): void {
    this.live.clear()
    if (this.json) this.line({ state: 'ENDED', outcome, error, exitCode, seconds, ...readingFields(readings) })
    else this.say(`${readingTable(readings)}\n\n${outcome.toLowerCase()} after ${spanText(seconds)}`)
  }

  /** A warning or an error of the run. */
  complaint(line: LogLine): void {
    this.complain(line.level, untakenText(line) ?? line.message)
  }

  /** What keeps impair from doing what it is asked, and does not end it. */
  warning(text: string): void {
    this.complain('WARN', text)
  }

  private complain(level: string, text: string): void {
    this.live.clear()
    process.stderr.write(`${paint(level, level === 'WARN' ? 'yellow' : 'red', process.stderr)} ${harmless(text)}\n`)
  }

  private line(fields: object): void {
    this.say(dataLine(fields))
  }

  private say(text: string): void {
    this.stream.write(`${harmless(text)}\n`)
  }
}
