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

/**
 * The same of a node that is reached through the one that serves the page; where that is away itself, the frame says so. One that does not
 * tell of its pipelines any more is asked again when that is wished: by then another node may answer in its place.
 */
export function NodeLost({ nodeId }: { readonly nodeId: string }) {
  const pipelines = pipelinesOf(nodeId)
  const { status, error } = useLive(pipelines)
  const own = useLive(hubState).status
  if (status === 'failed') {
    return (
      <p className="banner" role="status">
        <strong>The pipelines of the node are not known any more:</strong> {error?.message}. What is shown may be old.{' '}
        <button type="button" className="button small" onClick={() => pipelines.retry()}>
          Try again
        </button>
      </p>
    )
  }
  return <ConnectionLost isLost={status === 'lost' && own !== 'lost'} error={error} />
}
