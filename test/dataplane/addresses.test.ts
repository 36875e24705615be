/** UDP endpoints and their addresses, with socat in another namespace: groups joined and sent to, interfaces, zones, IPv4 and IPv6. */
import { execFileSync, spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const script = fileURLToPath(new URL('./addresses.mjs', import.meta.url))
const PRIVATE = 'mkdir -p /run/netns && mount -t tmpfs none /run/netns && ip link set lo up'
const NAMESPACES = ['-n', '-m', '--propagation', 'private', 'sh', '-c']
const possible = spawnSync('unshare', [...NAMESPACES, `${PRIVATE} && ip netns add far && socat -V`]).status === 0
if (!possible) console.warn('SKIPPED: the test of multicast, interfaces and zones needs root, unshare, ip and socat')

describe.skipIf(!possible)('udp, udp_local and udp_remote', () => {
  it('reach and are reached where their addresses, interfaces and groups say', () => {
    const command = [...NAMESPACES, `${PRIVATE} && exec "$@"`, 'sh', process.execPath, script]
    const output = execFileSync('unshare', command, { timeout: 200_000, encoding: 'utf8' })
    expect(JSON.parse(output)).toEqual({
      // The TTL with which a datagram arrived there; 1 is what the kernel gives one for a group, 64 one for a host.
      'IPv4 group by interface': 'hops=3',
      'IPv4 group, other hops while it runs': 'hops=7',
      'IPv4 group, hops unset while it runs': 'hops=1',
      'IPv6 group, other hops while it runs': 'hops=7',
      'IPv4 group by local address': 'hops=1',
      'IPv4 group by annotation': 'hops=1',
      'IPv6 group by zone': 'hops=5',
      'IPv6 group by interface': 'hops=1',
      'IPv6 group by local address': 'hops=1',
      'IPv6 group by annotation': 'hops=1',
      'IPv6 site group': 'hops=9',
      'link-local by zone': 'hops=64',
      'link-local by interface': 'hops=64',
      'link-local by annotation': 'hops=64',
      'udp without addresses, IPv6': 'hops=64',
      'udp without addresses, link-local': 'hops=64',
      'udp without addresses, IPv4, and back': 'hello',
      'joined IPv4 by interface': 'far',
      'joined IPv4 at the group': 'far',
      'joined IPv6 by zone': 'far',
      'joined IPv6 by interface': 'far',
      'bound to interfaces': ['heard', 'by one', 'heard'],
      'joined to groups, IPv4': ['heard', 'by one', 'heard'],
      'joined to groups, IPv6': ['heard', 'by one', 'heard'],
      'joined to none': [
        'member 7310',
        'member 7311',
        'proof 7312',
        'proof 7313',
        'proof 7314',
        'proof 7315',
        'proof6 7313',
        'proof6 7315',
      ],
      'answered at a link-local address': 'question',
      'no such zone': expect.stringContaining('there is no network interface "nowhere"'),
      'no such zone of a socket': expect.stringContaining('there is no network interface "nowhere"'),
      'from the loopback': expect.stringContaining(
        'connect EINVAL 10.91.8.2:9: invalid argument; nothing is sent there',
      ),
      'no way to the group': expect.stringContaining('no such device; no route says on which network'),
      'no zone': expect.stringContaining('connect EINVAL [fe80::8:2]:9: invalid argument; a link-local address'),
    })
  }, 210_000)
})
