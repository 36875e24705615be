/** What a node in this process has logged, as fields. */
import { until } from '../harness/waiting.ts'
import type { RunningNode } from './running-node.ts'

export interface LogLine {
  level: string
  time: string
  msg: string
  [field: string]: unknown
}

/** The lines so far whose fields are those of `of`. */
export function linesOf({ logged }: RunningNode, of: Record<string, unknown> = {}): LogLine[] {
  const lines = logged.map((line) => JSON.parse(line) as LogLine)
  return lines.filter((line) => Object.entries(of).every(([field, value]) => line[field] === value))
}

/** Waits until `count` lines have these fields, and gives them. */
export async function logged(node: RunningNode, of: Record<string, unknown>, count = 1): Promise<LogLine[]> {
  await until(() => linesOf(node, of).length >= count).catch(() => {
    throw new Error(`no ${count} lines with ${JSON.stringify(of)} in\n${node.logged.join('')}`)
  })
  return linesOf(node, of)
}
