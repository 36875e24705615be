/** Asks before a view is left that holds what is not stored. */
import { useEffect } from 'react'
import { guardRoute } from '../app/routes.ts'
import { confirm } from './confirm.tsx'

/** Asks for the view that is open; undefined: it holds nothing. */
let ask: (() => Promise<boolean>) | undefined

/** Whether the page may be left: asks where something in it is not stored. After a yes the browser does not ask again. */
export function mayLeavePage(): Promise<boolean> {
  return ask?.() ?? Promise.resolve(true)
}

/** While `isDirty`, another address is gone to only when that is confirmed; closing the page asks in the browser's own words. */
export function useLeaveGuard(isDirty: boolean): void {
  useEffect(() => {
    if (!isDirty) return
    let isLeaving = false
    const askOnce = async (): Promise<boolean> => {
      isLeaving ||= await confirm({
        title: 'Leave without saving?',
        text: 'What you have changed here is not stored and will be lost.',
        action: 'Leave',
      })
      return isLeaving
    }
    const mayLeave = (here: string): boolean => {
      if (isLeaving) return true
      const there = location.hash
      history.pushState(null, '', here)
      void askOnce().then((yes) => {
        if (yes) location.hash = there
      })
      return false
    }
    const onUnload = (event: BeforeUnloadEvent): void => {
      if (!isLeaving) event.preventDefault()
    }
    const unguard = guardRoute(mayLeave)
    ask = askOnce
    addEventListener('beforeunload', onUnload)
    return () => {
      unguard()
      if (ask === askOnce) ask = undefined
      removeEventListener('beforeunload', onUnload)
    }
  }, [isDirty])
}
