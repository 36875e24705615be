/** Which lines two texts have in common: a longest common subsequence (Wagner and Fischer 1974). */

export interface DiffLine {
  readonly sign: '=' | '-' | '+'
  readonly text: string
}

/** Cells of the table above which a text counts as replaced as a whole. */
const MAX_CELLS = 4_000_000

/** The lines of `after` and those that only `before` has (`-`), in order. */
export function lineDiff(before: string, after: string): DiffLine[] {
  const [old, now] = [before.split('\n'), after.split('\n')]
  let head = 0
  while (head < Math.min(old.length, now.length) && old[head] === now[head]) head++
  let tail = 0
  while (tail < Math.min(old.length, now.length) - head && old.at(-1 - tail) === now.at(-1 - tail)) tail++
  const same = (text: string): DiffLine => ({ sign: '=', text })
  return [
    ...now.slice(0, head).map(same),
    ...middle(old.slice(head, old.length - tail), now.slice(head, now.length - tail)),
    ...now.slice(now.length - tail).map(same),
  ]
}

function middle(old: readonly string[], now: readonly string[]): DiffLine[] {
  const width = now.length + 1
  const removed = (text: string): DiffLine => ({ sign: '-', text })
  const added = (text: string): DiffLine => ({ sign: '+', text })
  if ((old.length + 1) * width > MAX_CELLS) return [...old.map(removed), ...now.map(added)]
  /** Longest common subsequence of what follows line `i` and line `j`. */
  const common = new Uint32Array((old.length + 1) * width)
  const at = (i: number, j: number): number => common[i * width + j] as number
  for (let i = old.length - 1; i >= 0; i--) {
    for (let j = now.length - 1; j >= 0; j--) {
      common[i * width + j] = old[i] === now[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1))
    }
  }
  const lines: DiffLine[] = []
  let i = 0
  let j = 0
  while (i < old.length || j < now.length) {
    if (i < old.length && j < now.length && old[i] === now[j]) {
      lines.push({ sign: '=', text: now[j] as string })
      i++
      j++
    } else if (i < old.length && (j === now.length || at(i + 1, j) >= at(i, j + 1)))
      lines.push(removed(old[i++] as string))
    else lines.push(added(now[j++] as string))
  }
  return lines
}

/** Only what differs, with `around` lines before and after it; undefined stands for lines left out. */
export function excerpt(lines: readonly DiffLine[], around = 3): (DiffLine | undefined)[] {
  const isNear = lines.map((_, i) =>
    lines.slice(Math.max(0, i - around), i + around + 1).some(({ sign }) => sign !== '='),
  )
  return lines.flatMap((line, i) => (isNear[i] ? [line] : isNear[i - 1] || i === 0 ? [undefined] : []))
}
