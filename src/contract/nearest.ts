/** The known name nearest to an unknown one, for error messages. */

/** The name of `known` with the smallest edit distance (Levenshtein) to `name`, when it is small enough to be a slip. */
export function nearest(name: string, known: Iterable<string>): string | undefined {
  // Names this long are no slip, and the distance is quadratic in their length.
  if (name.length > 64) return undefined
  let best: string | undefined
  let least = Math.max(2, Math.floor(name.length / 3)) + 1
  for (const candidate of known) {
    const distance = editDistance(name.toLowerCase(), candidate.toLowerCase())
    if (distance < least) {
      least = distance
      best = candidate
    }
  }
  return best
}

function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const substitution = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min((row[j] as number) + 1, (next[j - 1] as number) + 1, substitution))
    }
    row = next
  }
  return row[b.length] as number
}
