/** Address space of a process: what it says that may have no more of it for the packets of a run, and what its commands need of it. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, test } from 'vitest'
import { packageRoot } from '../../src/package-root.ts'
import { TestRun, testPool } from './running.ts'

const hasPrlimit = spawnSync('prlimit', ['--version']).status === 0
if (!hasPrlimit) console.warn('SKIPPED: a process that may have no more address space needs prlimit')

/** Makes packets of a gigabyte with half of that left, with 16 MiB more than they need, and without a limit. */
const script = `
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { Packets } from ${JSON.stringify(pathToFileURL(join(packageRoot(), 'dist/src/dataplane/engine/packets.js')).href)}

const limited = (limit) => execFileSync('prlimit', ['--pid', String(process.pid), '--as=' + limit + ':'])
const make = () => new Packets({ slots: 16384, mtu: 65507 })
const [, kibibytes] = /^VmSize:\\s+(\\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8'))
const attempt = (left) => {
  limited(Number(kibibytes) * 1024 + left * 2 ** 20)
  try {
    make()
    console.log('they were made')
  } catch (error) {
    console.log(error.message)
  }
}
attempt(512)
// They would fit, but the heap could not grow any more.
attempt(1044)
limited('unlimited')
console.log(make().slots)
`

test.skipIf(!hasPrlimit)('it names the address space that the packets need, and what to do', () => {
  const { stdout, stderr, status } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    encoding: 'utf8',
  })
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  const [message, narrow, slots] = stdout.split('\n')
  expect(message).toMatch(
    /^the packets of the run need 10\d\d MiB of address space, 32 for its heap included, which cannot be had: stop other runs, or raise the limits of the process \(ulimit -v and -d, LimitAS= and LimitDATA=\); they need less where no component brings in packets of more than 1500 bytes \(mtu; here 65507\)/,
  )
  expect(narrow).toBe(message)
  expect(slots).toBe('16384')
})

/** MiB of the mappings that a command which this process starts has a copy of: Linux starts none where one is larger than the machine's memory. */
function copiedForCommands(): number[] {
  const mappings = readFileSync('/proc/self/smaps', 'utf8').split(/^(?=[0-9a-f]+-)/m)
  return mappings
    .filter((mapping) => /^\S+ rw.p /.test(mapping) && !/^VmFlags:.* dc( |$)/m.test(mapping))
    .map((mapping) => Number(/^Size: +(\d+) kB$/m.exec(mapping)?.[1]) / 1024)
}

test('commands need none for packets, neither while a run has them nor while its thread keeps them for the next', async () => {
  const pool = testPool({ maximum: 1 })
  const run = new TestRun(pool, {
    in: { udp_local: { address: '127.0.0.1:0', output: 'a' } },
    sink: { traffic_sink: { input: 'a' } },
  })
  await run.handle.running
  expect(Math.max(...copiedForCommands())).toBeLessThan(100)
  await run.stop()
  expect(Math.max(...copiedForCommands())).toBeLessThan(100)
  await pool.close()
})
