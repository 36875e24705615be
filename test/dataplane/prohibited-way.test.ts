/** Errors of the network that a connected socket is told of: they are those of packets that have left, and cost no other. What is too long is none over IPv4. */
import { execFileSync, spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import '../harness/slow.ts'

const PRIVATE = 'mkdir -p /run/netns && mount -t tmpfs none /run/netns && ip link set lo up'
const NAMESPACES = ['-n', '-m', '--propagation', 'private', 'sh', '-c']
const possible = spawnSync('unshare', [...NAMESPACES, `${PRIVATE} && ip netns add router`]).status === 0
if (!possible) console.warn('SKIPPED: the test of a router that forwards nothing needs root, unshare and ip')

/** What a script of this folder says, in namespaces of its own. */
function saidBy(script: string, ...words: string[]): unknown {
  const path = fileURLToPath(new URL(script, import.meta.url))
  const command = [...NAMESPACES, `${PRIVATE} && exec "$@"`, 'sh', process.execPath, path, ...words]
  return JSON.parse(execFileSync('unshare', command, { timeout: 60_000, encoding: 'utf8' }))
}

describe.skipIf(!possible)('packets that a router refuses to forward', () => {
  const said = (...words: string[]) => saidBy('prohibited-way.mjs', ...words)

  it.each(['4', '6'])('are sent and their errors counted, over IPv%s', (family) => {
    // The error of the last is not looked at any more.
    expect(said(family)).toEqual({ heard: 5, socketErrors: 4, sendErrors: 0, held: 0 })
  })

  it.each(['1400 100', '1400 100,200'])(
    'for their length cost none of those that are short enough, over IPv6: %s',
    (lengths) => {
      expect(said('6', lengths)).toEqual({ heard: 1, socketErrors: 1, sendErrors: 0, held: 0 })
    },
  )

  it('for their length are IPv6’s only: over IPv4 it fragments them, and they arrive', () => {
    expect(saidBy('path-mtu.mjs')).toEqual([1401, 1402, 1403])
  })
})
