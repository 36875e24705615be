/** The emulated links of a pipeline, to be made better and worse while packets flow. */
import { useMemo } from 'react'
import { readConfiguration } from '../../data/configuration.ts'
import { configSchema, impairmentProfiles } from '../../data/documents.ts'
import { linksOf } from '../../data/emulation.ts'
import { useLive } from '../../data/live.ts'
import { Failure } from '../../parts/failure.tsx'
import type { TabProps } from '../pipeline/tab-props.ts'
import { LinkCard } from './link-card.tsx'
import { useApplied } from './use-applied.ts'
import './impair.css'

export function ImpairTab({ nodeId, pipeline, configuration, runId }: TabProps) {
  const { jsonConfig, waiting, set } = useApplied(nodeId, pipeline)
  const { value: schema, status: schemaStatus } = useLive(configSchema)
  const { value: profiles = [], status, error } = useLive(impairmentProfiles)
  const links = useMemo(
    () => linksOf(schema === undefined ? configuration : readConfiguration(jsonConfig, schema)),
    [configuration, jsonConfig, schema],
  )
  // Not drawn in parts: a slider that moves down as the profiles come is missed by the hand that reaches for it.
  if (status === 'opening' || schemaStatus === 'opening') return <p className="quiet">Loading…</p>
  return (
    <>
      <p className="quiet">
        {pipeline.started
          ? 'Changes apply at once, without a restart, and are stored with the pipeline.'
          : 'The pipeline is not running: changes are stored, and hold from its next start on.'}
      </p>
      {status === 'failed' && error !== undefined && <Failure error={error} title="There are no profiles" />}
      {links.map((link, i) => (
        <LinkCard
          key={link.emulations[0]?.component.name}
          nodeId={nodeId}
          runId={runId}
          link={link}
          // Of two links the second is mostly the way back.
          direction={links.length === 2 && i === 1 ? 'down' : 'up'}
          profiles={profiles}
          waiting={waiting}
          onSet={set}
        />
      ))}
    </>
  )
}
