/** Follows the log of a run, line by line. */
import type { ApiClient } from './client.ts'
import type { LogMessage } from './messages.ts'
import { type Format, interruption } from './options.ts'
import { paint, print } from './terminal.ts'

const COLOURS = { STATE: 'cyan', DEBUG: 'dim', INFO: 'dim', WARN: 'yellow', ERROR: 'red', FATAL: 'red' } as const

function printMessage({ timestamp = '', level, component, message, fields }: LogMessage): void {
  // The outcome of a run is in its message already.
  const shown = Object.entries(fields ?? {}).filter(([name]) => component !== '' || name !== 'outcome')
  const more = shown.map(([name, value]) => ` ${paint(`${name}=${value}`, 'dim')}`)
  print(
    `${timestamp} ${paint(level.padEnd(5), COLOURS[level])} ${component ? `${component}: ` : ''}${message}${more.join('')}`,
  )
}

/** Prints a run's log, `lines` past ones first, until the run has ended or Ctrl-C; gives the outcome once it has ended. */
export async function followLog(
  client: ApiClient,
  node: string,
  run: string,
  { lines, output }: { lines: number; output: Format },
): Promise<string | undefined> {
  // At least one past line is asked for: it tells whether the run has ended already.
  let hidden = lines === 0
  const asked = Math.max(lines, 1)
  for await (const { messages } of client.openLogStream(node, run, asked, interruption())) {
    for (const message of messages) {
      // Of the lines of the run itself the last one alone has an outcome.
      const outcome = message.component === '' ? message.fields?.outcome : undefined
      if (!hidden || outcome) {
        if (output === 'json') print(JSON.stringify(message))
        else printMessage(message)
      }
      hidden = false
      if (outcome) return outcome
    }
  }
  return undefined
}
