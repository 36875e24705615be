/** The time, for texts such as "5 minutes ago". */
import { useEffect, useState } from 'react'

const STEP = 20_000

/** Milliseconds since 1970, some times a minute. */
export function useMinute(): number {
  const [now, setNow] = useState(Date.now)
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), STEP)
    return () => clearInterval(timer)
  }, [])
  return now
}
