/** Says that what is shown may be old, and that it is tried again; gone once it is not. */
import type { PenstockError } from '@penstock/client'
import { useEffect, useState } from 'react'
import { hubState } from '../data/hub-state.ts'
import { useLive } from '../data/live.ts'
import { pipelinesOf } from '../data/pipelines.ts'

/** Milliseconds for which a break is not worth a word. */
const PATIENCE = 800

interface Props {
  readonly isLost: boolean
  readonly error: PenstockError | undefined
}

export function ConnectionLost({ isLost, error }: Props) {
  const [isShown, setShown] = useState(false)
  useEffect(() => {
    if (!isLost) {
      setShown(false)
      return
    }
    const timer = setTimeout(() => setShown(true), PATIENCE)
    return () => clearTimeout(timer)
  }, [isLost])
  return (
    <div role="status">
      {isShown && (
        <p className="banner">
          <strong>Connection lost, trying again:</strong> {error?.message}. What is shown may be old.
        </p>
      )}
    </div>
  )
}

/** The same of a node that is reached through the one that serves the page; where that is away itself, the frame says so. */
export function NodeLost({ nodeId }: { readonly nodeId: string }) {
  const { status, error } = useLive(pipelinesOf(nodeId))
  const own = useLive(hubState).status
  return <ConnectionLost isLost={status === 'lost' && own !== 'lost'} error={error} />
}
