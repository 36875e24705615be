/** Numbers with units, as people read them. */
import { bitRateText, HUGE, prefixOf, shareText, stepOf } from './format.ts'

const TIMES = [
  [1e9, 's'],
  [1e6, 'ms'],
  [1e3, 'µs'],
] as const

/** Nanoseconds in these. */
const NANOSECONDS: Readonly<Record<string, number>> = { ns: 1, us: 1e3, ms: 1e6, s: 1e9 }

/** `12.3 k`, `0.25`, `950`: three digits, or all of a whole number below 10,000. */
export function numberText(value: number): string {
  const size = Math.abs(value)
  if (Number.isInteger(value) && size < 10_000) return String(value)
  const [step, prefix] = prefixOf(value)
  return prefix === '' ? rounded(value) : `${rounded(value / step)} ${prefix}`
}

/** What comes to so many per second: whole ones; of what comes more seldom, as between samples of a long interval, not none. */
export function perSecondText(rate: number): string {
  return numberText(rate < 1 ? rate : Math.round(rate))
}

/** A value with its unit: times in the unit that suits, shares in per cent. */
export function quantityText(value: number, unit = ''): string {
  if (!Number.isFinite(value)) return '–'
  if (unit === 'fraction' || unit === 'probability') return shareText(value)
  if (unit === 'bit/s') return bitRateText(value)
  const factor = NANOSECONDS[unit]
  if (value === 0 && factor !== undefined) return `0 ${unit}`
  if (factor !== undefined && unit !== 's') return timeText(value * factor)
  if (unit === '') return numberText(value)
  const text = numberText(value)
  // A prefix stands before the unit that it belongs to, and before no word.
  return /[PTGMk]$/.test(text) && /^(bytes?|B|bit)/.test(unit)
    ? `${text}${unit.replace(/^bytes?/, 'B')}`
    : `${text} ${unit}`
}

/** A number as it is written, with its unit. */
export function exactText(value: number | string, unit = ''): string {
  return unit === '' || unit === 'probability' || unit === 'fraction' ? String(value) : `${value} ${unit}`
}

function timeText(nanoseconds: number): string {
  const [step, name] = stepOf<string>(nanoseconds, TIMES) ?? [1, 'ns']
  return `${rounded(nanoseconds / step)} ${name}`
}

function rounded(value: number): string {
  const size = Math.abs(value)
  if (value === 0) return '0'
  if (size < 0.01) return value.toPrecision(2)
  if (size >= HUGE) return value.toExponential(2)
  return String(Number(value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2)))
}
