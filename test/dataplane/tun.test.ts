/** TUN devices in network namespaces of their own: made, used, taken away; refused with the cause without the privilege. */
import { execFileSync, spawnSync } from 'node:child_process'
import { constants } from 'node:os'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import '../harness/slow.ts'

const script = fileURLToPath(new URL('./device.mjs', import.meta.url))
const privileged = spawnSync('unshare', ['-n', 'sh', '-c', 'ip link set lo up && ip tuntap add mode tun']).status === 0
if (!privileged) console.warn('SKIPPED: tests of TUN devices need root, unshare and ip')

function run(command: string[], device: Record<string, unknown>): Record<string, unknown> {
  const [program, ...args] = [...command, 'node', script, JSON.stringify({ interface_name: 'pst0', ...device })]
  const output = execFileSync(program, args, { timeout: 60_000, encoding: 'utf8' })
  return JSON.parse(output.trim().split('\n').at(-1) as string)
}

const NAMESPACE = ['unshare', '-n', 'sh', '-c', 'ip link set lo up && exec "$@"', 'sh']

describe.skipIf(!privileged)('a TUN device', () => {
  it.each([
    [{ ip: '10.99.0.1' }, { mtu: 1280, prefix: 24, version: 4, defaultRoute: false }],
    [
      { ip: '10.99.0.1', netmask: '255.255.0.0', mtu: 1400, generic_offload: true, is_default_route: true },
      { mtu: 1400, prefix: 16, version: 4, defaultRoute: true },
    ],
    [{ ip: 'fd00:99::1' }, { mtu: 1280, prefix: 64, version: 6, defaultRoute: false }],
    [
      { ip: 'fd00:99::1', netmask: '48', generic_offload: true, is_default_route: true },
      { mtu: 1280, prefix: 48, version: 6, defaultRoute: true },
    ],
  ])('%j carries packets both ways and goes away at stop', (device, expected) => {
    const { left, returned, end, gone, descriptors, ...rest } = run(NAMESPACE, device)
    expect(rest).toEqual(expected)
    expect({ left, returned, gone, descriptors }).toEqual({ left: true, returned: true, gone: true, descriptors: 0 })
    expect(end).toEqual({ outcome: 'STOPPED' })
  })

  it('that lasts gives whole checksums after a process was killed that took them unfinished', () => {
    const made =
      'ip link set lo up && ip tuntap add dev pst0 mode tun && ip address add 10.99.0.1/24 dev pst0 && ip link set pst0 mtu 1280 up'
    const killed = fileURLToPath(new URL('./killed-tun.mjs', import.meta.url))
    const taken = [...NAMESPACE.slice(0, 4), `${made} && { node ${killed}; exec "$@"; }`, 'sh']
    const { end, ...rest } = run(taken, { ip: '10.99.0.1' })
    expect(rest).toMatchObject({ left: true, returned: true, gone: false, descriptors: 0 })
    expect(end).toEqual({ outcome: 'STOPPED' })
  })

  it('that lasts and cannot be looked at for want of a descriptor is not said to be down', () => {
    const program = `import { closeSync, openSync } from 'node:fs'
import { native } from ${JSON.stringify(new URL('../../dist/src/dataplane/native/native.js', import.meta.url))}
let last
try { for (;;) last = openSync('/dev/null') } catch { closeSync(last) }
const options = { kind: 'tun', name: 'pst0', address: '10.99.0.1', prefix: 24, mtu: 1280, defaultRoute: false, offload: false }
const { found, error } = native.tunState(native.tunOpen(native.ownerOpen(), options))
console.log(JSON.stringify({ found, error }))`
    const limited = 'ip tuntap add dev pst0 mode tun && ulimit -n 100 && exec "$0" --input-type=module -e "$1"'
    const args = ['-n', 'sh', '-c', limited, process.execPath, program]
    const said = execFileSync('unshare', args, { timeout: 60_000, encoding: 'utf8' })
    expect(JSON.parse(said)).toEqual({ found: true, error: constants.errno.EMFILE })
  })

  it('with offload gives what may be fragmented on its way in packets that keep their identification and have their checksums', () => {
    const forwarded = fileURLToPath(new URL('./forwarded-packets.mjs', import.meta.url))
    const ids = [65534, 65535, 0, 1, 5, 5, 6, 100]
    const [program, ...args] = [...NAMESPACE, process.execPath, forwarded, JSON.stringify(ids)]
    const came = JSON.parse(execFileSync(program, args, { timeout: 60_000, encoding: 'utf8' }))
    expect(came).toEqual(ids.map((id, index) => [index, id, true]))
  })

  it('whose name is taken is refused with the cause', () => {
    const taken = [...NAMESPACE.slice(0, 4), 'ip tuntap add dev pst0 mode tap && exec "$@"', 'sh']
    const { end, descriptors } = run(taken, { ip: '10.99.0.1' })
    expect(end).toMatchObject({ outcome: 'FAILED', error: expect.stringMatching(/"device" \(tun\).*pst0/) })
    expect(descriptors).toBe(0)
  })

  it('whose address another interface has in a network too says which, of the same run or not', () => {
    const program = `import { startBuilt } from ${JSON.stringify(new URL('./built-run.mjs', import.meta.url))}
const addresses = { v4: '10.99.0.1', host: '10.99.0.1', v6: 'fd00:99:0::1', again: 'fd00:99::1', other: '10.99.1.1', here: 'fe80::1', there: 'fe80::1' }
const pipeline = {}
for (const [name, ip] of Object.entries(addresses)) {
  pipeline[name] = { tun: { interface_name: name, ip, ...(name === 'host' && { netmask: '32' }), input: name, output: name } }
}
const lines = []
const { end } = await startBuilt(pipeline, ({ level, component, message }) => lines.push([level, component, message]))
await end()
console.log(JSON.stringify(lines.filter(([level]) => level === 'WARN')))`
    const made =
      'ip link add cable type veth peer name end && ip link set end up && ip link set cable up && ip address add 10.99.0.1/24 dev cable'
    const [unshare, ...args] = [...NAMESPACE.slice(0, 4), `ip link set lo up && ${made} && exec "$@"`, 'sh']
    const command = [...args, process.execPath, '--input-type=module', '-e', program]
    const said = execFileSync(unshare as string, command, { timeout: 60_000, encoding: 'utf8' })
    expect(JSON.parse(said)).toEqual([
      ['WARN', 'v4', expect.stringMatching(/^interface cable has the address 10\.99\.0\.1 too: .* give v4 an address/)],
      ['WARN', 'again', expect.stringMatching(/^interface v6 has the address fd00:99::1 too: /)],
    ])
  })

  it.each([
    ['10.99.0.1', '-4'],
    ['fd00:99::1', '-6'],
  ])('of %s gets no default route beside one of its metric, and says what to do', (ip, version) => {
    const routed = `ip link set lo up && ip ${version} route add default dev lo && exec "$@"`
    const { end, descriptors } = run([...NAMESPACE.slice(0, 4), routed, 'sh'], { ip, is_default_route: true })
    expect(end).toMatchObject({
      outcome: 'FAILED',
      error: expect.stringContaining('there is one of the same metric: give that one a higher metric'),
    })
    expect(descriptors).toBe(0)
  })
})

