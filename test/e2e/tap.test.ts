/** Two TAP interfaces in network namespaces, joined by UDP between them, are one Ethernet segment: ARP, ping, full frames. */
import type { ChildProcess } from 'node:child_process'
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import '../harness/slow.ts'
import { until } from '../harness/waiting.ts'
import { Cable, FAR, NEAR, namespacesLack } from './namespaces.ts'

const command = fileURLToPath(new URL('../../bin/penstock.js', import.meta.url))
const missing = namespacesLack()
if (spawnSync('which', ['ping']).status !== 0) missing.push('ping')
if (missing.length > 0) console.warn(`SKIPPED: tests of TAP interfaces lack ${missing.join(', ')}`)

const INNER_NEAR = '10.93.0.1'
const INNER_FAR = '10.93.0.2'
const MTU = 1400

function bridge(ip: string, local: string, remote: string): string {
  const pipeline = {
    ethernet: { tap: { input: 'in', output: 'out', interface_name: 'pst0', ip, mtu: MTU } },
    way: { udp: { input: 'out', output: 'in', local_address: `${local}:7000`, remote_address: `${remote}:7000` } },
  }
  return JSON.stringify({ version: 1, engine_config: { pipeline } })
}

describe.skipIf(missing.length > 0)('two tap interfaces joined by a tunnel', () => {
  let cable: Cable
  let folder: string
  const children: ChildProcess[] = []

  beforeAll(() => {
    cable = new Cable()
    folder = mkdtempSync(join(tmpdir(), 'penstock-tap-'))
    for (const [namespace, config] of [
      [cable.near, bridge(INNER_NEAR, NEAR, FAR)],
      [cable.far, bridge(INNER_FAR, FAR, NEAR)],
    ] as const) {
      const file = join(folder, `${namespace}.json`)
      writeFileSync(file, config)
      const child = cable.spawn(namespace, command, ['run', file])
      child.stdout?.resume()
      child.stderr?.pipe(process.stderr)
      children.push(child)
    }
  })

  afterAll(async () => {
    await cable?.dispose()
    rmSync(folder, { recursive: true, force: true })
  })

  const inNear = (program: string, ...args: string[]) =>
    spawnSync('ip', ['netns', 'exec', cable.near, program, ...args], { encoding: 'utf8' })

  it('answer ping, frames of the whole MTU included', async () => {
    await until(() => inNear('ping', '-c', '1', '-W', '1', INNER_FAR).status === 0, 'an answer to ping')
    const whole = inNear('ping', '-M', 'do', '-s', String(MTU - 28), '-c', '3', '-i', '0.2', '-W', '2', INNER_FAR)
    expect(whole.stdout).toContain('3 received')
    const longer = inNear('ping', '-M', 'do', '-s', String(MTU - 27), '-c', '1', '-W', '1', INNER_FAR)
    expect(longer.status).not.toBe(0)
    expect(inNear('ip', 'neighbour', 'show', INNER_FAR, 'dev', 'pst0').stdout).toContain('lladdr')
  })

  it('are gone when the runs are', async () => {
    for (const child of children) {
      const end = once(child, 'exit')
      child.kill('SIGINT')
      expect(await end).toEqual([0, null])
    }
    expect(inNear('ip', 'link', 'show', 'pst0').status).not.toBe(0)
  })
})
