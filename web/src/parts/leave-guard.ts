/** Asks before a view is left that holds what is not stored. */
import { useEffect } from 'react'
import { guardRoute } from '../app/routes.ts'
import { confirm } from './confirm.tsx'

/** While `isDirty`, another address is gone to only when that is confirmed; closing the page asks in the browser's own words. */
export function useLeaveGuard(isDirty: boolean): void {
  useEffect(() => {
    if (!isDirty) return
    let isLeaving = false
    const mayLeave = (here: string): boolean => {
      if (isLeaving) return true
      const there = location.hash
      history.pushState(null, '', here)
      void confirm({
        title: 'Leave without saving?',
        text: 'What you have changed here is not stored and will be lost.',
        action: 'Leave',
      }).then((yes) => {
        if (!yes) return
        isLeaving = true
        location.hash = there
      })
      return false
    }
    const onUnload = (event: BeforeUnloadEvent): void => event.preventDefault()
    const unguard = guardRoute(mayLeave)
    addEventListener('beforeunload', onUnload)
    return () => {
      unguard()
      removeEventListener('beforeunload', onUnload)
    }
  }, [isDirty])
}
