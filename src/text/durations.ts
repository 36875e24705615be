/** Durations as they are written in settings and on the command line: `500ms`, `10s`, `1h30m`. */

const MILLISECONDS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** The milliseconds of a duration, its parts added up; undefined when the text is none, or of more milliseconds than can be counted one by one. */
export function readDuration(text: string): number | undefined {
  if (!/^(\d+(\.\d+)?(ms|s|m|h|d))+$/.test(text)) return undefined
  let sum = 0
  for (const [, amount, unit = ''] of text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d)/g)) {
    sum += Number(amount) * (MILLISECONDS[unit] as number)
  }
  return sum <= Number.MAX_SAFE_INTEGER ? sum : undefined
}

/** Milliseconds in the largest unit in which they are whole: `1s`, `1500ms`. */
export function writeDuration(milliseconds: number): string {
  for (const unit of ['d', 'h', 'm', 's'] as const) {
    const size = MILLISECONDS[unit] as number
    if (milliseconds >= size && milliseconds % size === 0) return `${milliseconds / size}${unit}`
  }
  return `${milliseconds}ms`
}
