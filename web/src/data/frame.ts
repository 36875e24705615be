/** Work that many ask for and that is done together, each piece once, however often it is asked for. */

/** Milliseconds over which figures are gathered that change many a second and that nobody reads that fast. */
const GATHERING = 250

/** Calls `work` before the next frame is drawn; while the page is hidden, within a second. */
export const onFrame = together(nextFrame)

/** Calls `work` within a quarter of a second, in one frame with all that was asked for meanwhile; the browser rests in between. */
export const onQuarterSecond = together((run) => setTimeout(() => nextFrame(run), GATHERING))

function together(schedule: (run: () => void) => void): (work: () => void) => void {
  const waiting = new Set<() => void>()
  return (work) => {
    const isScheduled = waiting.size > 0
    waiting.add(work)
    if (isScheduled) return
    schedule(() => {
      const due = [...waiting]
      waiting.clear()
      for (const each of due) each()
    })
  }
}

function nextFrame(run: () => void): void {
  if (typeof document === 'undefined' || document.hidden) setTimeout(run, 0)
  else requestAnimationFrame(run)
}
