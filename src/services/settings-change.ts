/** What a change of a pipeline's settings asks of a run that is on. */
import { ServiceError } from '../contract/errors.ts'
import type { FieldChange } from '../contract/types.ts'
import type { Registry } from '../dataplane/engine/component.ts'
import { CHANGE_REASONS, type Change, type Changes, diffConfig } from '../dataplane/engine/diff.ts'
import type { PipelineSettings } from '../store/pipelines.ts'
import type { CheckedSettings } from './pipelines-settings.ts'

/** Settings that nothing in a run depends on. */
const BESIDE_THE_RUN = [
  'name',
  'restartPolicy',
  'startupPolicy',
  'defaultLoggingLevel',
  'nodeReferenceId',
  'instructionsTimeout',
] as const satisfies readonly (keyof PipelineSettings)[]

/**
 * The changes from the settings of a run, pinned to `cpu`, to the wanted ones, sorted by what they ask of it: pointers into the
 * configuration, names of settings. Of no run `cpu` is undefined, and a wanted pin is a change when it differs from the one before.
 */
export function compareSettings(
  old: Omit<CheckedSettings, 'authorship'>,
  next: CheckedSettings,
  cpu: number | undefined,
  registry: Registry,
): Changes {
  const { restart, live } = diffConfig(old.config, next.config, registry)
  const { cpuPin, performanceMode } = next.settings
  const thread = [
    ...(cpuPin !== undefined && cpuPin !== (cpu ?? old.settings.cpuPin) ? ['/cpuPin'] : []),
    ...(performanceMode === old.settings.performanceMode ? [] : ['/performanceMode']),
  ]
  const beside = BESIDE_THE_RUN.filter(
    (key) => JSON.stringify(old.settings[key]) !== JSON.stringify(next.settings[key]),
  )
  return {
    restart: [...thread.map((pointer) => ({ pointer, reason: 'THREAD' as const })), ...restart],
    live: [...beside.map((key) => ({ pointer: `/${key}`, reason: 'BESIDE_THE_RUN' as const })), ...live],
  }
}

/** The refusal of `changes`, which need another run, on the pipeline called `name`. */
export function restartNeeded(name: string, changes: readonly Change[]): ServiceError {
  const fields = changes.map(({ pointer }) => pointer).join(', ')
  return new ServiceError(
    'FAILED_PRECONDITION',
    `pipeline "${name}" is running and its run cannot take over a change of ${fields}: stop it first, or set forceRestart`,
    {
      problems: changes.map(({ pointer, reason }) => ({
        pointer,
        message: `a change needs another run: ${CHANGE_REASONS[reason]}`,
      })),
    },
  )
}

/** A change as callers see it. */
export function changeView({ pointer, reason }: Change): FieldChange {
  return { pointer, reason, message: CHANGE_REASONS[reason] }
}
