/** The relay example in real network namespaces: two clients ping each other through it, and one that is not listed nobody. */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import '../harness/slow.ts'
import { until } from '../harness/waiting.ts'
import { namespacesLack } from './namespaces.ts'

const folder = new URL('../../examples/relay/', import.meta.url)
const script = fileURLToPath(new URL('relay.sh', folder))
const missing = namespacesLack()
if (spawnSync('which', ['ping']).status !== 0) missing.push('ping')
if (missing.length > 0) console.warn(`SKIPPED: the relay test lacks ${missing.join(', ')}`)

/** The numbers of a table by the labels of their lines. */
function rows(table: string): Record<string, number> {
  const lines = [...table.matchAll(/^(\S.*?) {2,}(\d+)( of \d+ answered)?$/gm)]
  return Object.fromEntries(lines.map(([, label, number]) => [label, Number(number)]))
}

const namespaces = () => execFileSync('ip', ['netns', 'list'], { encoding: 'utf8' })

/** What a process was started with; empty once it is gone. */
function commandOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
  } catch {
    return ''
  }
}

describe.skipIf(missing.length > 0)('examples/relay/relay.sh', () => {
  it('carries pings between two clients, drops and counts all that a third sends, and cleans up', async () => {
    const pings = 10
    const child = spawn(script, [`${pings}`], { stdio: ['ignore', 'pipe', 'pipe'] })
    let table = ''
    let errors = ''
    child.stdout.on('data', (text) => {
      table += text
    })
    child.stderr.on('data', (text) => {
      errors += text
    })
    const [code] = await once(child, 'close')
    expect(errors).toMatch(/^a relay, .*\n$/)
    expect(code).toBe(0)
    const found = rows(table)
    const sent = found['datagrams the stranger sent']
    expect(sent).toBeGreaterThanOrEqual(pings)
    expect(found).toEqual({
      'a pings b': pings,
      'b pings a': pings,
      'the stranger pings a': 0,
      'datagrams the stranger sent': sent,
      'relay: lookup/unlisted_client_packets': sent,
      'relay: lookup/known_clients': 2,
      'relay: decrypt/authentication_failures': 0,
    })
    const told = /```\n(a pings[\s\S]*?)```/.exec(readFileSync(new URL('README.md', folder), 'utf8'))?.[1] ?? ''
    expect(Object.keys(rows(told))).toEqual(Object.keys(found))
    expect(namespaces()).not.toContain(`-${child.pid}`)
  })

  it('cleans up when it is interrupted', async () => {
    const child = spawn(script, ['10000'], { stdio: 'ignore', detached: true })
    const gone = once(child, 'close')
    /** The process that runs the configuration started last; others are in its namespace for a moment, as it is set up. */
    const stranger = () => {
      const namespace = `penstock-stranger-${child.pid}`
      const { stdout } = spawnSync('ip', ['netns', 'pids', namespace], { encoding: 'utf8' })
      return stdout.split('\n').find((pid) => commandOf(pid).includes('stranger.json'))
    }
    let pid: string | undefined
    try {
      await until(() => {
        pid = stranger()
        return pid !== undefined || child.exitCode !== null
      }, 'the stranger')
      expect(child.exitCode).toBeNull()
    } finally {
      if (child.exitCode === null) process.kill(-(child.pid as number), 'SIGTERM')
    }
    expect(await gone).toEqual([143, null])
    expect(namespaces()).not.toContain(`-${child.pid}`)
    expect(commandOf(pid as string)).toBe('')
  })
})
