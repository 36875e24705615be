/** What `penstock impair` shows of its link: both directions in an interval, or over all. */
import { DIRECTIONS, type Direction } from '../node/impairment-profiles.ts'
import { namesOf, observerOf, type Step } from './impairment.ts'
import { type LinkCounts, LinkMeter } from './link-meter.ts'
import { number, scaled, table } from './terminal.ts'

/** One direction in an interval. */
interface Reading {
  readonly counts: LinkCounts
  /** Of the interval. */
  readonly change: LinkCounts
  /** Of the interval, s. */
  readonly seconds: number
  /** Mean, ms. */
  readonly delay: number | undefined
}

export type Readings = Readonly<Record<Direction, Reading>>

const EMPTY: LinkCounts = {
  receivedPackets: 0,
  receivedBytes: 0,
  sentPackets: 0,
  lostPackets: 0,
  queueFullPackets: 0,
  droppedPackets: 0,
  heldPackets: 0,
}

/** Reads both directions of a run again and again. */
export class LinkReader {
  private readonly meters: Readonly<Record<Direction, LinkMeter>>
  private readonly before: Record<Direction, LinkCounts> = { up: EMPTY, down: EMPTY }

  constructor(region: SharedArrayBuffer, steps: Readonly<Record<Direction, readonly Step[]>>) {
    const meter = (direction: Direction, from: string, to: string) =>
      new LinkMeter(region, {
        ...{ from, to, between: namesOf(direction, steps[direction]), observer: observerOf(direction) },
      })
    this.meters = { up: meter('up', 'clients', 'server'), down: meter('down', 'server', 'clients') }
  }

  /** The interval since the last call, which was `seconds` ago. */
  interval(seconds: number): Readings {
    return this.both((direction) => {
      const counts = this.countsOf(direction)
      const before = this.before[direction]
      this.before[direction] = counts
      const change = { ...counts }
      for (const name of Object.keys(counts) as (keyof LinkCounts)[]) change[name] = counts[name] - before[name]
      return { counts, change, seconds, delay: this.meters[direction].delay() }
    })
  }

  /** All of the run, which took so many seconds. */
  total(seconds: number): Readings {
    return this.both((direction) => {
      const counts = this.countsOf(direction)
      return { counts, change: counts, seconds, delay: this.meters[direction].delay(true) }
    })
  }

  private countsOf(direction: Direction): LinkCounts {
    this.meters[direction].look()
    return this.meters[direction].counts()
  }

  private both(reading: (direction: Direction) => Reading): Readings {
    return { up: reading('up'), down: reading('down') }
  }
}

/** As JSON tells them; the delay is in ms, null when nothing came through. */
export function readingFields({ up, down }: Readings) {
  const fields = ({ counts, delay }: Reading) => ({
    ...counts,
    delayMs: delay === undefined ? null : Number(delay.toFixed(3)),
  })
  return { up: fields(up), down: fields(down) }
}

function portion(part: number, whole: number): string {
  if (whole === 0) return '-'
  const percent = (100 * part) / whole
  return percent > 0 && percent < 0.05 ? '<0.1 %' : `${percent.toFixed(1)} %`
}

const delayText = (delay: number | undefined): string => (delay === undefined ? '-' : `${delay.toFixed(1)} ms`)

const rate = (amount: number, seconds: number): string => scaled(amount / Math.max(seconds, 1e-3))

export function readingTable(readings: Readings): string {
  const right = { align: 'right' } as const
  const titles = ['PKT/S', 'BIT/S', 'LOST', 'QUEUE FULL', 'DROPPED', 'DELAY', 'UNDER WAY', 'PACKETS', 'SENT']
  const isDropping = DIRECTIONS.some((direction) => readings[direction].change.droppedPackets > 0)
  // In a narrow terminal it goes first, unless there is something to see.
  const spare = { spare: !isDropping }
  return table(
    [{ title: '' }, ...titles.map((title) => ({ title, ...right, ...(title === 'DROPPED' && spare) }))],
    DIRECTIONS.map((direction) => {
      const { counts, change, seconds, delay } = readings[direction]
      return [
        direction,
        rate(change.receivedPackets, seconds),
        rate(change.receivedBytes * 8, seconds),
        portion(change.lostPackets, change.receivedPackets),
        portion(change.queueFullPackets, change.receivedPackets),
        portion(change.droppedPackets, change.receivedPackets),
        delayText(delay),
        number(counts.heldPackets),
        number(counts.receivedPackets),
        number(counts.sentPackets),
      ]
    }),
  )
}

/** The same in one line for logs. */
export function readingLine(readings: Readings): string {
  return DIRECTIONS.map((direction) => {
    const { change, seconds, delay } = readings[direction]
    const { receivedPackets: packets, lostPackets, queueFullPackets, droppedPackets } = change
    const wanted = `lost ${portion(lostPackets, packets)}  queue full ${portion(queueFullPackets, packets)}`
    const drops = `${wanted}  dropped ${portion(droppedPackets, packets)}`
    return `${direction} ${rate(packets, seconds)} pkt/s  ${drops}  delay ${delayText(delay)}`
  }).join('  |  ')
}
