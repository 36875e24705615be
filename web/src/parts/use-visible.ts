/** Whether an element can be seen: what nobody sees need not be followed. */
import { type RefObject, useEffect, useRef, useState } from 'react'

/** Pixels beyond the edge within which it counts as seen, so that it is there when it comes. */
const MARGIN = '200px'

export function useVisible<Element extends HTMLElement>(): readonly [RefObject<Element | null>, boolean] {
  const element = useRef<Element>(null)
  const [isVisible, setVisible] = useState(false)
  useEffect(() => {
    if (element.current === null) return
    const observer = new IntersectionObserver((entries) => setVisible(entries.some((entry) => entry.isIntersecting)), {
      rootMargin: MARGIN,
    })
    observer.observe(element.current)
    return () => observer.disconnect()
  }, [])
  return [element, isVisible]
}
