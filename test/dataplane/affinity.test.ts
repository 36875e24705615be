/** Runs where the system does not let a thread choose its CPUs: a seccomp filter, a cpuset that changed under the process. */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const script = fileURLToPath(new URL('affinity-child.mjs', import.meta.url))

/** Installs a filter that answers sched_setaffinity (its number comes first) with EPERM, then becomes the rest of the command line. */
const SECCOMP = `
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
# The call's number is at offset 0 of what a filter sees: load it, compare, refuse with EPERM (1) or allow.
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, int(sys.argv[1])), (6, 0, 0, 0x00050001), (6, 0, 0, 0x7fff0000)]
code = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *step) for step in steps))
program = ctypes.create_string_buffer(struct.pack('HxxxxxxP', len(steps), ctypes.addressof(code)))
if libc.prctl(38, 1, 0, 0, 0) != 0 or libc.prctl(22, 2, program, 0, 0) != 0:
    sys.exit('no seccomp filter: ' + os.strerror(ctypes.get_errno()))
os.execvp(sys.argv[2], sys.argv[2:])
`
const SCHED_SETAFFINITY = { x64: '203', arm64: '122' }[process.arch as string]

/** The second call of a thread and those after it fail, as when its cpuset has changed since it was pinned. */
const STRACE = ['strace', '-f', '-qq', '-o', '/dev/null', '-e', 'trace=sched_setaffinity']
const INJECT = ['-e', 'inject=sched_setaffinity:error=EINVAL:when=2+']

/** Why a command line cannot be put in front of a program here, or undefined. */
function obstacle(command: string[]): string | undefined {
  const [program, ...rest] = [...command, 'true']
  const { status, error, stderr } = spawnSync(program as string, rest, { encoding: 'utf8' })
  return status === 0 ? undefined : (error?.message ?? stderr.trim())
}

function runsUnder(command: string[]) {
  const [program, ...rest] = [...command, process.execPath, script]
  const child = spawnSync(program as string, rest, { encoding: 'utf8', timeout: 25_000 })
  expect([child.error, child.stderr]).toEqual([undefined, ''])
  return JSON.parse(child.stdout)
}

const filtered = ['python3', '-c', SECCOMP, SCHED_SETAFFINITY ?? '']
const noSeccomp = SCHED_SETAFFINITY === undefined ? `no call number for ${process.arch}` : obstacle(filtered)
if (noSeccomp !== undefined) console.warn(`THE TEST OF RUNS UNDER SECCOMP IS SKIPPED: ${noSeccomp}`)
const injected = [...STRACE, ...INJECT]
const noStrace = obstacle(injected)
if (noStrace !== undefined) console.warn(`THE TEST OF RUNS THAT CANNOT BE UNPINNED IS SKIPPED: ${noStrace}`)

test.skipIf(noSeccomp)(
  'where affinity is forbidden, a pinned run fails with the cause and an unpinned one runs',
  () => {
    const refused = {
      begun: expect.stringMatching(/^sched_setaffinity EPERM CPUs \d+: operation not permitted$/),
      outcome: 'FAILED',
      warnings: [],
    }
    expect(runsUnder(filtered)).toEqual([refused, refused, { begun: 'running', outcome: 'STOPPED', warnings: [] }])
  },
)

test.skipIf(noStrace)('a thread that may not give its CPU back ends its run, says so once, and serves the next', () => {
  const [first, second, third] = runsUnder(injected)
  const stays = expect.stringMatching(/^the thread stays on CPU \d+ .*sched_setaffinity EINVAL/)
  expect(first).toEqual({ begun: 'running', outcome: 'STOPPED', warnings: [stays] })
  // The thread's later calls fail too: what it cannot do it says, and the thread is not lost.
  expect(second).toEqual({
    begun: expect.stringContaining('sched_setaffinity EINVAL'),
    outcome: 'FAILED',
    warnings: [],
  })
  expect(third).toEqual({ begun: 'running', outcome: 'STOPPED', warnings: [] })
})
