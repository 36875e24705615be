/** The tunnel example in real network namespaces: what it prints says that error correction pays, and nothing is left. */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const script = fileURLToPath(new URL('../../examples/tunnel/tunnel.sh', import.meta.url))
const missing = ['ip', 'ping', 'iperf3', 'ss'].filter((tool) => spawnSync('which', [tool]).status !== 0)
if (process.getuid?.() !== 0) missing.push('root')
else if (spawnSync('unshare', ['-n', 'true']).status !== 0) missing.push('the right to make network namespaces')
if (missing.length > 0) console.warn(`SKIPPED: the tunnel test lacks ${missing.join(', ')}`)

/** The two numbers of the line that starts with `label`: without and with error correction. */
function row(table: string, label: string): [number, number] {
  const line = table.split('\n').find((text) => text.startsWith(label))
  const found = /([\d.]+) \S+ +([\d.]+) \S+$/.exec(line ?? '')
  if (!found) throw new Error(`no line "${label}" in:\n${table}`)
  return [Number(found[1]), Number(found[2])]
}

const namespaces = () => execFileSync('ip', ['netns', 'list'], { encoding: 'utf8' })

describe.skipIf(missing.length > 0)('examples/tunnel/tunnel.sh', () => {
  it('loses fewer pings with error correction, carries TCP, and cleans up', { timeout: 150_000 }, async () => {
    const child = spawn(script, ['2', '200'], { stdio: ['ignore', 'pipe', 'pipe'] })
    let table = ''
    let errors = ''
    child.stdout.on('data', (text) => {
      table += text
    })
    child.stderr.on('data', (text) => {
      errors += text
    })
    const [code] = await once(child, 'close')
    expect(errors).toMatch(/^plain: .*\nfec: .*\n$/)
    expect(code).toBe(0)
    const [lossWithout, lossWith] = row(table, 'ping loss')
    expect(lossWith).toBeLessThan(lossWithout)
    const [, goodput] = row(table, 'TCP goodput')
    expect(goodput).toBeGreaterThan(0)
    expect(namespaces()).not.toContain(`-${child.pid}`)
  })

  it('cleans up when it is interrupted', { timeout: 60_000 }, async () => {
    const child = spawn(script, ['60'], { stdio: ['ignore', 'ignore', 'pipe'], detached: true })
    await once(child.stderr, 'data')
    expect(namespaces()).toContain(`-${child.pid}`)
    process.kill(-(child.pid as number), 'SIGTERM')
    const [code] = await once(child, 'close')
    expect(code).toBe(143)
    expect(namespaces()).not.toContain(`-${child.pid}`)
  })
})
