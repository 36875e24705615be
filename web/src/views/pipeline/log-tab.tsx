/** The log of a run as it is written, with filters; lines are text, whatever is in them. */
import type { Level, LogMessage, Run } from '@penstock/client'
import { useEffect, useId, useMemo, useState } from 'react'
import { useLive } from '../../data/live.ts'
import { type Log, MAX_LINES } from '../../data/log.ts'
import { filtered, LEVELS, type LogFilter, speakers } from '../../data/log-filter.ts'
import { logOf } from '../../data/logs.ts'
import { Failure } from '../../parts/failure.tsx'
import { LogLines } from './log-lines.tsx'
import type { TabProps } from './tab-props.ts'
import './log.css'

/** Past lines that are asked for at first. */
const FIRST_LINES = 200

export function LogTab({ nodeId, runs, runId }: TabProps) {
  const [chosen, setChosen] = useState<string>()
  /** Stays when another run begins. */
  const [filter, setFilter] = useState<LogFilter>({ level: 'DEBUG', text: '' })
  const shown = chosen ?? runId
  if (shown === undefined) return <p className="quiet">It was never started: there is no log yet.</p>
  return (
    <>
      <RunChoice runs={runs} current={runId} chosen={chosen} onChoose={setChosen} />
      <RunLog
        key={shown}
        nodeId={nodeId}
        runId={shown}
        filter={filter}
        onFilter={setFilter}
        // What is held stays when another run begins.
        onHold={(isHeld) => setChosen(isHeld || shown !== runId ? shown : undefined)}
      />
    </>
  )
}

interface ChoiceProps {
  readonly runs: readonly Run[]
  readonly current: string | undefined
  readonly chosen: string | undefined
  readonly onChoose: (run: string | undefined) => void
}

function RunChoice({ runs, current, chosen, onChoose }: ChoiceProps) {
  const earlier = runs.filter(({ id }) => id !== current)
  const id = useId()
  return (
    <form
      className="toolbar"
      onSubmit={(event) => {
        event.preventDefault()
        onChoose(String(new FormData(event.currentTarget).get('run')).trim() || undefined)
      }}
    >
      <label htmlFor={id}>Run</label>
      <input
        id={id}
        name="run"
        list={`${id}runs`}
        key={chosen ?? current}
        defaultValue={chosen ?? current}
        spellCheck={false}
        autoComplete="off"
      />
      <datalist id={`${id}runs`}>
        {runs.map((run) => (
          <option key={run.id} value={run.id}>
            {run.startedAt === undefined ? '' : new Date(run.startedAt).toLocaleString()}{' '}
            {String(run.outcome ?? '').toLowerCase()}
          </option>
        ))}
      </datalist>
      <button type="submit" className="button">
        Show
      </button>
      {chosen !== undefined && chosen !== current && (
        <button type="button" className="button" onClick={() => onChoose(undefined)}>
          Back to the current run
        </button>
      )}
      {earlier.length > 0 && <span className="quiet small">{earlier.length} earlier in the list</span>}
    </form>
  )
}

interface RunLogProps {
  readonly nodeId: string
  readonly runId: string
  readonly filter: LogFilter
  readonly onFilter: (filter: LogFilter) => void
  readonly onHold: (isHeld: boolean) => void
}

function RunLog({ nodeId, runId, filter, onFilter, onHold }: RunLogProps) {
  const [past, setPast] = useState(FIRST_LINES)
  const { value, status, error } = useLive(logOf(nodeId, runId, past))
  const { level, component, text } = filter
  // Lines that were there when it was stopped, or those that come next; undefined: it follows.
  const [held, setHeld] = useState<Log | 'next'>()
  const { lines, first } = held === undefined || held === 'next' ? value : held
  useEffect(() => {
    if (held === 'next' && value.lines.length > 0) setHeld(value)
  }, [held, value])
  const numbered = useMemo(() => lines.map((line, i) => ({ ...line, number: first + i })), [lines, first])
  const shown = useMemo(() => filtered(numbered, filter), [numbered, filter])
  const names = useMemo(() => speakers(lines), [lines])
  // The one that is chosen has not said anything in every run.
  const offered = component === undefined || names.includes(component) ? names : [...names, component]
  const hold = (): void => {
    setHeld(value)
    onHold(true)
  }
  const follow = (): void => {
    setHeld(undefined)
    onHold(false)
  }
  const missed = value.first + value.lines.length - (first + lines.length)
  return (
    <section aria-label="Log">
      <div className="toolbar filters">
        <select
          aria-label="Least level"
          value={level}
          onChange={(event) => onFilter({ ...filter, level: event.target.value as Level })}
        >
          {LEVELS.map((each) => (
            <option key={each} value={each}>
              {each === 'DEBUG' ? 'All levels' : `${each} and above`}
            </option>
          ))}
        </select>
        <select
          aria-label="Component"
          value={component ?? '*'}
          onChange={({ target }) => onFilter({ ...filter, component: target.value === '*' ? undefined : target.value })}
        >
          <option value="*">All components</option>
          {offered.map((name) => (
            <option key={name} value={name}>
              {name === '' ? 'The run itself' : name}
            </option>
          ))}
        </select>
        <input
          type="search"
          aria-label="Lines that contain"
          placeholder="Filter"
          value={text}
          onChange={(event) => onFilter({ ...filter, text: event.target.value })}
        />
        <button
          type="button"
          className="button"
          disabled={past === MAX_LINES || lines.length < past}
          onClick={() => {
            setPast(MAX_LINES)
            if (held !== undefined) setHeld('next')
          }}
        >
          Older lines
        </button>
        <button
          type="button"
          className={held === undefined ? 'button' : 'button primary'}
          onClick={held === undefined ? hold : follow}
        >
          {held === undefined ? 'Pause' : missed > 0 ? `Follow (${missed} new)` : 'Follow'}
        </button>
      </div>
      {status === 'failed' && error !== undefined && <Failure error={error} title="The log is not shown" />}
      <LogLines
        lines={shown as readonly (LogMessage & { readonly number: number })[]}
        source={lines}
        isFollowing={held === undefined}
        onScrollUp={hold}
        onScrollToEnd={follow}
      />
      <p className="quiet small">
        {shown.length} of {lines.length} lines{lines.length === MAX_LINES && ', older ones are not kept here'}.{' '}
        {status === 'ended' && 'The log has ended. '}
        {shown.length > 0 && 'Select a line to read all of it.'}
      </p>
    </section>
  )
}
