/** The configuration of a pipeline while values are being set in it, one update at a time. */
import { type Pipeline, updatePipeline } from '@penstock/client'
import { useEffect, useRef, useState } from 'react'
import { Applier, type Values } from '../../data/applier.ts'
import { withValues } from '../../data/places.ts'
import { node } from '../../data/session.ts'
import { updateOf } from '../../data/settings.ts'
import { StoredText } from '../../data/stored-text.ts'
import { tellFailure } from '../../parts/toasts.tsx'

interface Applied {
  /** As the node has it. */
  readonly jsonConfig: string
  /** What is set and not taken over yet, by JSON pointer. */
  readonly waiting: Values
  readonly set: (values: Values) => void
}

export function useApplied(nodeId: string, pipeline: Pipeline): Applied {
  const [waiting, setWaiting] = useState<Values>(new Map())
  const [stored] = useState(() => new StoredText(pipeline))
  stored.tell(pipeline)
  const latest = useRef(pipeline)
  latest.current = pipeline
  const applier = useRef<Applier>(null)
  useEffect(() => {
    const apply = async (values: Values): Promise<void> => {
      const settings = { ...updateOf(nodeId, latest.current), jsonConfig: withValues(stored.text, values) }
      const answer = stored.ask()
      const { pipeline: after } = await updatePipeline(node, settings)
      // The view is drawn again as the values wait no more.
      answer(after?.jsonConfig ?? settings.jsonConfig)
    }
    const made = new Applier(apply, setWaiting, (error) => tellFailure('The values were not taken', error))
    applier.current = made
    return () => made.close()
  }, [nodeId, stored])
  return { jsonConfig: stored.text, waiting, set: (values) => applier.current?.set(values) }
}
