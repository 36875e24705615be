/** The example of Ethernet over UDP between two network namespaces that stand for its two machines. */
import { type ChildProcess, execFileSync, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, expect, it } from 'vitest'
import { packageRoot } from '../../src/package-root.ts'
import { until } from '../harness/waiting.ts'
import { Cable, namespacesLack } from './namespaces.ts'
import '../harness/slow.ts'

const missing = namespacesLack()
if (spawnSync('which', ['ping']).status !== 0) missing.push('ping')
if (missing.length > 0) console.warn(`SKIPPED: the Ethernet test lacks ${missing.join(', ')}`)

const ip = (...args: string[]) => execFileSync('ip', args, { encoding: 'utf8' })

describe.skipIf(missing.length > 0)('examples/ethernet', () => {
  it('carries pings, and the ARP before them', { timeout: 60_000 }, async () => {
    const cable = new Cable()
    const { near, far } = cable
    /** Runs a machine's configuration; resolves once it is running. */
    const run = async (namespace: string, machine: 'a' | 'b'): Promise<ChildProcess> => {
      const config = join(packageRoot(), `examples/ethernet/${machine}.json`)
      const child = cable.spawn(namespace, join(packageRoot(), 'bin/penstock.js'), ['run', config, '-o', 'json'])
      let told = ''
      child.stderr!.on('data', (chunk) => {
        told += chunk
      })
      await until(
        () => /STATE running/.test(told) || child.exitCode !== null,
        () => `running: ${told}`,
      )
      expect(told).toMatch(/STATE running/)
      return child
    }
    const ping = (...args: string[]) =>
      spawnSync('ip', ['netns', 'exec', near, 'ping', '-W', '5', ...args, '10.203.0.2'], { encoding: 'utf8' }).stdout
    try {
      ip('-n', near, 'address', 'add', '192.0.2.1/24', 'dev', 'cable')
      ip('-n', far, 'address', 'add', '192.0.2.2/24', 'dev', 'cable')
      const a = await run(near, 'a')
      await run(far, 'b')
      expect(ping('-c', '5', '-i', '0.2')).toContain('5 received')
      const [, mac] = /ether ([\da-f:]{17})/.exec(ip('-n', far, 'link', 'show', 'pst0')) ?? []
      expect(ip('-n', near, 'neigh', 'show', 'dev', 'pst0')).toContain(`10.203.0.2 lladdr ${mac} `)
      // 1,280 bytes of IP packet in one frame, which fits a datagram on the cable.
      expect(ping('-c', '1', '-M', 'do', '-s', '1252')).toContain('1 received')
      const summary = text(a.stdout!)
      a.kill('SIGINT')
      const { metrics } = JSON.parse(await summary)
      expect(metrics.device.received_packets).toBeGreaterThanOrEqual(7)
      expect(metrics.network.sent_packets).toBe(metrics.device.received_packets)
      expect([metrics.network.oversize_packets, metrics.device.oversize_packets]).toEqual([0, 0])
    } finally {
      await cable.dispose()
    }
  })
})
