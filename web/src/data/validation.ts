/** What the node says of settings that are being edited. */
import { type PenstockError, type SettingsProblem, validatePipeline } from '@penstock/client'
import { useEffect, useState } from 'react'
import { failureOf, useLive } from './live.ts'
import { pipelinesOf } from './pipelines.ts'
import { node } from './session.ts'
import type { Settings } from './settings.ts'

/** Milliseconds of no typing before the node is asked. */
const PAUSE = 300
/** Milliseconds until a node that was not reached is asked again. */
const RETRY = 2_000

export interface Validation {
  readonly problems: readonly SettingsProblem[]
  readonly warnings: readonly SettingsProblem[]
  /** The node has not answered for the settings as they are now. */
  readonly isPending: boolean
  /** Why the node could not be asked. */
  readonly error?: PenstockError
}

const NOTHING: Validation = { problems: [], warnings: [], isPending: true }

/** The problems of `settings`: those of the last answer while the next one is awaited. */
export function useValidation(nodeId: string, settings: Settings): Validation {
  const [validation, setValidation] = useState(NOTHING)
  const isReached = useLive(pipelinesOf(nodeId)).status === 'live'
  // biome-ignore lint/correctness/useExhaustiveDependencies: what was told by a node that is away, or is back, is asked for again
  useEffect(() => {
    const gone = new AbortController()
    setValidation((last) => ({ ...last, isPending: true }))
    const ask = async (): Promise<void> => {
      try {
        const { problems, warnings } = await validatePipeline(node, { nodeId, ...settings }, { signal: gone.signal })
        if (!gone.signal.aborted) setValidation({ problems, warnings, isPending: false })
      } catch (error) {
        if (gone.signal.aborted) return
        const failure = failureOf(error)
        setValidation({ ...NOTHING, isPending: false, error: failure })
        if (failure.code === 'UNAVAILABLE') timer = setTimeout(() => void ask(), RETRY)
      }
    }
    let timer = setTimeout(() => void ask(), PAUSE)
    return () => {
      clearTimeout(timer)
      gone.abort()
    }
  }, [nodeId, settings, isReached])
  return validation
}
