/** `penstock impair`: a bad link between two UDP endpoints, in the foreground. */
import { randomUUID } from 'node:crypto'
import { type Command, InvalidArgumentError } from 'commander'
import { components } from '../dataplane/components/registry.ts'
import { checkPipelineConfig } from '../dataplane/engine/check.ts'
import type { LogLine, RunEnd, RunHandle } from '../dataplane/engine/run.ts'
import { readDuration } from '../text/durations.ts'
import { messageOf } from '../text/error-message.ts'
import { spanText } from './durations.ts'
import { Failure, UsageFailure } from './failure.ts'
import {
  DIRECTIONS,
  type Direction,
  linkText,
  loadProfile,
  namesOf,
  type Overrides,
  overridden,
  pipelineOf,
  profileNames,
  profileOf,
  refused,
  type Step,
} from './impairment.ts'
import { type LinkCounts, LinkMeter } from './link-meter.ts'
import { duration, type Format, interruption, pause, whole, withOutput } from './options.ts'
import { LiveRegion, number, paint, print, printJson, scaled, table } from './terminal.ts'

interface ImpairOptions extends Overrides {
  profile?: string
  listen?: string
  forward?: string
  seed?: number
  duration?: number
  list?: boolean
  print?: boolean
  json?: boolean
  output: Format
}

/** How often the packets under way are counted, for their mean delay; a run publishes as often. */
const LOOK_MS = 10

/** Reads `5%` or `0.05`; gives a share from 0 to 1. */
function share(given: string): number {
  const [, digits, sign] = /^(\d+(?:\.\d+)?|\.\d+)(%?)$/.exec(given) ?? []
  const value = Number(digits) / (sign === '%' ? 100 : 1)
  if (digits === undefined || value > 1) {
    throw new InvalidArgumentError('A loss is written 5% or 0.05, from 0 to 100 %.')
  }
  return value
}

/** Reads `40ms`, `1s`; gives whole milliseconds, 0 too. */
function milliseconds(given: string): number {
  const value = readDuration(given)
  if (value === undefined || !Number.isInteger(value)) {
    throw new InvalidArgumentError('A time is written 40ms or 1s, in whole milliseconds.')
  }
  return value
}

const PER_MEGABIT: Readonly<Record<string, number>> = { k: 1e-3, M: 1, G: 1e3 }

/** Reads `500k`, `10M`, `1G` bit/s; gives Mbit/s. */
function bitRate(given: string): number {
  const [, digits, unit = ''] = /^(\d+(?:\.\d+)?)([kMG])$/.exec(given) ?? []
  const value = Number(digits) * (PER_MEGABIT[unit] ?? Number.NaN)
  if (!(value >= 0.001 && value <= 1_000_000)) {
    throw new InvalidArgumentError('A rate is written 500k, 10M or 1G (bit/s), from 1k to 1000G.')
  }
  return value
}

function list(format: Format): void {
  const profiles = profileNames().map(profileOf)
  if (format === 'json') {
    printJson(profiles)
    return
  }
  const columns = [{ title: 'PROFILE' }, { title: 'UP' }, { title: 'DOWN' }, { title: 'DESCRIPTION', wrap: true }]
  print(
    table(
      columns,
      profiles.map(({ name, up, down, description }) => [name, linkText(up), linkText(down), description]),
    ),
  )
}

/** One direction in an interval. */
interface Reading {
  counts: LinkCounts
  /** Of the interval. */
  change: LinkCounts
  /** Per second. */
  rate: (value: number) => number
  delay: number | undefined
}

const EMPTY: LinkCounts = {
  receivedPackets: 0,
  receivedBytes: 0,
  sentPackets: 0,
  lostPackets: 0,
  queueFullPackets: 0,
  droppedPackets: 0,
  heldPackets: 0,
}

/** Counts of a direction as JSON tells them; the delay is in ms, null when nothing came through. */
const reported = ({ counts, delay }: Reading) => ({
  ...counts,
  delayMs: delay === undefined ? null : Number(delay.toFixed(2)),
})

/** Both directions of a run. */
class Link {
  private readonly meters: Readonly<Record<Direction, LinkMeter>>
  private readonly before: Record<Direction, LinkCounts> = { up: EMPTY, down: EMPTY }
  private last: number
  private readonly looking: NodeJS.Timeout

