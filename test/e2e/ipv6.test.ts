/** Whoever has an IPv6 address has the whole /64: its connections count together. */
import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { LINK_PATH, SUBPROTOCOL } from '../../src/link/dial.ts'
import { packageRoot } from '../../src/package-root.ts'
import { lineOf, scratch } from '../cli/cli.ts'
import { Cable, namespacesLack } from './namespaces.ts'

const missing = namespacesLack()
if (missing.length > 0) console.warn(`SKIPPED: the IPv6 tests lack ${missing.join(', ')}`)

const HUB = 'fd00:7::ffff'
const SAME = Array.from({ length: 66 }, (_, i) => `fd00:7::${(i + 1).toString(16)}`)
const OTHER = 'fd00:8::1'

describe.skipIf(missing.length > 0)('connections that have proven nothing, from one /64', () => {
  const directory = scratch()
  let cable: Cable

  beforeAll(() => {
    cable = new Cable()
    const add = (namespace: string, address: string) =>
      execFileSync('ip', ['-n', namespace, 'address', 'add', `${address}/16`, 'dev', 'cable', 'nodad'])
    add(cable.near, HUB)
    for (const address of [...SAME, OTHER]) add(cable.far, address)
  })

  afterAll(async () => {
    await cable?.dispose()
    directory.dispose()
  })

  it('are let in up to the limit of one address; another /64 is not concerned', async () => {
    const flags = ['--hub', '--data-dir', directory.path, '--http', '[::]:8769', '--grpc', 'none', '--http-tls', 'none']
    const node = cable.spawn(cable.near, `${packageRoot()}/bin/penstock.js`, ['up', ...flags])
    await lineOf(node, /^penstock ready /)
    const head =
      `GET ${LINK_PATH} HTTP/1.1\r\nhost: [${HUB}]:8769\r\nupgrade: websocket\r\nconnection: upgrade\r\n` +
      `sec-websocket-key: ${Buffer.alloc(16).toString('base64')}\r\nsec-websocket-version: 13\r\n` +
      `sec-websocket-protocol: ${SUBPROTOCOL}\r\n\r\n`
    const program = fileURLToPath(new URL('peer-addresses.mjs', import.meta.url))
    const peers = cable.spawn(cable.far, program, [HUB, '8769', btoa(head), ...SAME, OTHER])
    peers.stderr?.pipe(process.stderr)
    const [, statuses] = await lineOf(peers, /^(\[.*\])$/)
    expect(JSON.parse(statuses as string)).toEqual([...Array(64).fill(101), 429, 429, 101])
  })
})
