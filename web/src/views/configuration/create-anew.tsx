/** Makes a new pipeline of the settings of one that was deleted. */
import { createPipeline } from '@penstock/client'
import { useState } from 'react'
import { flushSync } from 'react-dom'
import { go } from '../../app/routes.ts'
import { node } from '../../data/session.ts'
import type { Settings } from '../../data/settings.ts'
import { nameText } from '../../parts/format.ts'
import { tell, tellFailure } from '../../parts/toasts.tsx'

interface Props {
  readonly nodeId: string
  readonly settings: Settings
  /** The node has it: nothing is lost any more by leaving. */
  readonly onCreated: () => void
}

export function CreateAnew({ nodeId, settings, onCreated }: Props) {
  const [isBusy, setBusy] = useState(false)
  const create = async (button: HTMLButtonElement): Promise<void> => {
    setBusy(true)
    try {
      const { pipeline } = await createPipeline(node, { nodeId, ...settings })
      if (pipeline === undefined) return
      tell(`${nameText(settings.name)} is created`)
      // The page has to know that nothing is lost before it is left.
      flushSync(onCreated)
      // Who has left meanwhile stays where they are.
      if (button.isConnected) go({ view: 'pipeline', nodeId, pipelineId: pipeline.id })
    } catch (error) {
      tellFailure('It was not created', error)
      setBusy(false)
    }
  }
  return (
    <button
      type="button"
      className="button small primary"
      disabled={isBusy}
      onClick={({ currentTarget }) => create(currentTarget)}
    >
      Create anew
    </button>
  )
}
