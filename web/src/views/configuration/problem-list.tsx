/** What is wrong with settings, and what is hardly meant: each leads to its place. */
import type { SettingsProblem } from '@penstock/client'
import type { Validation } from '../../data/validation.ts'
import { Badge } from '../../parts/badge.tsx'
import { countText } from '../../parts/format.ts'
import './configuration.css'

interface Props {
  readonly validation: Validation
  readonly onGo: (problem: SettingsProblem) => void
}

export function ProblemList({ validation: { problems, warnings, error }, onGo }: Props) {
  const all = [
    ...problems.map((each) => ['Error', each] as const),
    ...warnings.map((each) => ['Warning', each] as const),
  ]
  if (error !== undefined)
    return <p className="problems quiet">The node cannot be asked for problems: {error.message}</p>
  if (all.length === 0) return null
  return (
    <ul className="problems" aria-label="Problems">
      {all.map(([severity, problem]) => (
        <li key={`${problem.pointer} ${problem.message}`}>
          <button type="button" onClick={() => onGo(problem)}>
            <Badge tone={severity === 'Error' ? 'bad' : 'warn'}>{severity}</Badge>
            <span className="what">{problem.message}</span>
            <code className="quiet">{problem.pointer.replace(/^\/(engine_config|engineConfig)\/pipeline\//, '')}</code>
          </button>
        </li>
      ))}
    </ul>
  )
}

/** How the settings stand, in a few words. */
export function ValidationBadge({
  validation: { problems, warnings, isPending, error },
}: {
  readonly validation: Validation
}) {
  if (error !== undefined) return <Badge tone="warn">not checked</Badge>
  const [n, w] = [problems.length, warnings.length]
  if (n > 0) return <Badge tone="bad">{countText(n, 'problem')}</Badge>
  if (isPending) return <Badge tone="idle">checking</Badge>
  if (w > 0) return <Badge tone="warn">{countText(w, 'warning')}</Badge>
  return <Badge tone="good">valid</Badge>
}
