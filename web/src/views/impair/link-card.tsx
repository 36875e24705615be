/** One emulated link: profiles, the numbers of its components, and what comes of them. */
import { useState } from 'react'
import type { Values } from '../../data/applier.ts'
import type { Profile } from '../../data/documents.ts'
import type { Emulation, Link } from '../../data/emulation.ts'
import { type ProfilePlan, planOf } from '../../data/link-profiles.ts'
import { nameText } from '../../parts/format.ts'
import { FieldInput } from './field-input.tsx'
import { LinkCharts } from './link-charts.tsx'

type Direction = 'up' | 'down'

interface Props {
  readonly nodeId: string
  readonly runId: string | undefined
  readonly link: Link
  /** Which way of a profile the link is at first. */
  readonly direction: Direction
  readonly profiles: readonly Profile[]
  readonly waiting: Values
  readonly onSet: (values: Values) => void
}

const DIRECTIONS: readonly (readonly [Direction, string])[] = [
  ['up', 'Uplink'],
  ['down', 'Downlink'],
]

export function LinkCard({ nodeId, runId, link, direction: first, profiles, waiting, onSet }: Props) {
  const [direction, setDirection] = useState(first)
  const [last, setLast] = useState<{ readonly profile: Profile; readonly plan: ProfilePlan }>()
  const title = link.emulations.map(({ component }) => nameText(component.name)).join(' → ')
  const take = (profile: Profile): void => {
    const plan = planOf(link, profile[direction])
    setLast({ profile, plan })
    onSet(plan.values)
  }
  return (
    <section className="card link" aria-label={`Link ${title}`}>
      <h2>{title}</h2>
      {profiles.length > 0 && (
        <div className="profiles">
          <fieldset className="choice">
            <legend className="unseen">Which way of a profile</legend>
            {DIRECTIONS.map(([value, text]) => (
              <button key={value} type="button" aria-pressed={direction === value} onClick={() => setDirection(value)}>
                {text}
              </button>
            ))}
          </fieldset>
          <span className="quiet small">of</span>
          {profiles.map((profile) => (
            <button
              key={profile.name}
              type="button"
              className="button small"
              title={`${profile.description}. ${profile.source}`}
              onClick={() => take(profile)}
            >
              {profile.name}
            </button>
          ))}
        </div>
      )}
      {last !== undefined && <PlanNote {...last} />}
      <div className="link-body">
        <div className="emulations">
          {link.emulations.map((emulation) => (
            <EmulationFields key={emulation.component.name} emulation={emulation} waiting={waiting} onSet={onSet} />
          ))}
        </div>
        {runId !== undefined && <LinkCharts nodeId={nodeId} runId={runId} link={link} />}
      </div>
    </section>
  )
}

function PlanNote({ profile, plan }: { readonly profile: Profile; readonly plan: ProfilePlan }) {
  const { missing, kept, simplified } = plan
  return (
    <p className="small" role="status">
      {profile.description}. {missing.length > 0 && `The link has no component for its ${missing.join(', ')}. `}
      {simplified.length > 0 && `${simplified.join(', ')}: set to the mean of what the profile has. `}
      {kept.length > 0 && `The profile says nothing of ${kept.join(', ')}: left as it is.`}
    </p>
  )
}

interface FieldsProps {
  readonly emulation: Emulation
  readonly waiting: Values
  readonly onSet: (values: Values) => void
}

function EmulationFields({ emulation: { component, live, fixed }, waiting, onSet }: FieldsProps) {
  return (
    <fieldset className="emulation">
      <legend>
        {component.name} <small className="quiet">{component.key}</small>
      </legend>
      {live.map((field) => {
        const { pointer, value } = field
        const isPending = waiting.has(pointer)
        return (
          <FieldInput
            key={pointer}
            field={field}
            value={isPending ? (waiting.get(pointer) as number | boolean) : value}
            isPending={isPending}
            onSet={(next) => onSet(new Map([[pointer, next]]))}
          />
        )
      })}
      {live.length === 0 && <p className="quiet small">Nothing of it can be set while it runs.</p>}
      {fixed.length > 0 && <p className="quiet small">Needs a restart, so not here: {fixed.join(', ')}</p>}
    </fieldset>
  )
}
