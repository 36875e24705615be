/** Runs where the system does not let a thread choose its CPUs: a seccomp filter, a cpuset that changed under the process. */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, expect, test } from 'vitest'
import { native } from '../../src/dataplane/native/native.ts'
import { until } from '../harness/waiting.ts'

const script = fileURLToPath(new URL('affinity-child.mjs', import.meta.url))
const narrowed = fileURLToPath(new URL('narrowed-cpuset.mjs', import.meta.url))

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
  return outputOf([...command, process.execPath, script])
}

function outputOf([program, ...rest]: string[]) {
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

/** Where cpusets are made: by the kernel's first interface to them (cgroups(7)), or the second. */
const CPUSETS = ['/sys/fs/cgroup/cpuset', '/sys/fs/cgroup'].find(
  (path) => existsSync(join(path, 'cpuset.cpus.effective')) || existsSync(join(path, 'cpuset.cpus')),
)

/** A cpuset of two CPU threads at least, which goes with the test; or why there is none. */
function makeCpuset(): { path: string; cpus: string[] } | string {
  if (CPUSETS === undefined) return 'there are no cpusets'
  const path = join(CPUSETS, `penstock-test-${process.pid}`)
  const { Cpus_allowed_list: allowed = '', Mems_allowed_list: memory = '' } = Object.fromEntries(
    readFileSync('/proc/self/status', 'latin1')
      .split('\n')
      .map((line) => line.split(':\t')),
  )
  const cpus = allowed.split(',').flatMap((range: string) => range.split('-'))
  if (cpus.length < 2) return 'there is one CPU thread'
  try {
    mkdirSync(path)
    writeFileSync(join(path, 'cpuset.mems'), memory)
    writeFileSync(join(path, 'cpuset.cpus'), cpus.slice(0, 2).join())
  } catch (error) {
    if (existsSync(path)) rmdirSync(path)
    return (error as Error).message
  }
  return { path, cpus: cpus.slice(0, 2) }
}

const cpuset = makeCpuset()
if (typeof cpuset === 'string') console.warn(`THE TEST OF A CPUSET THAT IS NARROWED IS SKIPPED: ${cpuset}`)
afterAll(async () => {
  if (typeof cpuset === 'object') await until(() => isTakenAway(cpuset.path), 'the cpuset is gone')
})

/** Takes away a cpuset, which is busy for a moment after its last process has ended. */
function isTakenAway(path: string): boolean {
  try {
    rmdirSync(path)
    return true
  } catch {
    return false
  }
}

test.skipIf(typeof cpuset === 'string')(
  'of a cpuset that is narrowed what is left is known, also beside a run in performance mode, and threads that rest may use that',
  () => {
    const { path, cpus } = cpuset as Exclude<typeof cpuset, string>
    const inside = ['sh', '-c', 'echo $$ > "$0/cgroup.procs" && exec "$@"', path, process.execPath, narrowed, path]
    const [first, second] = cpus.map(Number)
    expect(outputOf([...inside, ...cpus])).toEqual({
      usable: [[first, second], [first], [second], [first, second]],
      begun: ['running', expect.stringMatching(/^sched_setaffinity EINVAL/)],
      warnings: [],
    })
  },
)

test.skipIf(noSeccomp)(
  'where affinity is forbidden, a pinned run fails with the cause and what to do, and an unpinned one runs',
  () => {
    const refused = {
      begun: expect.stringMatching(
        /^sched_setaffinity EPERM CPUs \d+: operation not permitted; allow .*SystemCallFilter=.*seccomp profile/,
      ),
      outcome: 'FAILED',
      warnings: [],
    }
    expect(runsUnder(filtered)).toEqual([refused, refused, { begun: 'running', outcome: 'STOPPED', warnings: [] }])
  },
)

/** What other threads of a process may use before, while and after its main thread has a CPU alone, which it gives back while no descriptor is left. */
const LAST_DESCRIPTORS = `
import { closeSync, openSync, readdirSync, readFileSync } from 'node:fs'
import { native } from ${JSON.stringify(new URL('../../dist/src/dataplane/native/native.js', import.meta.url))}
const others = () => {
  const threads = readdirSync('/proc/self/task').filter((name) => name !== String(process.pid))
  const status = threads.map((name) => readFileSync('/proc/self/task/' + name + '/status', 'latin1'))
  return [...new Set(status.map((text) => /Cpus_allowed_list:\\s*(.*)/.exec(text)[1]))]
}
const [cpu] = native.affinity()
const before = others()
native.setAffinity([cpu], true)
const meanwhile = others()
const taken = []
try { for (;;) taken.push(openSync('/dev/null')) } catch {}
native.setAffinity([])
let refused
try {
  for (;;) taken.push(openSync('/dev/null'))
} catch {}
try { native.setAffinity([cpu], true) } catch ({ message }) { refused = message }
for (const file of taken) closeSync(file)
console.log(JSON.stringify({ before, meanwhile, after: others(), refused }))`

test.skipIf(native.affinity().length < 2)(
  'a CPU that a thread had alone is given back to the others where no descriptor is left, and is not had alone then',
  () => {
    const limited = ['sh', '-c', 'ulimit -n 100 && exec "$0" --input-type=module -e "$1"', process.execPath]
    const { before, meanwhile, after, refused } = outputOf([...limited, LAST_DESCRIPTORS])
    expect(meanwhile).not.toEqual(before)
    expect(after).toEqual(before)
    expect(refused).toMatch(/^opendir EMFILE \/proc\/self\/task: too many open files/)
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
