/** The configuration of a pipeline while values are being set in it, one update at a time. */
import { type Pipeline, updatePipeline } from '@penstock/client'
import { useEffect, useRef, useState } from 'react'
import { Applier, type Values } from '../../data/applier.ts'
import { withValues } from '../../data/places.ts'
import { node } from '../../data/session.ts'
import { updateOf } from '../../data/settings.ts'
import { tellFailure } from '../../parts/toasts.tsx'

interface Applied {
  /** As the node has it. */
  readonly jsonConfig: string
  /** What is set and not taken over yet, by JSON pointer. */
  readonly waiting: Values
  readonly set: (values: Values) => void
}

/** What was answered, and what was known when it was. */
interface Answer {
  readonly known: string
  readonly jsonConfig: string
}

export function useApplied(nodeId: string, pipeline: Pipeline): Applied {
  const [waiting, setWaiting] = useState<Values>(new Map())
  const [answer, setAnswer] = useState<Answer>()
  // The answer to an update may be there before the stream tells of it.
  const jsonConfig = answer?.known === pipeline.jsonConfig ? answer.jsonConfig : pipeline.jsonConfig
  const latest = useRef({ pipeline, jsonConfig })
  latest.current = { pipeline, jsonConfig }
  const applier = useRef<Applier>(null)
  useEffect(() => {
    const apply = async (values: Values): Promise<void> => {
      const { pipeline: before, jsonConfig: base } = latest.current
      const settings = { ...updateOf(nodeId, before), jsonConfig: withValues(base, values) }
      const { pipeline: after } = await updatePipeline(node, settings)
      const now = { known: latest.current.pipeline.jsonConfig, jsonConfig: after?.jsonConfig ?? settings.jsonConfig }
      latest.current = { ...latest.current, jsonConfig: now.jsonConfig }
      setAnswer(now)
    }
    const made = new Applier(apply, setWaiting, (error) => tellFailure('The values were not taken', error))
    applier.current = made
    return () => made.close()
  }, [nodeId])
  return { jsonConfig, waiting, set: (values) => applier.current?.set(values) }
}
