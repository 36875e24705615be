/** From where sockets send: connected ones follow the way to their peers when the machine's addresses or routes change, and say if it leads through their own tunnel; others answer from where they were asked. */
import { execFileSync, spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const PRIVATE = 'mkdir -p /run/netns && mount -t tmpfs none /run/netns && ip link set lo up'
const NAMESPACES = ['-n', '-m', '--propagation', 'private', 'sh', '-c']
const possible = spawnSync('unshare', [...NAMESPACES, `${PRIVATE} && ip netns add far`]).status === 0
if (!possible) console.warn('SKIPPED: the test of sockets whose address changes needs root, unshare and ip')

/** What a script of this folder says, in namespaces of its own. */
function said(script: string, ...args: string[]): unknown {
  const path = fileURLToPath(new URL(script, import.meta.url))
  const command = [...NAMESPACES, `${PRIVATE} && exec "$@"`, 'sh', process.execPath, path, ...args]
  return JSON.parse(execFileSync('unshare', command, { timeout: 100_000, encoding: 'utf8' }))
}

describe.skipIf(!possible)('a connected socket that was given no particular address', () => {
  it('is heard and hears again, at its port, from where its packets leave the machine', () => {
    const following = ['free', 'any', 'bound', 'boundAny', 'free6', 'any6']
    const at = (v4: string, v6: string, bound = v4) => ({
      ...{ free: v4, any: v4, bound, boundAny: bound },
      ...{ free6: v6, any6: v6 },
    })
    expect(said('moved-address.mjs')).toEqual({
      first: { ...at('192.0.2.1', '2001:db8:1::1'), fixed: '192.0.2.1' },
      readdressed: at('192.0.2.3', '2001:db8:1::3'),
      // One line for each when nothing led to its peer, and one when something did.
      warnings: following.map(() => 1),
      told: following.map(() => 1),
      free: 'INFO free: bound to 192.0.2.3:PORT (LINUX) in place of 192.0.2.1:PORT: the way to 203.0.113.1:PORT begins there now',
      again: at('192.0.2.4', '2001:db8:1::4'),
      // Those bound to the interface stay with it.
      rerouted: at('198.51.100.1', '2001:db8:2::1', '192.0.2.4'),
      back: at('192.0.2.4', '2001:db8:1::4'),
      reached: ['free', 'any'],
      ports: [...following, 'fixed'],
      sources: following,
      held: 0,
      end: 'STOPPED',
      descriptors: 0,
    })
  }, 110_000)

  it.each([
    ['IPv4, at a port of the kernel’s choice', '4', '0'],
    ['IPv4, at a port that was given', '4', '7000'],
    ['IPv6, at a port of the kernel’s choice', '6', '0'],
    ['IPv6, at a port that was given', '6', '7000'],
  ])(
    'keeps what waits in it and never hears a stranger: %s',
    (_what, family, port) => {
      const [first, second] = family === '4' ? ['192.0.2.1', '192.0.2.3'] : ['2001:db8::1', '2001:db8::3']
      expect(said('moved-socket.mjs', family, port)).toEqual({
        answers: 200,
        strays: 0,
        moves: 40,
        settled: 40,
        places: [`0 ${second} true`, `1 ${first} true`],
        refused: 0,
        descriptors: 0,
      })
    },
    110_000,
  )
})

it.skipIf(!possible)(
  'a socket at all addresses answers from the one where it was asked, as long as the machine has it',
  () => {
    const own = { udp4: '127.0.0.1', udp6: '::1' }
    expect(said('answering-address.mjs')).toEqual({
      unasked: own,
      lost: own,
      warnings: [],
      end: 'STOPPED',
      descriptors: 0,
    })
  },
  60_000,
)

describe.skipIf(!possible)('a connected socket behind an interface of its run', () => {
  it('warns, once, where its own packets go into that interface again, and not where the way only passes one', () => {
    const warning = (name: string, address: string, device: string) =>
      `WARN ${name}: the way to ${address} leads through interface ${device}, whose packets are sent there: those of the tunnel go into the tunnel themselves, again and again; give the peer a route of its own outside of the tunnel: ip route add ${address} via GATEWAY`
    expect(said('routed-tunnel.mjs')).toEqual({
      end: 'STOPPED',
      first: [
        warning('fixed', '203.0.113.1', 'four'),
        warning('free6', '2001:db8:3::1', 'six'),
        warning('free', '203.0.113.1', 'four'),
      ],
    })
  }, 110_000)
})