  constructor(region: SharedArrayBuffer, steps: Readonly<Record<Direction, readonly Step[]>>) {
    this.last = performance.now()
    const between = (direction: Direction) => namesOf(direction, steps[direction])
    this.meters = {
      up: new LinkMeter(region, { from: 'clients', to: 'server', between: between('up') }, this.last),
      down: new LinkMeter(region, { from: 'server', to: 'clients', between: between('down') }, this.last),
    }
    this.looking = setInterval(() => this.look(), LOOK_MS)
  }

  private look(): void {
    const now = performance.now()
    for (const direction of DIRECTIONS) this.meters[direction].look(now)
  }

  /** Both directions since the last call, or, in the end, since the beginning. */
  read(total?: { seconds: number }): Record<Direction, Reading> {
    this.look()
    const now = performance.now()
    const seconds = total?.seconds ?? (now - this.last) / 1000
    this.last = now
    const reading = (direction: Direction): Reading => {
      const counts = this.meters[direction].counts()
      const before = total === undefined ? this.before[direction] : EMPTY
      this.before[direction] = counts
      const change = { ...counts }
      for (const name of Object.keys(counts) as (keyof LinkCounts)[]) change[name] = counts[name] - before[name]
      return {
        counts,
        change,
        rate: (value) => value / Math.max(seconds, 1e-3),
        delay: this.meters[direction].delay(total !== undefined),
      }
    }
    return { up: reading('up'), down: reading('down') }
  }

  close(): void {
    clearInterval(this.looking)
  }
}

function portion(part: number, whole: number): string {
  return whole === 0 ? '·' : `${((100 * part) / whole).toFixed(1)} %`
}

const delayText = (delay: number | undefined): string => (delay === undefined ? '·' : `${delay.toFixed(1)} ms`)

function readingTable(readings: Record<Direction, Reading>): string {
  const right = { align: 'right' } as const
  const titles = ['PKT/S', 'BIT/S', 'LOST', 'QUEUE FULL', 'DELAY', 'UNDER WAY', 'PACKETS', 'SENT']
  return table(
    [{ title: '' }, ...titles.map((title) => ({ title, ...right }))],
    DIRECTIONS.map((direction) => {
      const { counts, change, rate, delay } = readings[direction]
      return [
        direction,
        scaled(rate(change.receivedPackets)),
        scaled(rate(change.receivedBytes) * 8),
        portion(change.lostPackets, change.receivedPackets),
        portion(change.queueFullPackets, change.receivedPackets),
        delayText(delay),
        number(counts.heldPackets),
        number(counts.receivedPackets),
        number(counts.sentPackets),
      ]
    }),
  )
}

/** The same in one line for logs. */
function readingLine(readings: Record<Direction, Reading>): string {
  return DIRECTIONS.map((direction) => {
    const { change, rate, delay } = readings[direction]
    const { receivedPackets: packets, lostPackets, queueFullPackets } = change
    const drops = `lost ${portion(lostPackets, packets)}  queue full ${portion(queueFullPackets, packets)}`
    return `${direction} ${scaled(rate(packets))} pkt/s  ${drops}  delay ${delayText(delay)}`
  }).join('  |  ')
}

/** Tells every second what the link does until the run has ended. */
async function watch(handle: RunHandle, link: Link, live: LiveRegion, json: boolean): Promise<RunEnd> {
  const over = new AbortController()
  handle.ended.then(() => over.abort())
  const started = performance.now()
  for (let tick = 1; !over.signal.aborted; tick++) {
    await pause(started + tick * 1000 - performance.now(), over.signal)
    if (over.signal.aborted) break
    const readings = link.read()
    const seconds = Math.round((performance.now() - started) / 1000)
    const elapsed = spanText(seconds)
    if (json) print(JSON.stringify({ seconds, up: reported(readings.up), down: reported(readings.down) }))
    else if (live.available) live.draw(`${paint(elapsed, 'bold')}\n${readingTable(readings)}`)
    else print(`${elapsed}  ${readingLine(readings)}`)
  }
  live.clear()
  return await handle.ended
}

/** The link that the options describe. */
async function linkOf(options: ImpairOptions): Promise<Record<Direction, Step[]>> {
  const { profile, loss, delay, jitter, rate, queue } = options
  if ([profile, loss, delay, jitter, rate, queue].every((given) => given === undefined)) {
    throw new UsageFailure('say what the link is like: --profile NAME (--list shows them), --loss, --delay or --rate')
  }
  const { up, down } = profile === undefined ? { up: [], down: [] } : await loadProfile(profile)
  return { up: overridden(up, options), down: overridden(down, options) }
}

