/** The end of a session: SIGHUP, and a terminal that goes away, end up and run in order. */
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { constants } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, test } from 'vitest'
import { packageRoot } from '../../src/package-root.ts'
import { lineOf, lossy, scratch, start } from './cli.ts'

const directory = scratch()
afterAll(() => directory.dispose())
const upFlags = (data: string) => [
  'up',
  '--data-dir',
  join(directory.path, data),
  '--http',
  '127.0.0.1:0',
  '--grpc',
  'none',
]

test('up goes down at SIGHUP as at SIGTERM', async () => {
  for (const signal of ['SIGHUP', 'SIGTERM'] as const) {
    const child = start(upFlags('data'))
    const said = text(child.stderr!)
    await lineOf(child, /^penstock ready/)
    const gone = once(child, 'exit')
    child.kill(signal)
    expect(await gone).toEqual([0, null])
    expect(await said).toContain('node is down')
  }
})

const python = spawnSync('python3', ['-c', 'import pty']).status === 0
if (!python) console.warn('SKIPPED: commands in a terminal that goes away need python3')

describe.skipIf(!python)('in a terminal that goes away', () => {
  const hangUp = (shown: string, args: string[]) => {
    const log = join(directory.path, `${args[0]}.log`)
    const driver = fileURLToPath(new URL('hangup.py', import.meta.url))
    const command = [process.execPath, join(packageRoot(), 'bin/penstock.js'), ...args]
    const { stdout, stderr } = spawnSync('python3', [driver, log, shown, ...command], { encoding: 'utf8' })
    return { status: Number(stdout), stderr, log: readFileSync(log, 'utf8') }
  }

  test.each([
    ['up', 'penstock ready', upFlags('terminal'), 'node is down'],
    ['run', 'entered', ['run', directory.file('lossy.json', lossy)], 'ended: STOPPED'],
  ])('%s ends in order, by the signal', (_, shown, args, last) => {
    const { status, stderr, log } = hangUp(shown, args)
    expect(stderr).toBe('')
    expect(status).toBe(-constants.signals.SIGHUP)
    expect(log).toContain(last)
  })
})
