/** Keys of the editor: Ctrl+Z and Ctrl+Shift+Z (or Ctrl+Y) undo and redo, where no text is being written. */
import { useEffect } from 'react'
import type { Editing } from './editing.ts'
import type { View } from './toolbar.tsx'

export function useShortcuts({ undo, redo }: Editing, view: View): void {
  useEffect(() => {
    if (view === 'text') return
    const onKey = (event: KeyboardEvent): void => {
      const isTyping = event.target instanceof Element && event.target.closest('input, textarea, select') !== null
      if (isTyping || !(event.ctrlKey || event.metaKey) || event.altKey) return
      const key = event.key.toLowerCase()
      const step = key === 'y' || (key === 'z' && event.shiftKey) ? redo : key === 'z' ? undo : undefined
      if (step === undefined) return
      event.preventDefault()
      step()
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [undo, redo, view])
}
