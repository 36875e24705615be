/** The example of Ethernet over UDP between two network namespaces that stand for its two machines. */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterEach, describe, expect, it } from 'vitest'
import { packageRoot } from '../../src/package-root.ts'
import { until } from '../harness/waiting.ts'
import '../harness/slow.ts'

const missing = ['ip', 'ping'].filter((tool) => spawnSync('which', [tool]).status !== 0)
if (process.getuid?.() !== 0) missing.push('root')
else if (spawnSync('unshare', ['-n', 'true']).status !== 0) missing.push('the right to make network namespaces')
if (missing.length > 0) console.warn(`SKIPPED: the Ethernet test lacks ${missing.join(', ')}`)

const MACHINES = ['a', 'b'] as const
const namespaceOf = (machine: string) => `ethernet-${machine}-${process.pid}`
const ip = (...args: string[]) => execFileSync('ip', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })

describe.skipIf(missing.length > 0)('examples/ethernet', () => {
  const children: ChildProcess[] = []
  afterEach(async () => {
    for (const child of children.splice(0)) {
      if (child.exitCode !== null) continue
      child.kill('SIGKILL')
      await once(child, 'exit')
    }
    for (const machine of MACHINES) spawnSync('ip', ['netns', 'delete', namespaceOf(machine)])
  })

  /** Runs the machine's configuration until the test is over; resolves once it is running. */
  async function run(machine: string): Promise<void> {
    const penstock = [process.execPath, join(packageRoot(), 'bin/penstock.js')]
    const config = join(packageRoot(), `examples/ethernet/${machine}.json`)
    const child = spawn('ip', ['netns', 'exec', namespaceOf(machine), ...penstock, 'run', config, '-o', 'json'])
    children.push(child)
    let told = ''
    child.stderr.on('data', (chunk) => {
      told += chunk
    })
    await until(
      () => /STATE running/.test(told) || child.exitCode !== null,
      () => `running: ${told}`,
    )
    expect(told).toMatch(/STATE running/)
  }

  it('carries pings, and the ARP before them', { timeout: 60_000 }, async () => {
    for (const machine of MACHINES) ip('netns', 'add', namespaceOf(machine))
    const [a, b] = MACHINES.map(namespaceOf) as [string, string]
    ip('-n', a, 'link', 'add', 'wire', 'type', 'veth', 'peer', 'name', 'wire', 'netns', b)
    for (const [i, name] of [a, b].entries()) {
      ip('-n', name, 'address', 'add', `192.0.2.${i + 1}/24`, 'dev', 'wire')
      ip('-n', name, 'link', 'set', 'wire', 'up')
    }
    for (const machine of MACHINES) await run(machine)
    const ping = spawn('ip', ['netns', 'exec', a, 'ping', '-c', '5', '-i', '0.2', '-W', '5', '10.203.0.2'])
    const [said] = await Promise.all([text(ping.stdout), once(ping, 'close')])
    expect(said).toContain('5 received')
    const [, mac] = /ether ([\da-f:]{17})/.exec(ip('-n', b, 'link', 'show', 'pst0')) ?? []
    expect(ip('-n', a, 'neigh', 'show', 'dev', 'pst0')).toContain(`10.203.0.2 lladdr ${mac} `)
    // Up to 1,280 bytes of IP packet in one frame, which fits a datagram on the wire.
    const large = spawnSync('ip', [
      'netns',
      'exec',
      a,
      'ping',
      '-c',
      '1',
      '-W',
      '5',
      '-M',
      'do',
      '-s',
      '1252',
      '10.203.0.2',
    ])
    expect(`${large.stdout}`).toContain('1 received')
    const summary = children[0]!
    const out = text(summary.stdout!)
    // The command, not the "ip" that has become it, hears the signal: they are one process.
    summary.kill('SIGINT')
    const { metrics } = JSON.parse(await out)
    expect(metrics.device.received_packets).toBeGreaterThanOrEqual(7)
    expect(metrics.network.sent_packets).toBe(metrics.device.received_packets)
    expect([metrics.network.oversize_packets, metrics.device.oversize_packets]).toEqual([0, 0])
  })
})