describe.skipIf(!privileged)('a TUN device with an IPv6 address', () => {
  it('is refused with the cause where IPv6 is switched off', () => {
    const off = 'ip link set lo up && echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6 && exec "$@"'
    const { end, gone, descriptors } = run([...NAMESPACE.slice(0, 4), off, 'sh'], { ip: 'fd00:99::1' })
    const error = expect.stringMatching(/"pst0" cannot have an IPv6 address, for IPv6 is switched off.*\(EACCES\)$/)
    expect({ end, gone, descriptors }).toEqual({ end: { outcome: 'FAILED', error }, gone: true, descriptors: 0 })
  })
})

describe('a TUN device without CAP_NET_ADMIN', () => {
  const drop = process.getuid?.() === 0 ? ['setpriv', '--bounding-set=-net_admin', '--inh-caps=-net_admin'] : ['env']
  const possible = spawnSync(drop[0], [...drop.slice(1), 'true']).status === 0
  if (!possible) console.warn('SKIPPED: dropping CAP_NET_ADMIN needs setpriv')

  it.skipIf(!possible)('is refused by name, and nothing is left open', () => {
    const { error, end, gone, descriptors } = run(drop, { ip: '10.99.0.1' })
    const cause = expect.stringMatching(
      /^component "device" \(tun\): interface "pst0" .*(CAP_NET_ADMIN|may not open).*(EPERM|EACCES)/,
    )
    expect(error).toEqual(cause)
    expect(end).toEqual({ outcome: 'FAILED', error: cause })
    expect({ gone, descriptors }).toEqual({ gone: true, descriptors: 0 })
  })
})
