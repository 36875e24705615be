/** Short messages at the edge: what was done, what failed. Good news goes by itself, failures wait to be closed. */
import { useSyncExternalStore } from 'react'
import { failureOf } from '../data/live.ts'
import { Failure } from './failure.tsx'

interface Toast {
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
  change([...toasts, { ...toast, id: lastId }].slice(-MAX_TOASTS))
  return lastId
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
