/** The settings of a pipeline beside its configuration. */
import type { Level } from '@penstock/client'
import { useId, useState } from 'react'
import type { Settings } from '../../data/settings.ts'

const LEVELS: readonly Level[] = ['STATE', 'DEBUG', 'INFO', 'WARN', 'ERROR', 'FATAL']

interface Props {
  readonly settings: Settings
  readonly onChange: (settings: Settings, subject?: string) => void
}

export function SettingsForm({ settings, onChange }: Props) {
  const id = useId()
  const {
    restartPolicy,
    startupPolicy,
    defaultLoggingLevel = 'INFO',
    instructionsTimeout,
    cpuPin,
    performanceMode,
  } = settings
  const policy =
    restartPolicy?.always !== undefined ? 'always' : restartPolicy?.onFailure !== undefined ? 'onFailure' : 'never'
  const limit = restartPolicy?.always?.maxRestarts ?? restartPolicy?.onFailure?.maxRestarts ?? 0
  const set = (change: Partial<Settings>): void => onChange({ ...settings, ...change }, Object.keys(change).join())
  const setPolicy = (name: string, maxRestarts: number): void =>
    set({ restartPolicy: name === 'never' ? { never: {} } : { [name]: { maxRestarts } } })
  return (
    <section className="inspector settings" aria-label="Settings of the pipeline">
      <h2>Settings</h2>
      <p className="help">Of the pipeline as a whole. Select a component to see its fields.</p>
      <div className="field">
        <label htmlFor={`${id}start`}>Starts</label>
        <select
          id={`${id}start`}
          value={startupPolicy?.auto === undefined ? 'manual' : 'auto'}
          onChange={({ target }) => set({ startupPolicy: { [target.value]: {} } })}
        >
          <option value="manual">when it is asked to</option>
          <option value="auto">with the node</option>
        </select>
      </div>
      <div className="field">
        <label htmlFor={`${id}restart`}>Restarts</label>
        <select id={`${id}restart`} value={policy} onChange={({ target }) => setPolicy(target.value, limit)}>
          <option value="never">never</option>
          <option value="onFailure">after a failure</option>
          <option value="always">after every end but a stop</option>
        </select>
      </div>
      {policy !== 'never' && (
        <div className="field">
          <label htmlFor={`${id}limit`}>Restarts in a row</label>
          <WholeInput id={`${id}limit`} value={limit} onChange={(next = 0) => setPolicy(policy, next)} />
          <p className="help">0: no limit</p>
        </div>
      )}
      <div className="field">
        <label htmlFor={`${id}level`}>Log level</label>
        <select
          id={`${id}level`}
          value={defaultLoggingLevel}
          onChange={({ target }) => set({ defaultLoggingLevel: target.value as Level })}
        >
          {LEVELS.map((level) => (
            <option key={level}>{level}</option>
          ))}
        </select>
      </div>
      <div className="field">
        <label htmlFor={`${id}timeout`}>Timeout of instructions</label>
        <WholeInput
          id={`${id}timeout`}
          value={instructionsTimeout}
          placeholder="30"
          onChange={(next) => set({ instructionsTimeout: next })}
        />
        <p className="help">s, default 30: for a stop, a change, a restart</p>
      </div>
      <div className="field">
        <label htmlFor={`${id}cpu`}>CPU</label>
        <WholeInput
          id={`${id}cpu`}
          value={cpuPin}
          placeholder="the node chooses"
          onChange={(next) => set({ cpuPin: next })}
        />
      </div>
      <div className="field">
        <label htmlFor={`${id}mode`}>Thread</label>
        <select
          id={`${id}mode`}
          value={performanceMode === true ? 'yes' : 'no'}
          onChange={({ target }) => set({ performanceMode: target.value === 'yes' })}
        >
          <option value="no">sleeps while there is nothing to do</option>
          <option value="yes">never sleeps: performance mode</option>
        </select>
      </div>
    </section>
  )
}

interface WholeProps {
  readonly id: string
  readonly value: number | undefined
  readonly placeholder?: string
  /** Undefined: it is not set. */
  readonly onChange: (value: number | undefined) => void
}

/** A whole number, of fewer digits than 32 bits hold; what is typed and is none stands there, and is not taken. */
function WholeInput({ id, value, placeholder = '', onChange }: WholeProps) {
  const [wrong, setWrong] = useState<string>()
  return (
    <>
      <input
        id={id}
        inputMode="numeric"
        autoComplete="off"
        aria-invalid={wrong !== undefined}
        aria-describedby={`${id}wrong`}
        placeholder={placeholder}
        value={wrong ?? value ?? ''}
        onChange={({ target }) => {
          const text = target.value.trim()
          const isWhole = /^\d{0,9}$/.test(text)
          setWrong(isWhole ? undefined : target.value)
          if (isWhole) onChange(text === '' ? undefined : Number(text))
        }}
      />
      <span className="wrong" id={`${id}wrong`} role="alert">
        {wrong !== undefined && `⚠ “${wrong}” is no whole number of at most 9 digits; ${value ?? 'the default'} stays`}
      </span>
    </>
  )
}
