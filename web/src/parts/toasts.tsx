/** Short messages at the edge: what was done, what failed. Good news goes by itself, failures wait to be closed. */
import { useSyncExternalStore } from 'react'
import { failureOf } from '../data/live.ts'
import { Failure } from './failure.tsx'

export interface Toast {
  readonly id: number
  readonly text?: string
  readonly error?: unknown
}

const MAX_TOASTS = 4
/** Milliseconds for which good news is shown. */
const SHOWN = 4_000

let toasts: readonly Toast[] = []
let lastId = 0
const listeners = new Set<() => void>()

/** Says that something was done. */
export function tell(text: string): void {
  const id = add({ text })
  setTimeout(() => close(id), SHOWN)
}

/** Says that something failed; `what` begins the sentence, as in "The pipeline was not started". */
export function tellFailure(what: string, error: unknown): void {
  add({ text: what, error })
}

function add(toast: Omit<Toast, 'id'>): number {
  lastId++
  change(withToast(toasts, { ...toast, id: lastId }))
  return lastId
}

/** With one more; of more than there is room for the oldest good news gives way, the oldest failure only where all are failures. */
export function withToast(before: readonly Toast[], toast: Toast): readonly Toast[] {
  const all = [...before, toast]
  if (all.length <= MAX_TOASTS) return all
  const goes = Math.max(
    0,
    all.findIndex(({ error }) => error === undefined),
  )
  return all.toSpliced(goes, 1)
}

function close(id: number): void {
  change(toasts.filter((toast) => toast.id !== id))
}

function change(next: readonly Toast[]): void {
  toasts = next
  for (const listener of listeners) listener()
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

export function Toasts() {
  const shown = useSyncExternalStore(subscribe, () => toasts)
  return (
    <div className="toasts" role="status">
      {shown.map(({ id, text, error }) => (
        <div className="toast" key={id}>
          {error === undefined ? <p>{text}</p> : <Failure error={failureOf(error)} {...(text && { title: text })} />}
          <button type="button" className="button plain icon" aria-label="Close" onClick={() => close(id)}>
            ×
          </button>
        </div>
      ))}
    </div>
  )
}
