/** Shows the log of a run, line by line. */
import type { Client, LogMessage, Run } from '@penstock/client'
import { type Format, interruption, LEVELS } from './options.ts'
import { untilAborted } from './streams.ts'
import { named, paint, print, printDataLine } from './terminal.ts'

const COLOURS = { STATE: 'cyan', DEBUG: 'dim', INFO: 'dim', WARN: 'yellow', ERROR: 'red', FATAL: 'red' } as const

export interface LogOptions {
  /** Past lines that are looked at first. */
  lines: number
  /** Only these, none that come later. */
  isPastOnly?: boolean
  output: Format
  /** Only lines of this level and above. */
  level?: LogMessage['level']
  /** Only lines of these components; empty: of all, and of the run itself. */
  components?: readonly string[]
}

function isWanted({ level, component }: LogMessage, { level: least = 'STATE', components = [] }: LogOptions): boolean {
  if (LEVELS.indexOf(level) < LEVELS.indexOf(least)) return false
  return components.length === 0 || components.includes(component)
}

function printMessage({ timestamp = '', level, component, message, fields }: LogMessage): void {
  // The outcome of a run is in its message already.
  const shown = Object.entries(fields ?? {}).filter(([name]) => component !== '' || name !== 'outcome')
  const more = shown.map(([name, value]) => ` ${paint(named(`${name}=${value}`), 'dim')}`)
  print(
    `${timestamp} ${paint(level.padEnd(5), COLOURS[level])} ${component ? `${named(component)}: ` : ''}${named(message)}${more.join('')}`,
  )
}

/** Says that what follows is of another run. */
export function printNextRun({ id, startedAt }: Run, output: Format): void {
  if (output === 'json') printDataLine({ nextRun: { id, startedAt } })
  else print(`${paint('next run', 'bold')} ${id}${startedAt === undefined ? '' : `, started ${startedAt}`}`)
}

/** Prints a run's log, `lines` past ones first, until the run has ended or `stop` aborts; gives the outcome once it has ended. */
export async function followLog(
  client: Client,
  node: string,
  run: string,
  options: LogOptions,
  stop: AbortSignal = interruption(),
): Promise<string | undefined> {
  // At least one past line is asked for: it tells whether the run has ended already.
  let isHidden = options.lines === 0
  const request = {
    nodeId: node,
    runId: run,
    options: { lines: `${Math.max(options.lines, 1)}`, pastOnly: options.isPastOnly },
  }
  for await (const { messages } of untilAborted(client.openLogStream(request, { signal: stop }), stop)) {
    for (const message of messages) {
      // Of the lines of the run itself the last one alone has an outcome.
      const outcome = message.component === '' ? message.fields?.outcome : undefined
      if ((!isHidden || outcome) && isWanted(message, options)) {
        if (options.output === 'json') printDataLine(message)
        else printMessage(message)
      }
      isHidden = false
      if (outcome) return outcome
    }
  }
  return undefined
}
