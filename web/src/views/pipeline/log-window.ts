/** Which lines of a long list can be seen. */

/** Lines beyond the edges that are there already when one scrolls. */
const MARGIN = 10

/** The first line and the one after the last, of `count` of `row` pixels each, seen from `top` on. */
export function linesInView(
  count: number,
  { top, height }: { readonly top: number; readonly height: number },
  row: number,
): { readonly from: number; readonly to: number } {
  const last = Math.min(count, Math.ceil((top + height) / row) + MARGIN)
  const seen = Math.ceil(height / row) + 2 * MARGIN
  return { from: Math.max(0, Math.min(Math.floor(top / row) - MARGIN, count - seen)), to: Math.max(0, last) }
}
