/** Which lines of a log are shown. */
import type { Level, LogMessage } from '@penstock/client'

/** Least first. */
export const LEVELS = ['DEBUG', 'INFO', 'WARN', 'ERROR', 'FATAL'] as const satisfies readonly Level[]

export interface LogFilter {
  /** The least level that is shown; what the run says of its state is always shown. */
  readonly level: Level
  /** Component whose lines are shown; undefined: of all. */
  readonly component?: string | undefined
  /** In the message, the component or a field, in either case; empty: every line. */
  readonly text: string
}

/** The lines that pass, in their order. */
export function filtered<Line extends LogMessage>(lines: readonly Line[], filter: LogFilter): readonly Line[] {
  const { level, component } = filter
  const text = filter.text.trim().toLowerCase()
  const least = rankOf(level)
  if (least <= 0 && component === undefined && text === '') return lines
  return lines.filter(
    (line) =>
      (line.level === 'STATE' || rankOf(line.level) >= least) &&
      (component === undefined || line.component === component) &&
      (text === '' || contains(line, text)),
  )
}

/** How grave a level is; that of STATE is below all. */
function rankOf(level: Level): number {
  return (LEVELS as readonly Level[]).indexOf(level)
}

function contains({ message, component, fields }: LogMessage, text: string): boolean {
  if (message.toLowerCase().includes(text) || component.toLowerCase().includes(text)) return true
  return Object.entries(fields).some(([name, value]) => `${name}=${value}`.toLowerCase().includes(text))
}

/** The names of the components that say something, sorted; the run itself is ''. */
export function speakers(lines: readonly LogMessage[]): readonly string[] {
  return [...new Set(lines.map(({ component }) => component))].sort()
}
