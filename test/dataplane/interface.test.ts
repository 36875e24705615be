/** Sockets that are bound to an interface follow it when it is deleted and made anew: every kind of UDP endpoint. */
import { execFileSync, spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const script = fileURLToPath(new URL('./interface.mjs', import.meta.url))
const PRIVATE = 'mkdir -p /run/netns && mount -t tmpfs none /run/netns && ip link set lo up'
const NAMESPACES = ['-n', '-m', '--propagation', 'private', 'sh', '-c']
const possible = spawnSync('unshare', [...NAMESPACES, `${PRIVATE} && ip netns add far`]).status === 0
if (!possible) console.warn('SKIPPED: the test of sockets bound to an interface needs root, unshare and ip')

describe.skipIf(!possible)('a socket bound to an interface', () => {
  it('is heard and hears again after the interface was made anew, at the same port', () => {
    const command = [...NAMESPACES, `${PRIVATE} && exec "$@"`, 'sh', process.execPath, script]
    const output = execFileSync('unshare', command, { timeout: 60_000, encoding: 'utf8' })
    const all = ['any', 'fixed', 'free', 'remote', 'local', 'group', 'routed', 'zone']
    expect(JSON.parse(output)).toEqual({
      end: { outcome: 'STOPPED' },
      gone: all,
      again: all,
      ports: expect.arrayContaining([...all.filter((socket) => socket !== 'free' && socket !== 'zone'), 'addressed']),
      held: 0,
      descriptors: 0,
    })
  }, 70_000)
})
