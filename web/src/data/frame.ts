/** Work that is done once a frame, however often it is asked for. */

const waiting = new Set<() => void>()
let isScheduled = false

/** Calls `work` before the next frame is drawn; while the page is hidden, within a second. */
export function onFrame(work: () => void): void {
  waiting.add(work)
  if (isScheduled) return
  isScheduled = true
  schedule(() => {
    isScheduled = false
    const due = [...waiting]
    waiting.clear()
    for (const each of due) each()
  })
}

function schedule(run: () => void): void {
  if (typeof document === 'undefined' || document.hidden) setTimeout(run, 0)
  else requestAnimationFrame(run)
}
