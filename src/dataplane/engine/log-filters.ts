/** The log filters of a configuration: their schema, and what is wrong with them beyond it. */
import { type Static, Type } from '@sinclair/typebox'
import type { Problem } from '../../text/pointer.ts'
import { Enumeration, FileName, Text } from './schema.ts'

/** Filters of one configuration, at most. */
const MAX_LOG_FILTERS = 64

/** What a filter does with a line, in this order where it is given so. */
const ACTIONS = ['log', 'file', 'discard', 'stop'] as const

export const LogFilters = Type.Array(
  Type.Object({
    level: Enumeration(
      'Lines of this level and above.',
      'LogLevel',
      { STATE: 0, DEBUG: 1, INFO: 2, WARN: 3, ERROR: 4, FATAL: 5 },
      { default: 'STATE' },
    ),
    actions: Type.Object({
      actions: Type.Array(Type.Unsafe<(typeof ACTIONS)[number]>(Type.String({ enum: [...ACTIONS] })), {
        minItems: 1,
        maxItems: ACTIONS.length,
      }),
    }),
    path_filter: Type.Optional(
      Text('Components it is about, * standing for any characters and ? for one; unset: all.'),
    ),
    file: Type.Optional(FileName('Where action file puts the lines.')),
    mode: Type.Optional(
      Enumeration(
        'What becomes of the file that is there.',
        'LogMode',
        { APPEND: 0, TRUNCATE: 1 },
        { default: 'APPEND' },
      ),
    ),
  }),
  { maxItems: MAX_LOG_FILTERS },
)

export type LogFilter = Static<typeof LogFilters>[number]

/** What the schema cannot say; pointers from the list on. */
export function faultsOfLogFilters(filters: readonly LogFilter[]): Problem[] {
  return filters.flatMap(({ actions: { actions }, file }, i) => {
    const wantsFile = actions.includes('file')
    if (wantsFile && file === undefined) {
      return [{ pointer: `/${i}/file`, message: 'action "file" needs the name of a file' }]
    }
    if (!wantsFile && file !== undefined) {
      return [
        { pointer: `/${i}/file`, message: 'is used by action "file" only: add that action, or leave the file out' },
      ]
    }
    return []
  })
}
