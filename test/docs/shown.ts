/** Output as a page shows it against output as it came. */

/** Where they part: a line of the page, and the line in its place. */
export interface Difference {
  readonly shown: string
  readonly told: string
}

const LEFT_OUT = '…'
/** How far a measured number may be from the one that the page shows: a share of it, or this much. */
const NEAR_SHARE = 0.3
const NEAR = 1.5

/** What no two runs have in common. */
const MASKS: readonly [RegExp, string][] = [
  [/[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}/g, '<id>'],
  [/\b[a-z2-7]{26}\b/g, '<node>'],
  [/(\d{4}-\d\d-\d\dT)?\d\d:\d\d:\d\d\.\d{3}Z/g, '<time>'],
  [/\bseed[= ]\d{6,}/g, 'seed <seed>'],
  // The CPU that a run was given.
  [/<id> +\d+ /g, '<id>  <cpu> '],
]
const masked = (line: string): string =>
  MASKS.reduce((text, [what, name]) => text.replaceAll(what, name), line)
    // Columns are as wide as the ids in them.
    .replaceAll(/ {2,}/g, '  ')
    .trimEnd()

const NUMBER = /\d[\d,]*(\.\d+)?/g
const numbersOf = (line: string): number[] =>
  [...line.matchAll(NUMBER)].map(([each]) => Number(each.replaceAll(',', '')))

function same(shown: string, told: string, measured: boolean): boolean {
  const [ours, theirs] = [masked(shown), masked(told)]
  if (!measured || ours === theirs) return ours === theirs
  const bare = (line: string) => line.replaceAll(NUMBER, '#').replaceAll(/ +/g, ' ')
  if (bare(ours) !== bare(theirs)) return false
  const there = numbersOf(theirs)
  return numbersOf(ours).every((number, i) => {
    const distance = Math.abs(number - (there[i] as number))
    return distance <= Math.max(NEAR, NEAR_SHARE * number)
  })
}

const linesOf = (text: string): string[] => text.replace(/\n+$/, '').split('\n')

/**
 * How output differs from what a page shows of it; undefined: it does not.
 *
 * @param shown a line `…` stands for any number of lines
 * @param measured numbers are to be near those shown, not equal to them
 */
export function differenceOf(shown: string, told: string, measured: boolean): Difference | undefined {
  const actual = linesOf(told)
  let at = 0
  let anywhere = false
  for (const line of linesOf(shown)) {
    if (line === LEFT_OUT) {
      anywhere = true
      continue
    }
    const from = at
    while (anywhere && at < actual.length && !same(line, actual[at] as string, measured)) at++
    if (at >= actual.length || !same(line, actual[at] as string, measured)) {
      return { shown: line, told: anywhere ? actual.slice(from).join('\n') : (actual[at] ?? '') }
    }
    at++
    anywhere = false
  }
  return anywhere || at === actual.length ? undefined : { shown: '', told: actual.slice(at).join('\n') }
}
