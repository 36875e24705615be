/** The log filters of a configuration, and a LogConfig: their schemas, and what is wrong with them beyond it. */
import { normalize } from 'node:path'
import { type Static, Type } from '@sinclair/typebox'
import type { Problem } from '../../text/pointer.ts'
import { Enumeration, FileName, Text } from './schema.ts'

/** Filters of one configuration, at most. */
const MAX_LOG_FILTERS = 64

const LEVELS = { STATE: 0, DEBUG: 1, INFO: 2, WARN: 3, ERROR: 4, FATAL: 5 } as const

/** What a filter does with a line, in this order where it is given so. */
const ACTIONS = ['log', 'file', 'discard', 'stop'] as const

export const LogFilters = Type.Array(
  Type.Object({
    level: Enumeration('Lines of this level and above.', 'LogLevel', LEVELS, { default: 'STATE' }),
    actions: Type.Object({
      actions: Type.Array(Type.Unsafe<(typeof ACTIONS)[number]>(Type.String({ enum: [...ACTIONS], proto: 'string' })), {
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

/** Filters with the level of what none of them matches, as a configuration of its own. */
export const LogConfig = Type.Object({
  default_level: Enumeration('Least level of lines that no filter matches.', 'Level', LEVELS, { default: 'INFO' }),
  log_filters: Type.Array(LogFilters.items, { maxItems: MAX_LOG_FILTERS, default: [] }),
})

export type LogFilter = Static<typeof LogFilters>[number]

/** What the schema cannot say; pointers from the list on. `metricsFile` is that of the configuration's shm_config. */
export function faultsOfLogFilters(filters: readonly LogFilter[], metricsFile?: string): Problem[] {
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
    if (file !== undefined && metricsFile !== undefined && normalize(file) === normalize(metricsFile)) {
      return [{ pointer: `/${i}/file`, message: 'is the file of shm_config too, which the lines would destroy' }]
    }
    return []
  })
}
