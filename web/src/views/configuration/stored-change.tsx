/** Says that a pipeline's stored configuration is no longer the one that editing began with, and shows what differs. */
import { useMemo, useState } from 'react'
import { linesOf, type Settings } from '../../data/settings.ts'
import { excerpt, lineDiff } from './line-diff.ts'
import './configuration.css'

interface Props {
  readonly stored: Settings
  readonly edited: Settings
  /** Takes the stored one in place of what was edited. */
  readonly onTake: () => void
  /** Goes on with what was edited. */
  readonly onKeep: () => void
}

export function StoredChange({ stored, edited, onTake, onKeep }: Props) {
  const [isCompared, setCompared] = useState(false)
  return (
    <section className="notice stored" aria-label="Stored configuration">
      <p>The stored configuration has changed meanwhile. What you have typed is still here.</p>
      <div className="actions">
        <button
          type="button"
          className="button small"
          aria-expanded={isCompared}
          onClick={() => setCompared(!isCompared)}
        >
          {isCompared ? 'Hide differences' : 'Compare'}
        </button>
        <button type="button" className="button small" onClick={onTake}>
          Take the stored one
        </button>
        <button type="button" className="button small" onClick={onKeep}>
          Keep mine
        </button>
      </div>
      {isCompared && <Differences before={stored} after={edited} />}
    </section>
  )
}

/** Lines that only the stored one has (−) and lines that only the edited one has (+). */
function Differences({ before, after }: { readonly before: Settings; readonly after: Settings }) {
  const lines = useMemo(() => excerpt(lineDiff(linesOf(before), linesOf(after))), [before, after])
  if (lines.every((line) => line === undefined)) return <p>They say the same.</p>
  return (
    <div className="diff">
      <p className="small">− stored, + yours</p>
      <pre>
        {lines.map((line, i) =>
          line === undefined ? (
            // biome-ignore lint/suspicious/noArrayIndexKey: lines have no other identity
            <span key={i}>⋯{'\n'}</span>
          ) : (
            // biome-ignore lint/suspicious/noArrayIndexKey: lines have no other identity
            <span key={i} className={line.sign === '-' ? 'removed' : line.sign === '+' ? 'added' : undefined}>
              {`${line.sign === '=' ? ' ' : line.sign === '-' ? '−' : '+'} ${line.text}\n`}
            </span>
          ),
        )}
      </pre>
    </div>
  )
}
