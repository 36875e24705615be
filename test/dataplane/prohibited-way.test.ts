/** Errors of the network that a connected socket is told of: they are those of packets that have left, and cost no other. */
import { execFileSync, spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import '../harness/slow.ts'

const PRIVATE = 'mkdir -p /run/netns && mount -t tmpfs none /run/netns && ip link set lo up'
const NAMESPACES = ['-n', '-m', '--propagation', 'private', 'sh', '-c']
const possible = spawnSync('unshare', [...NAMESPACES, `${PRIVATE} && ip netns add router`]).status === 0
if (!possible) console.warn('SKIPPED: the test of a router that forwards nothing needs root, unshare and ip')

describe.skipIf(!possible)('packets that a router refuses to forward', () => {
  const said = (...words: string[]) => {
    const script = fileURLToPath(new URL('prohibited-way.mjs', import.meta.url))
    const command = [...NAMESPACES, `${PRIVATE} && exec "$@"`, 'sh', process.execPath, script, ...words]
    return JSON.parse(execFileSync('unshare', command, { timeout: 60_000, encoding: 'utf8' }))
  }

  it.each(['4', '6'])('are sent and their errors counted, over IPv%s', (family) => {
    // The error of the last is not looked at any more.
    expect(said(family)).toEqual({ heard: 5, socketErrors: 4, sendErrors: 0, held: 0 })
  })

  it.each([
    ['4', '1400 100'],
    ['6', '1400 100,200'],
  ])('for their length cost none of those that are short enough, over IPv%s: %s', (family, lengths) => {
    expect(said(family, lengths)).toEqual({ heard: 1, socketErrors: 1, sendErrors: 0, held: 0 })
  })
})
