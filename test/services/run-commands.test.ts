/** What is told of the commands of a run on a system that lacks what they need. */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { afterAll, expect, it } from 'vitest'
import { scratch } from '../cli/cli.ts'

const script = fileURLToPath(new URL('hindered-commands.mjs', import.meta.url))
const files = scratch()
afterAll(() => files.dispose())

/** The script after `setup`, a command of the shell in the same mount namespace. */
function under(setup: string) {
  const command = ['-m', '--propagation', 'private', 'sh', '-c', `${setup} && exec "$@"`, 'sh', process.execPath]
  return spawnSync('unshare', [...command, script], { encoding: 'utf8', timeout: 50_000 })
}

const possible = spawnSync('unshare', ['-m', '--propagation', 'private', 'true']).status === 0
if (!possible) console.warn('SKIPPED: the tests of commands without a shell or /dev/null need root and unshare')

// What a file of this kind needs is missing: execve(2) says of it what it says of a missing file.
const noShell = files.file('sh', '#!/missing/sh\n')

it.skipIf(!possible).each([
  ['everything', 'true', 'started'],
  [
    'a shell',
    `chmod 755 ${noShell} && mount --bind ${noShell} "$(readlink -f /bin/sh)"`,
    'there is no /bin/sh that runs',
  ],
  [
    '/dev/null',
    'mount -t tmpfs none /dev',
    "ENOENT: no such file or directory, open '/dev/null': commands read from it",
  ],
])('a command on a system that has %s, or lacks it, is started, or it is told what hinders it', (_what, setup, own) => {
  const { stdout, stderr } = under(setup)
  expect(stderr).toBe('')
  const told = JSON.parse(stdout)
  expect(told.own).toContain(own)
  if (setup === 'true') expect(told.closed).toMatch(/the node's user may not enter the directory .*closed; let it/)
})
