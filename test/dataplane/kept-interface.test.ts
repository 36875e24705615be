/** Interfaces that a run made keep their address and default route when they are set down and up again. */
import { execFileSync, spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const script = fileURLToPath(new URL('./kept-interface.mjs', import.meta.url))
const possible = spawnSync('unshare', ['-n', 'sh', '-c', 'ip link set lo up && ip tuntap add mode tun']).status === 0
if (!possible) console.warn('SKIPPED: the test of interfaces that are set down and up needs root, unshare and ip')

const ROUTES = { four: ['four 0', 'other 100'], six: ['six 1024', 'other 2000'] }
const FOUR = 'interface four had lost its default route: put back'
const SIX = 'interface six had lost its address fd00:99:6::1 and its default route: put back'

describe.skipIf(!possible)('an interface that the run made', () => {
  it('has its address and default route again after it was down, and leaves those of others alone; a tap its hardware address in the next run', () => {
    const command = ['-n', 'sh', '-c', 'ip link set lo up && exec "$@"', 'sh', process.execPath, script]
    const result = JSON.parse(execFileSync('unshare', command, { timeout: 60_000, encoding: 'utf8' }))
    expect(result.first.routes).toEqual(ROUTES)
    // Down and up within milliseconds; the one that was found lacks what Linux took.
    expect(result.quick).toMatchObject({ routes: ROUTES, addresses: { lasting: [] } })
    expect(result.quick.log).toEqual([
      `four INFO: ${FOUR}`,
      `six INFO: ${SIX}`,
      'tapped INFO: interface tapped had lost its address fd00:99:7::1: put back',
    ])
    // Down for a while.
    expect(result.down).toEqual(
      ['four', 'six'].map(
        (name) => `${name} WARN: interface ${name} is down: nothing is sent or received until it is up again`,
      ),
    )
    expect(result.up).toEqual([
      `four INFO: ${FOUR}`,
      'four INFO: interface four is up again',
      `six INFO: ${SIX}`,
      'six INFO: interface six is up again',
    ])
    expect(result.taken).toEqual([
      'four INFO: interface four had lost its address 10.99.4.1 and its default route: put back',
      'six INFO: interface six had lost its default route: put back',
    ])
    expect(result.rival).toEqual({
      routes: ['other 0', 'four 0', 'other 100'],
      log: [
        'four WARN: another default route of the same metric as that of interface four is there, which may get its traffic (ip route)',
      ],
    })
    expect(result).toMatchObject({
      end: { outcome: 'STOPPED' },
      descriptors: 0,
      left: ['lo', 'away', 'other', 'lasting'],
      hardware: { again: true, beside: false, kind: 2 },
    })
  }, 70_000)

  it('is told of, and left alone, while it is in another network namespace, and kept again under its new name', () => {
    const path = fileURLToPath(new URL('./moved-tun.mjs', import.meta.url))
    const own = 'mkdir -p /run/netns && mount -t tmpfs none /run/netns && ip link set lo up && exec "$@"'
    const command = ['-n', '-m', '--propagation', 'private', 'sh', '-c', own, 'sh', process.execPath, path]
    expect(JSON.parse(execFileSync('unshare', command, { timeout: 60_000, encoding: 'utf8' }))).toEqual({
      others: [],
      back: ['10.99.9.1'],
      sameNumber: false,
      route: 'pen9',
      end: 'STOPPED',
      log: [
        'WARN: interface pen is in another network namespace now, down and without addresses and routes as long as nobody sets it up there: it is looked after again once it is back',
        'INFO: interface pen is called pen9 now',
        'INFO: interface pen9 is back in this network namespace',
        'WARN: interface pen9 is down: nothing is sent or received until it is up again',
        'INFO: interface pen9 is up again',
        'INFO: interface pen9 had lost its address 10.99.9.1 and its default route: put back',
      ],
      descriptors: 0,
    })
  }, 70_000)
})
