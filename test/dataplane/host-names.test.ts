/** Host names of several runs whose name servers answer at different times, or never. */
import { execFileSync, spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

/** Packets to 192.0.2.1 leave, and nobody takes them. */
const NOBODY = [
  'ip link add near type veth peer name far',
  'ip addr add 192.0.2.2/24 dev near',
  'ip link set near up',
  'ip link set far up',
  'ip neigh add 192.0.2.1 lladdr 02:00:00:00:00:01 dev near',
].join(' && ')
const NAMESPACES = ['-n', '-m', '--propagation', 'private', 'sh', '-c']
const possible = spawnSync('unshare', [...NAMESPACES, NOBODY]).status === 0
if (!possible) console.warn('SKIPPED: the test of name servers that say nothing needs root, unshare and ip')

it.skipIf(!possible)('a name gets its address while others wait for ever, which keep no process', () => {
  const script = fileURLToPath(new URL('host-names.mjs', import.meta.url))
  const command = [...NAMESPACES, `${NOBODY} && exec "$@"`, 'sh', process.execPath, script]
  expect(JSON.parse(execFileSync('unshare', command, { timeout: 50_000, encoding: 'utf8' }))).toEqual({
    known: '192.0.2.7:1',
    otherwise: '[fd00:99::7]:1',
    silent: ['one.example', 'two.example', 'three.example'],
  })
})
