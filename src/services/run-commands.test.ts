/** What the commands of a run are told to have come to. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, onTestFinished, test, vi } from 'vitest'
import { until } from '../../test/harness/waiting.ts'
import type { LogLine } from '../dataplane/engine/run.ts'
import { RunCommands } from './run-commands.ts'

const TIMEOUT_MS = 200
const NONE = { on_setup: [], pre_start: [], post_start: [], pre_stop: [], post_stop: [] }

afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

const read = (path: string) => {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
const isOver = (pid: string) => !/^\d+ \(.*\) [^Z]/.test(read(`/proc/${pid}/stat`))

test('a command that was over in time went well, with what it has left in the background, also where this thread learns of it after its timeout', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'penstock-commands-'))
  const cmd = 'sleep 100 > left.log 2>&1 & echo $! > left; echo $PPID > shell; until [ -e go ]; do sleep 0.01; done'
  const command = { cmd, timeout: TIMEOUT_MS, policy: 'STOP_ON_ERROR' } as const
  const handler = { ...NONE, pre_start: [command] }
  const lines: LogLine[] = []
  const log = (line: LogLine) => lines.push(line)
  const commands = new RunCommands({ handler, runId: 'r', pipelineId: 'p', directory, log })
  const written = (name: string) => read(join(directory, name)).trim()
  // Its time does not pass by itself.
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const ended = commands.run('pre_start', new AbortController().signal)
  while (written('shell') === '') await new Promise<void>((resolve) => setImmediate(resolve))
  // Stands still until the command is over and its time has passed.
  writeFileSync(join(directory, 'go'), '')
  const cell = new Int32Array(new SharedArrayBuffer(4))
  while (!isOver(written('shell'))) Atomics.wait(cell, 0, 0, 10)
  const kill = vi.spyOn(process, 'kill')
  vi.advanceTimersByTime(TIMEOUT_MS)
  await ended
  expect(lines).toEqual([])
  expect(kill).not.toHaveBeenCalled()
  process.kill(Number(written('left')))
  rmSync(directory, { recursive: true })
})

test('nothing is read any more, once the run is over, of a process that is not found and prints on', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'penstock-commands-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  const cmd = "env -i setsid sh -c 'echo $$; while :; do echo tick; sleep 0.01; done' &"
  const handler = { ...NONE, post_start: [{ cmd, timeout: 0, policy: 'STOP_ON_ERROR' } as const] }
  const lines: string[] = []
  const log = ({ message }: LogLine) => lines.push(message)
  const commands = new RunCommands({ handler, runId: 'r', pipelineId: 'p', directory, log })
  await commands.run('post_start', new AbortController().signal)
  await until(() => lines.includes('tick'))
  const pid = lines[0] as string
  onTestFinished(() => {
    if (!isOver(pid)) process.kill(Number(pid))
  })
  await commands.end()
  const last = lines.length
  // Nobody reads what it prints.
  await until(() => isOver(pid))
  expect(lines).toHaveLength(last)
  expect(lines.at(-1)).toBe('commands have left processes that still run: what these print from now on is not read')
})

test('what a process printed that is over is read where this thread stood still meanwhile, and no process is said to run on', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'penstock-commands-'))
  onTestFinished(() => rmSync(directory, { recursive: true }))
  const cmd = "env -i setsid sh -c 'echo $$; until [ -e go ]; do sleep 0.01; done; echo last' &"
  const handler = { ...NONE, post_start: [{ cmd, timeout: 0, policy: 'STOP_ON_ERROR' } as const] }
  const lines: string[] = []
  const log = ({ message }: LogLine) => lines.push(message)
  const commands = new RunCommands({ handler, runId: 'r', pipelineId: 'p', directory, log })
  await commands.run('post_start', new AbortController().signal)
  await until(() => lines.length > 0)
  // The time for its outputs does not pass by itself.
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  const ended = commands.end()
  while (vi.getTimerCount() === 0) await new Promise((resolve) => setImmediate(resolve))
  writeFileSync(join(directory, 'go'), '')
  while (!isOver(lines[0] as string));
  vi.advanceTimersToNextTimer()
  await ended
  expect(lines.slice(1)).toEqual(['last'])
})
