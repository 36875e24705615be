/** The time, for texts such as "5 minutes ago". */
import { useEffect, useState } from 'react'
import { nodeNow } from '../data/clock.ts'

const STEP = 20_000

/** Milliseconds since 1970 by the node's clock, some times a minute. */
export function useMinute(): number {
  const [now, setNow] = useState(nodeNow)
  useEffect(() => {
    const timer = setInterval(() => setNow(nodeNow()), STEP)
    return () => clearInterval(timer)
  }, [])
  return now
}