async function impair(options: ImpairOptions): Promise<void> {
  const json = options.json === true || options.output === 'json'
  if (options.list) {
    list(json ? 'json' : 'table')
    return
  }
  const { listen, forward } = options
  if (listen === undefined || forward === undefined) {
    throw new UsageFailure('--listen ADDRESS (clients send there) and --forward ADDRESS (the server) are both needed')
  }
  if (listen === forward) throw new UsageFailure('--listen and --forward are the same address: it would feed itself')
  const steps = await linkOf(options)
  const ends = { listen, forward, ...(options.seed === undefined ? {} : { seed: options.seed }) }
  const written = pipelineOf(steps, ends)
  const { config, problems } = checkPipelineConfig(JSON.stringify(written), components)
  if (!config) throw refused(problems)
  if (options.print) {
    printJson(written)
    return
  }
  const live = new LiveRegion(process.stdout)
  let bound = listen
  const onLog = (lines: LogLine[]) => {
    for (const { level, component, message, fields } of lines) {
      if (component === 'clients' && typeof fields.address === 'string' && level === 'INFO') bound = fields.address
      if (level !== 'WARN' && level !== 'ERROR' && level !== 'FATAL') continue
      live.clear()
      process.stderr.write(`${paint(level, level === 'WARN' ? 'yellow' : 'red', process.stderr)} ${message}\n`)
    }
  }
  const { openRunPool } = await import('../dataplane/product.ts')
  const pool = openRunPool({ warm: 1, maximum: 1 })
  try {
    const stop = interruption()
    const handle = pool.start({ runId: randomUUID(), config, performanceMode: false, level: 'INFO' }, onLog)
    stop.addEventListener('abort', () => handle.stop())
    if (stop.aborted) handle.stop()
    try {
      await handle.running
    } catch (error) {
      throw new Failure(`the link did not start: ${messageOf(error)}`)
    }
    const started = performance.now()
    const link = new Link(handle.region, steps)
    const timer = options.duration === undefined ? null : setTimeout(() => handle.stop(), options.duration)
    const description = { up: linkText(steps.up), down: linkText(steps.down) }
    if (json) print(JSON.stringify({ listen: bound, forward, ...description }))
    else print(`${bound} → ${forward}: ${description.up}\n${forward} → ${bound}: ${description.down}`)
    const end = await watch(handle, link, live, json)
    if (timer) clearTimeout(timer)
    link.close()
    const seconds = (performance.now() - started) / 1000
    const readings = link.read({ seconds })
    const [up, down] = [reported(readings.up), reported(readings.down)]
    if (json) print(JSON.stringify({ outcome: end.outcome, error: end.error, seconds, up, down }))
    else print(`${readingTable(readings)}\n\n${end.outcome.toLowerCase()} after ${spanText(seconds)}`)
    if (end.outcome === 'FAILED') throw new Failure(`the run failed: ${end.error}`)
  } finally {
    await pool.close()
  }
}

export function addImpair(program: Command): void {
  withOutput(program.command('impair'))
    .summary('put a bad link between two UDP endpoints')
    .description(
      'Carries datagrams from --listen to --forward and the answers back, over an emulated link: that of a profile, or one made of ' +
        '--loss, --delay, --jitter and --rate, which hold for both directions and take the place of what the profile has. The first client heard ' +
        'at --listen is the only one served; others are ignored, and the first of them is told of. For another client start it again, ' +
        'or a second one at another address. Ctrl-C ends it with a summary.',
    )
    .option('-p, --profile <name|file>', 'a profile of --list, or a file of your own by its path')
    .option('-l, --listen <address>', 'where the client sends to, ip:port; port 0 lets the system choose')
    .option('-f, --forward <address>', 'where the server is, ip:port')
    .option('--loss <share>', 'share of the packets that are lost, at random: 5%, 0.05', share)
    .option('--delay <time>', 'one-way delay: 40ms', milliseconds)
    .option('--jitter <time>', 'largest deviation from the delay, either way; order is kept: 10ms', milliseconds)
    .option('--rate <rate>', 'bit/s of UDP payload: 500k, 10M, 1G', bitRate)
    .option(
      '--queue <packets>',
      'packets that wait for the rate (1000, or as the profile has it)',
      whole(0, 2 ** 31 - 1),
    )
    .option('-s, --seed <number>', 'the same losses and jitter again for the same packets', whole(0, 2 ** 31 - 1))
    .option('-d, --duration <time>', 'stop after this time: 10s, 500ms, 5m', duration)
    .option('--list', 'list the profiles')
    .option('--print', 'print the pipeline configuration and do not run it')
    .option('--json', 'a line of JSON a second; the same as -o json')
    .action(impair)
}
