/** Times and spans as people read them. */
import { readDuration } from '../text/durations.ts'
import { number } from './terminal.ts'

const NANOSECONDS: Record<string, number> = { ns: 1, us: 1e3, µs: 1e3, ms: 1e6, s: 1e9 }

/** Whether a metric of this unit is a time. */
export const isTime = (unit: string): boolean => Object.hasOwn(NANOSECONDS, unit)

/** `450 ns`, `12.3 µs`, `7.61 ms`, `1.2 s`, `2 min 5 s`: a value that is given in `unit`. */
export function timeText(value: number, unit: string): string {
  const nanoseconds = value * (NANOSECONDS[unit] as number)
  const magnitude = Math.abs(nanoseconds)
  if (magnitude >= 60e9) return spanText(nanoseconds / 1e9)
  for (const [name, size] of [
    ['s', 1e9],
    ['ms', 1e6],
    ['µs', 1e3],
  ] as const) {
    // What would be rounded up to 1000 of the unit is one of the next.
    if (magnitude >= 0.9995 * size) return `${Number((nanoseconds / size).toPrecision(3))} ${name}`
  }
  return nanoseconds === 0 ? '0' : `${Number(nanoseconds.toPrecision(3))} ns`
}

/** `3.01 s`, `1 min 5 s`, `1 h 30 min`, `2 d 3 h`: the two greatest parts. */
export function spanText(seconds: number): string {
  if (Math.abs(seconds) < 59.995) return `${number(Math.round(seconds * 100) / 100)} s`
  const parts: string[] = []
  let rest = Math.round(Math.abs(seconds))
  for (const [name, size] of [
    ['d', 86_400],
    ['h', 3_600],
    ['min', 60],
    ['s', 1],
  ] as const) {
    const amount = Math.floor(rest / size)
    rest -= amount * size
    if (amount > 0) parts.push(`${amount} ${name}`)
    // The parts shown follow each other: not "1 h 5 s".
    else if (parts.length > 0) break
    if (parts.length === 2) break
  }
  return (seconds < 0 ? '-' : '') + parts.join(' ')
}

/** What tc(8) and people write in the place of the units of `readDuration`. */
const UNITS: Readonly<Record<string, string>> = { msec: 'ms', msecs: 'ms', sec: 's', secs: 's', min: 'm' }

/** As `readDuration` of what somebody types: `100msec`, `10sec` and `5min` too. */
export function typedDuration(text: string): number | undefined {
  return readDuration(text.replace(/(?<=\d)(msecs?|secs?|min)(?=\d|$)/g, (unit) => UNITS[unit] as string))
}
