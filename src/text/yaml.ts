/** The YAML library, loaded where it is needed: a node that is configured by flags alone, and most commands, never read any. */
import type { ScalarTag } from 'yaml'
import { requirePackage } from '../require-package.ts'

export const yaml = () => requirePackage('yaml') as typeof import('yaml')

/** What YAML 1.1 takes for the merge and the value of a map; the library's schema of it does not name them. */
const MERGE_AND_VALUE: ScalarTag = {
  tag: 'tag:yaml.org,2002:value',
  default: true,
  test: /^(?:<<|=)$/,
  resolve: (text) => text,
}

/** `value` as YAML 1.2, its strings quoted where readers of YAML 1.1, such as PyYAML, would take them for something else too: `yes`, `2026-01-01`. */
export function yamlOf(value: unknown): string {
  const { Schema, stringify } = yaml()
  const compat = [...new Schema({ schema: 'yaml-1.1' }).tags, MERGE_AND_VALUE]
  return stringify(value, { lineWidth: 0, compat })
}
