/** Sockets that are bound to an interface follow it when it is deleted and made anew: every kind of UDP endpoint. */
import { execFileSync, spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const PRIVATE = 'mkdir -p /run/netns && mount -t tmpfs none /run/netns && ip link set lo up'
const NAMESPACES = ['-n', '-m', '--propagation', 'private', 'sh', '-c']
const possible = spawnSync('unshare', [...NAMESPACES, `${PRIVATE} && ip netns add far`]).status === 0
if (!possible) console.warn('SKIPPED: the test of sockets bound to an interface needs root, unshare and ip')

/** What a script of this folder says, in namespaces of its own. */
function said(script: string): unknown {
  const path = fileURLToPath(new URL(script, import.meta.url))
  const command = [...NAMESPACES, `${PRIVATE} && exec "$@"`, 'sh', process.execPath, path]
  return JSON.parse(execFileSync('unshare', command, { timeout: 100_000, encoding: 'utf8' }))
}

describe.skipIf(!possible)('a socket bound to an interface', () => {
  it('is heard and hears again after the interface was made anew, at the same port', () => {
    const all = ['any', 'fixed', 'free', 'remote', 'local', 'group', 'routed', 'zone', 'listener']
    expect(said('./interface.mjs')).toEqual({
      end: { outcome: 'STOPPED' },
      lost: [],
      gone: all,
      again: all,
      ports: expect.arrayContaining(['any', 'fixed', 'remote', 'local', 'group', 'routed', 'addressed']),
      held: 0,
      descriptors: 0,
    })
  }, 110_000)

  it('goes by any name of the interface, and follows the way to its peer while that is renamed', () => {
    expect(said('./renamed-interface.mjs')).toEqual({
      renamed: ['way: interface cable is called renamed now'],
      way: '192.0.2.3',
    })
  }, 110_000)

  it('sends from where the way begins after the interface was made anew, as before, at a port of the system’s choice', () => {
    const both = ['192.0.2.1', '192.0.2.3']
    expect(said('./remade-interface.mjs')).toEqual({ before: both, after: both, samePort: true })
  }, 110_000)

  it('is in its group again after the interface has come back under its old number', () => {
    const members = { v4: 3, v6: 2 }
    expect(said('./moved-interface.mjs')).toEqual({
      first: members,
      later: members,
      sameNumber: true,
      forgotten: [],
      short: [],
      end: 'STOPPED',
      left: { v4: 0, v6: 0 },
      descriptors: 0,
    })
  }, 110_000)

  it('and interfaces of runs lose packets while nobody reads, which are counted over renaming and replacement, and told', () => {
    expect(said('./flooded.mjs')).toEqual({
      away: true,
      log: ['pen', 'old', 'socket', 'old'].map((name) =>
        expect.stringMatching(new RegExp(`^${name} WARN: the kernel drops packets before the run reads them, `)),
      ),
    })
  }, 110_000)
})
