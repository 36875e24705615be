/** The YAML library, loaded where it is needed: a node that is configured by flags alone, and most commands, never read any. */
import type { ScalarTag } from 'yaml'
import { requirePackage } from '../require-package.ts'
import { writtenOut } from './written-out.ts'

export const yaml = () => requirePackage('yaml') as typeof import('yaml')

/** What YAML 1.1 takes for the merge and the value of a map; the library's schema of it does not name them. */
const MERGE_AND_VALUE: ScalarTag = {
  tag: 'tag:yaml.org,2002:value',
  default: true,
  test: /^(?:<<|=)$/,
  resolve: (text) => text,
}

/** A number without a point is a string to readers of YAML 1.1 where it has an exponent. */
const EXPONENT: ScalarTag = {
  tag: 'tag:yaml.org,2002:float',
  default: true,
  identify: (value) => typeof value === 'number' && /^-?\de/.test(String(value)),
  test: /^-?\de[-+]\d+$/,
  resolve: Number,
  stringify: ({ value }) => String(value).replace('e', '.0e'),
}

/**
 * `value` as YAML 1.2, its strings quoted where readers of YAML 1.1, such as PyYAML, would take them for something else too: `yes`,
 * `2026-01-01`. Characters that are not seen are escaped, in quotes, as nothing else there is: a terminal and PyYAML do not take some of them as they are.
 */
export function yamlOf(value: unknown): string {
  const { Document, Schema, visit } = yaml()
  const compat = [...new Schema({ schema: 'yaml-1.1' }).tags, MERGE_AND_VALUE]
  const document = new Document(value, { compat, customTags: (tags) => [EXPONENT, ...tags] })
  visit(document, {
    Scalar: (_, node) => {
      if (typeof node.value !== 'string') return
      // The library would write a text that begins with space as a block that has less of it, and PyYAML takes no tab in one without quotes.
      if (/^\s|^.*\t.*$/.test(node.value) || writtenOut(node.value, KEPT) !== node.value) node.type = 'QUOTE_DOUBLE'
    },
  })
  return writtenOut(document.toString({ lineWidth: 0 }), KEPT, yamlEscape)
}

const KEPT = '\t\n'

/** A character beyond U+FFFF is one escape: PyYAML takes two for two characters. */
function yamlEscape(character: string): string {
  const code = character.codePointAt(0)!
  return code > 0xffff ? `\\U${code.toString(16).padStart(8, '0')}` : `\\u${code.toString(16).padStart(4, '0')}`
}
