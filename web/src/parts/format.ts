/** Numbers and times as people read them. */

const STEPS = [
  [1e9, 'G'],
  [1e6, 'M'],
  [1e3, 'k'],
] as const

/** `1.25 Mbit/s`; three digits. */
export function bitRateText(bitsPerSecond: number): string {
  const [step, prefix] = STEPS.find(([step]) => bitsPerSecond >= step) ?? [1, '']
  return `${digits(bitsPerSecond / step)} ${prefix}bit/s`
}

/** `2.5 %` of a share from 0 to 1. */
export function shareText(share: number): string {
  return `${share > 0 && share < 0.0001 ? '<0.01' : digits(share * 100)} %`
}

function digits(value: number): string {
  return value === 0 ? '0' : value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2)
}

const SPANS = [
  [86_400, 'day'],
  [3_600, 'hour'],
  [60, 'minute'],
  [1, 'second'],
] as const

/** `5 minutes ago`; both in milliseconds since 1970. */
export function agoText(then: number, now: number): string {
  const seconds = Math.max(0, Math.round((now - then) / 1000))
  const [step, unit] = SPANS.find(([step]) => seconds >= step) ?? [1, 'second']
  const count = Math.floor(seconds / step)
  return count === 0 ? 'just now' : `${countText(count, unit)} ago`
}

/** `1 problem`, `2 problems`. */
export function countText(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}

/** A fingerprint in groups of four, to be compared by eye. */
export function groupsOf(fingerprint: string): string {
  return fingerprint.match(/.{1,4}/g)?.join(' ') ?? ''
}

const DIRECTION_MARKS = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/

/** A name for use within a sentence: one with marks of writing direction (Unicode TR 9) turns nothing around but itself. */
export function nameText(name: string): string {
  return DIRECTION_MARKS.test(name) ? `\u2068${name.replaceAll('\u2069', '')}\u2069` : name
}
