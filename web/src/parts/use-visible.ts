/** Whether an element can be seen: what nobody sees need not be followed. */
import { type RefObject, useEffect, useRef, useState } from 'react'

/** Pixels beyond the edge within which it counts as seen, so that it is there when it comes. */
const MARGIN = '200px'

/** What is told whether an element can be seen. One observer has all: with one of its own each of 2,000 costs the browser twice as much. */
const told = new Map<Element, (isVisible: boolean) => void>()
const observer = new IntersectionObserver(
  (entries) => {
    for (const { target, isIntersecting } of entries) told.get(target)?.(isIntersecting)
  },
  { rootMargin: MARGIN },
)

export function useVisible<Kind extends HTMLElement>(): readonly [RefObject<Kind | null>, boolean] {
  const element = useRef<Kind>(null)
  const [isVisible, setVisible] = useState(false)
  useEffect(() => {
    const observed = element.current
    if (observed === null) return
    told.set(observed, setVisible)
    observer.observe(observed)
    return () => {
      observer.unobserve(observed)
      told.delete(observed)
    }
  }, [])
  return [element, isVisible]
}
