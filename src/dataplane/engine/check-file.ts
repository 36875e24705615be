/** Checks what a file holds: the configuration of a pipeline, or one of the two that no operation takes, RelayConfiguration and LogConfig. */
import type { Static, TSchema } from '@sinclair/typebox'
import { camelCase } from '../../text/names.ts'
import type { Problem } from '../../text/pointer.ts'
import { type CheckedConfig, checkGivenConfig, readConfig } from './check.ts'
import { asWritten, checkAgainst, under } from './check-value.ts'
import type { Registry } from './component.ts'
import { Shell } from './config-shell.ts'
import { faultsOfLogFilters, LogConfig } from './log-filters.ts'
import { RelayConfiguration, relayFaults } from './relay-configuration.ts'

/** A configuration of another kind: how many of what it has, and what is wrong with it. */
interface CheckedOther {
  readonly kind: 'RelayConfiguration' | 'LogConfig'
  readonly counts: Readonly<Record<string, number>>
  readonly problems: Problem[]
}

type CheckedFile = ({ readonly kind: 'PipelineConfig' } & CheckedConfig) | CheckedOther

/** A kind of configuration beside that of pipelines. */
interface Kind<S extends TSchema> {
  readonly name: CheckedOther['kind']
  readonly schema: S
  faults(config: Static<S>): Problem[]
  counts(config: Static<S>): CheckedOther['counts']
}

const RELAY: Kind<typeof RelayConfiguration> = {
  name: 'RelayConfiguration',
  schema: RelayConfiguration,
  faults: relayFaults,
  counts: ({ endpoints, routes }) => ({
    endpoint: Object.keys(endpoints).length,
    route: Object.keys(routes).length,
  }),
}

const LOG: Kind<typeof LogConfig> = {
  name: 'LogConfig',
  schema: LogConfig,
  faults: ({ log_filters }) => under('/log_filters', faultsOfLogFilters(log_filters)),
  counts: ({ log_filters }) => ({ 'log filter': log_filters.length }),
}

/** Whether the schema of an object has a field that `value` has, in either casing. */
function shares({ properties }: TSchema, value: object): boolean {
  return Object.keys(properties).some((name) => name in value || camelCase(name) in value)
}

/**
 * Reads a file of any kind, going by its fields: one that has any of a pipeline's, or none that is known, is taken for a pipeline's.
 * Otherwise as `checkGivenConfig`.
 */
export function checkConfigFile(json: string, available: Registry): CheckedFile {
  const { value } = readConfig(json)
  if (value !== undefined && !shares(Shell, value)) {
    if (shares(RELAY.schema, value)) return checkOther(RELAY, json)
    if (shares(LOG.schema, value)) return checkOther(LOG, json)
  }
  return { kind: 'PipelineConfig', ...checkGivenConfig(json, available) }
}

function checkOther<S extends TSchema>({ name, schema, faults, counts }: Kind<S>, json: string): CheckedOther {
  const { value, problems } = readConfig(json)
  const config = checkAgainst(schema, value, '', problems) as Static<S>
  if (problems.length > 0) return { kind: name, counts: {}, problems }
  return { kind: name, counts: counts(config), problems: asWritten(faults(config), value) }
}
