/** Starts on a node that may have no more address space: what they say. */
import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { afterAll, expect, test } from 'vitest'
import { lossy, scratch } from './cli.ts'
import { CommandNode } from './running-node.ts'

const hasPrlimit = spawnSync('prlimit', ['--version']).status === 0
if (!hasPrlimit) console.warn('SKIPPED: a process that may have no more address space needs prlimit')

const directory = scratch()
afterAll(() => directory.dispose())

test.skipIf(!hasPrlimit)('a start names the address space that its packets need, and what to do', async () => {
  const node = await CommandNode.up(`${directory.path}/data`)
  try {
    const pipeline = {
      socket: { udp_local: { address: '127.0.0.1:0', output: 'a', mtu: 65_507 } },
      sink: { traffic_sink: { input: 'a' } },
    }
    const large = directory.file('large.json', { version: 1, engine_config: { pipeline } })
    const created = (name: string, file: string) => node.call(['pipelines', 'create', name, file])
    expect(await created('small', directory.file('small.json', lossy))).toMatchObject({ code: 0 })
    expect(await created('large', large)).toMatchObject({ code: 0 })
    expect(await node.call(['pipelines', 'start', 'small'])).toMatchObject({ code: 0 })
    const { pid } = node.process
    const [, kibibytes] = /^VmSize:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
    // Enough for one more thread.
    const limit = Number(kibibytes) * 1024 + 700 * 2 ** 20
    execFileSync('prlimit', ['--pid', String(pid), `--as=${limit}:`])
    const { code, stderr } = await node.call(['pipelines', 'start', 'large'])
    expect(code).toBe(1)
    expect(stderr).toMatch(
      /the packets of the run need 10\d\d MiB of address space, which cannot be had: stop other runs, or raise the limit of the process \(ulimit -v, LimitAS=\); they need less where no component brings in packets of more than 1500 bytes \(mtu; here 65507\)/,
    )
    execFileSync('prlimit', ['--pid', String(pid), '--as=unlimited:'])
    expect(await node.call(['pipelines', 'start', 'large'])).toMatchObject({ code: 0 })
  } finally {
    await node.end()
  }
})
