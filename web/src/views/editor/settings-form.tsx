/** The settings of a pipeline beside its configuration. */
import type { Level } from '@penstock/client'
import { useId } from 'react'
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
  const number = (text: string): number | undefined => {
    const value = Number(text)
    return text.trim() === '' || !Number.isInteger(value) || value < 0 ? undefined : value
  }
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
          <input
            id={`${id}limit`}
            type="number"
            min={0}
            value={limit}
            onChange={({ target }) => setPolicy(policy, number(target.value) ?? 0)}
          />
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
        <input
          id={`${id}timeout`}
          type="number"
          min={1}
          value={instructionsTimeout ?? ''}
          placeholder="30"
          onChange={({ target }) => set({ instructionsTimeout: number(target.value) })}
        />
        <p className="help">s, default 30: for a stop, a change, a restart</p>
      </div>
      <div className="field">
        <label htmlFor={`${id}cpu`}>CPU</label>
        <input
          id={`${id}cpu`}
          type="number"
          min={0}
          value={cpuPin ?? ''}
          placeholder="the node chooses"
          onChange={({ target }) => set({ cpuPin: number(target.value) })}
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
