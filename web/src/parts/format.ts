/** Numbers and times as people read them. */

const PREFIXES = [
  [1e15, 'P'],
  [1e12, 'T'],
  [1e9, 'G'],
  [1e6, 'M'],
  [1e3, 'k'],
] as const

/** Of steps from the greatest down the one that suits a value: what three digits would round up to a step has that one. */
export function stepOf<Name>(
  value: number,
  steps: readonly (readonly [number, Name])[],
): readonly [number, Name] | undefined {
  return steps.find(([step]) => Math.abs(value) >= 0.9995 * step)
}

/** The prefix that suits a value, and what it stands for. */
export const prefixOf = (value: number): readonly [number, string] => stepOf<string>(value, PREFIXES) ?? [1, '']

/** `1.25 Mbit/s`; three digits. */
export function bitRateText(bitsPerSecond: number): string {
  const [step, prefix] = prefixOf(bitsPerSecond)
  return `${digits(bitsPerSecond / step)} ${prefix}bit/s`
}

/** `2.5 %` of a share from 0 to 1; of what an expression makes, any number. */
export function shareText(share: number): string {
  if (share !== 0 && Math.abs(share) < 0.0001) return share > 0 ? '<0.01 %' : '>-0.01 %'
  if (Math.abs(share) < HUGE) return `${digits(share * 100)} %`
  // A hundred times the greatest numbers is none any more.
  const [mantissa, exponent] = share.toExponential(2).split('e')
  return `${mantissa}e+${Number(exponent) + 2} %`
}

/** From here on digits are no help: what remains is the power of ten. */
export const HUGE = 1e9

function digits(value: number): string {
  const size = Math.abs(value)
  if (value === 0) return '0'
  if (size >= HUGE * 100) return value.toExponential(2)
  return size >= 100 ? value.toFixed(0) : size >= 10 ? value.toFixed(1) : value.toFixed(2)
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
