/** What the commands of a run are told to have come to. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { until } from '../../test/harness/waiting.ts'
import type { LogLine } from '../dataplane/engine/run.ts'
import { RunCommands } from './run-commands.ts'

const TIMEOUT_MS = 200

test('a command that was over in time went well, also where this thread learns of it after its timeout', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'penstock-commands-'))
  const command = { cmd: 'echo $PPID > shell', timeout: TIMEOUT_MS, policy: 'STOP_ON_ERROR' } as const
  const handler = { on_setup: [], pre_start: [command], post_start: [], pre_stop: [], post_stop: [] }
  const lines: LogLine[] = []
  const log = (line: LogLine) => lines.push(line)
  const commands = new RunCommands({ handler, runId: 'r', pipelineId: 'p', directory, log })
  const ended = commands.run('pre_start', new AbortController().signal)
  const read = (path: string) => {
    try {
      return readFileSync(path, 'utf8')
    } catch {
      return ''
    }
  }
  const shell = () => read(join(directory, 'shell')).trim()
  await Promise.race([ended, until(() => shell() !== '')])
  // Stands still until the command is over and its time has passed.
  const cell = new Int32Array(new SharedArrayBuffer(4))
  const isOver = () => !/^\d+ \(.*\) [^Z]/.test(read(`/proc/${shell()}/stat`))
  while (!isOver()) Atomics.wait(cell, 0, 0, 10)
  Atomics.wait(cell, 0, 0, TIMEOUT_MS)
  await ended
  expect(lines).toEqual([])
  rmSync(directory, { recursive: true })
})
