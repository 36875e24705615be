/** Asks before what cannot be undone. */
import { useEffect, useRef, useSyncExternalStore } from 'react'
import { keepKeys } from './keys.ts'

export interface Question {
  readonly title: string
  readonly text: string
  /** What the button says that does it. */
  readonly action: string
}

let open: (Question & { readonly answer: (yes: boolean) => void }) | undefined
const listeners = new Set<() => void>()

/** Resolves with what was answered; a dialog that is closed otherwise is a no. */
export function confirm(question: Question): Promise<boolean> {
  return new Promise((resolve) => {
    open?.answer(false)
    change({ ...question, answer: resolve })
  })
}

function change(next: typeof open): void {
  open = next
  for (const listener of listeners) listener()
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

function answer(yes: boolean): void {
  open?.answer(yes)
  change(undefined)
}

/** Shows the question that is open; once in the page. */
export function ConfirmDialog() {
  const question = useSyncExternalStore(subscribe, () => open)
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    if (question === undefined) return
    dialog.current?.showModal()
    return keepKeys()
  }, [question])
  if (question === undefined) return null
  // Closed by itself it gives the focus back to where it was, and tells what it was closed with; Escape closes with nothing.
  const close = (result: string): void => dialog.current?.close(result)
  return (
    <dialog
      ref={dialog}
      className="dialog"
      aria-labelledby="confirm-title"
      onClose={({ currentTarget }) => answer(currentTarget.returnValue === 'yes')}
    >
      <h2 id="confirm-title">{question.title}</h2>
      <p>{question.text}</p>
      <div className="actions">
        <button type="button" className="button" onClick={() => close('')}>
          Cancel
        </button>
        <button type="button" className="button danger" onClick={() => close('yes')}>
          {question.action}
        </button>
      </div>
    </dialog>
  )
}
