/** The bonding example in real network namespaces, in short: what it prints says that both paths are used, one of them may go, and nothing is left. */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const script = fileURLToPath(new URL('../../examples/bonding/bonding.sh', import.meta.url))
const missing = ['ip', 'tc', 'ping', 'iperf3', 'ss'].filter((tool) => spawnSync('which', [tool]).status !== 0)
if (process.getuid?.() !== 0) missing.push('root')
else if (spawnSync('unshare', ['-n', 'true']).status !== 0) missing.push('the right to make network namespaces')
if (missing.length > 0) console.warn(`SKIPPED: the bonding test lacks ${missing.join(', ')}`)

/** The numbers of the line that starts with `label`, behind it. */
function numbers(table: string, label: string): number[] {
  const line = table.split('\n').find((text) => text.startsWith(label))
  if (line === undefined) throw new Error(`no line "${label}" in:\n${table}`)
  return [...line.slice(label.length).matchAll(/\d+(\.\d+)?/g)].map(([digits]) => Number(digits))
}

const namespaces = () => execFileSync('ip', ['netns', 'list'], { encoding: 'utf8' })

describe.skipIf(missing.length > 0)('examples/bonding/bonding.sh', () => {
  it('carries ping, TCP and a realtime stream over two paths, notices that one goes and comes back, and cleans up', {
    timeout: 200_000,
  }, async () => {
    const child = spawn(script, ['2'], { stdio: ['ignore', 'pipe', 'pipe'] })
    let table = ''
    let errors = ''
    child.stdout.on('data', (text) => {
      table += text
    })
    child.stderr.on('data', (text) => {
      errors += text
    })
    const [code] = await once(child, 'close')
    // 0: at its goals; 1: it says which of them it misses, as on a machine that is busy.
    expect([0, 1], errors).toContain(code)
    expect(table, errors).toContain('ping loss')
    const [fastLoss, slowLoss, bothLoss] = numbers(table, 'ping loss')
    expect(fastLoss).toBeGreaterThan(2)
    expect(slowLoss).toBeLessThan(5)
    expect(bothLoss).toBeLessThan(2)
    const [, , bothRate] = numbers(table, 'TCP goodput').slice(-3)
    expect(bothRate).toBeGreaterThan(1)
    expect(bothRate).toBeLessThan(30)
    const [lost, sent] = numbers(table, 'realtime stream of 2 Mbit/s')
    expect(sent).toBeGreaterThan(2400)
    expect(lost).toBeLessThan((sent as number) / 10)
    const [left, used] = numbers(table, 'the faster path: times left, used at the end')
    expect(left).toBeGreaterThanOrEqual(1)
    expect(used).toBe(1)
    expect(namespaces()).not.toContain(`-${child.pid}`)
  })
})
