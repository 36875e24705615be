/** The names that a configuration gives, or that follow from it. */
import { components } from '../dataplane/components/registry.ts'
import { checkPipelineConfig } from '../dataplane/engine/check.ts'
import { metricNamesOf } from '../dataplane/engine/layout.ts'

/** Of its components, of their metrics, of its variables (`name=`); none of a configuration that this version does not take. */
export function namesIn(jsonConfig: string, kind: 'component' | 'metric' | 'variable'): string[] {
  const { config } = checkPipelineConfig(jsonConfig, components)
  if (config === null) return []
  if (kind === 'component') return Object.keys(config.components)
  if (kind === 'variable') return config.variables.map(({ id }) => `${id}=`)
  return [...metricNamesOf(config, components).values()].flatMap((names) => [...names])
}
