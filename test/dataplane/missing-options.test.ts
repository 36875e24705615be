/** Sockets where the kernel, or what stands in for it (an emulator, the sandbox of a container), knows fewer options than Linux has. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { packageRoot } from '../../src/package-root.ts'

/** setsockopt's options that make sockets better and that they can do without: level and number, as ip(7), ipv6(7), udp(7) and socket(7) have them. */
const OPTIONS = {
  IP_MULTICAST_ALL: [0, 49],
  IPV6_MULTICAST_ALL: [41, 29],
  UDP_GRO: [17, 104],
  SO_RCVBUFFORCE: [1, 33],
  SO_SNDBUFFORCE: [1, 32],
  SO_TIMESTAMPNS: [1, 35],
  SO_RXQ_OVFL: [1, 40],
}
/** Calls' numbers and the architecture's, as <asm/unistd.h> and <linux/audit.h> have them. */
const SETSOCKOPT = { x64: '54', arm64: '208' }[process.arch as string]

/** Answers setsockopt (its number comes first) with ENOPROTOOPT for each option, `LEVEL:NUMBER,…` comes next; becomes the rest of the command line. */
const SECCOMP = `
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
options = [tuple(map(int, option.split(':'))) for option in sys.argv[2].split(',')]
LOAD, EQUALS, RETURN = 0x20, 0x15, 6
# Of what a filter sees the call's number is at offset 0, its second and third argument are at 24 and 32.
checks = [(LOAD, 0, 0, 24), (EQUALS, 0, 3, None), (LOAD, 0, 0, 32), (EQUALS, 0, 1, None), (RETURN, 0, 0, 0x00050000 | 92)]
steps = [(LOAD, 0, 0, 0), (EQUALS, 1, 0, int(sys.argv[1])), (RETURN, 0, 0, 0x7fff0000)]
for level, number in options:
    values = iter((level, number))
    steps += [(code, yes, no, next(values) if value is None else value) for code, yes, no, value in checks]
steps.append((RETURN, 0, 0, 0x7fff0000))
code = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *step) for step in steps))
program = ctypes.create_string_buffer(struct.pack('HxxxxxxP', len(steps), ctypes.addressof(code)))
if libc.prctl(38, 1, 0, 0, 0) != 0 or libc.prctl(22, 2, program, 0, 0) != 0:
    sys.exit('no seccomp filter: ' + os.strerror(ctypes.get_errno()))
os.execvp(sys.argv[3], sys.argv[3:])
`

function without(options: readonly number[][], command: readonly string[]) {
  const missing = options.map((option) => option.join(':')).join(',')
  return spawnSync('python3', ['-c', SECCOMP, SETSOCKOPT ?? '', missing, ...command], {
    encoding: 'utf8',
    timeout: 25_000,
  })
}

/** Why there is no such filter here, or undefined. */
function obstacle(): string | undefined {
  if (SETSOCKOPT === undefined) return `no call number for ${process.arch}`
  const { status, error, stderr } = without([OPTIONS.UDP_GRO], ['true'])
  return status === 0 ? undefined : (error?.message ?? stderr.trim())
}

const noSeccomp = obstacle()
if (noSeccomp !== undefined) console.warn(`THE TEST OF MISSING SOCKET OPTIONS IS SKIPPED: ${noSeccomp}`)

test.skipIf(noSeccomp !== undefined)('sockets do without the options that make them better', () => {
  const doctor = [process.execPath, join(packageRoot(), 'bin/penstock.js'), 'doctor', '-o', 'json']
  const { stdout, stderr } = without(Object.values(OPTIONS), doctor)
  expect(stderr).toBe('')
  const udp = JSON.parse(stdout).find(({ check }: { check: string }) => check === 'udp')
  expect(udp).toMatchObject({ grade: 'warn', found: 'batched calls, no GRO' })
})
