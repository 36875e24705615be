/** A certificate that is renewed while a hub runs: of HTTP, the link and gRPC, over real sockets; what is open stays as it is. */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { connect, type TLSSocket } from 'node:tls'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { systemClock } from '../../src/contract/clock.ts'
import { keyFingerprintOf, makeCertificate } from '../../src/link/certificate.ts'
import { LINK_PATH, SUBPROTOCOL } from '../../src/link/dial.ts'
import { joinLink } from '../../src/link/handshake-node.ts'
import { writeHubKey } from '../../src/link/hub-key.ts'
import { newIdentity } from '../../src/link/identity.ts'
import { record } from '../../src/link/testing.ts'
import { deaf, type LinkTransport } from '../../src/link/transport.ts'
import { type RunningNode, temporaryDirectory } from '../api/running-node.ts'
import { until } from '../harness/waiting.ts'
import { type Caller, grpcCaller, httpCaller, startReal } from './callers.ts'

const root = temporaryDirectory()
const at = (name: string) => join(root, name)
const noFilter = { metadataFilters: {}, serviceFilters: [] }
const opened: { close(): unknown }[] = []

interface Pair {
  readonly certificate: string
  readonly key: string
}

const pair = (key?: KeyObject): Pair => makeCertificate(['localhost'], Date.now(), key)
const printOf = ({ certificate }: Pair) => new X509Certificate(certificate).fingerprint256
let shown = pair()
let hub: RunningNode
/** On the hub, with the certificate's key pinned. */
let member: RunningNode

function write(next: Pair): void {
  writeFileSync(at('tls.crt'), next.certificate)
  writeFileSync(at('tls.key'), next.key)
}

/** As after `systemctl reload`. */
function renew(key?: KeyObject): Pair {
  shown = pair(key)
  write(shown)
  hub.node.reload()
  return shown
}

function callers(): Caller[] {
  const certificate = Buffer.from(shown.certificate)
  const made = [httpCaller(hub, 0, certificate), grpcCaller(hub, certificate)]
  opened.push(...made)
  return made
}

async function joins(node: RunningNode): Promise<void> {
  const { stream, answer } = await (callers()[1] as Caller).converse('authenticationByRequests')
  const joined = httpCaller(node).unary('authenticateByRequest', { hubServerAddress: `https://${hub.node.http}` })
  const { requestId } = await stream.next()
  answer({ requestId, accept: true })
  await joined
  stream.close()
}

beforeAll(async () => {
  write(shown)
  writeHubKey(at('hub.key'), newIdentity())
  hub = await startReal(at('hub'), {
    hub: 'true',
    'http-tls': `{certificate: ${at('tls.crt')}, key: ${at('tls.key')}}`,
  })
  member = await startReal(at('member'))
  await joins(member)
})
afterAll(async () => {
  for (const each of opened) each.close()
  await member.node.close()
  await hub.node.close()
})

async function secure(address: string | undefined, servername = '', protocol = 'http/1.1'): Promise<TLSSocket> {
  const [host, port] = (address as string).split(':')
  const socket = connect({ host, port: Number(port), servername, ALPNProtocols: [protocol], rejectUnauthorized: false })
  await once(socket, 'secureConnect')
  return socket
}

const printShown = (socket: TLSSocket) => socket.getPeerCertificate().fingerprint256

async function answered(socket: TLSSocket): Promise<string> {
  socket.write('GET /v1/hub-client/local-node-id HTTP/1.1\r\nHost: localhost\r\n\r\n')
  return String((await once(socket, 'data'))[0])
}

test('new connections of HTTP and gRPC have the new one, with a server name and without; those that are open go on', async () => {
  const before = shown
  const old = await secure(hub.node.http)
  const streams = await Promise.all(callers().map((caller) => caller.stream('streamNodes', noFilter)))
  for (const stream of streams) expect((await stream.next()).initialResponse.nodes).toHaveLength(2)
  const states = await httpCaller(member).stream('streamConnectionState')
  expect(await states.next()).toEqual({ state: 'CONNECTED' })

  for (let round = 0; round < 3; round++) {
    renew(createPrivateKey(before.key))
    for (const name of ['', 'localhost', 'another.example']) {
      for (const [address, protocol] of [
        [hub.node.http, 'http/1.1'],
        [hub.node.grpc, 'h2'],
      ] as const) {
        const socket = await secure(address, name, protocol)
        expect(printShown(socket), `${protocol} ${name}`).toBe(printOf(shown))
        if (protocol === 'http/1.1') expect(await answered(socket)).toMatch(/^HTTP\/1\.1 200 /)
        socket.destroy()
      }
    }
    for (const caller of callers()) {
      expect(await caller.unary('getLocalNodeId'), caller.transport).toMatchObject({ nodeId: hub.node.id })
    }
    const name = `round ${round}`
    await httpCaller(member).unary('setNode', { nodeId: member.node.id, name, metadata: { items: {} } })
    for (const stream of streams) {
      expect(await stream.next()).toMatchObject({ updateResponse: { updatedNode: { id: member.node.id, name } } })
    }
    expect(await answered(old)).toMatch(/^HTTP\/1\.1 200 /)
  }
  expect(printShown(old)).toBe(printOf(before))
  old.destroy()
  expect(states.waiting).toBe(0)
  states.close()
  for (const stream of streams) stream.close()
})

test('a link that comes anew pins the new certificate, as its key is the same', async () => {
  renew(createPrivateKey(shown.key))
  await member.node.close()
  member = await startReal(at('member'))
  const states = await httpCaller(member).stream('streamConnectionState')
  while ((await states.next()).state !== 'CONNECTED');
  states.close()
  await until(() =>
    member.logged.some((line) => line.includes('the hub has renewed its certificate, with the same key')),
  )
  const other = await startReal(at('other'))
  await joins(other)
  await other.node.close()
})

test('no connection is refused or reset while certificates change', async () => {
  const key = createPrivateKey(shown.key)
  for (let round = 0; round < 5; round++) {
    const [last, next] = [printOf(shown), pair(key)]
    write(next)
    const coming = Array.from({ length: 40 }, async (_, i) => {
      const [address, protocol] = i % 4 === 0 ? [hub.node.grpc, 'h2'] : [hub.node.http, 'http/1.1']
      const socket = await secure(address, '', protocol)
      expect([last, printOf(next)]).toContain(printShown(socket))
      if (protocol === 'http/1.1') expect(await answered(socket)).toMatch(/^HTTP\/1\.1 200 /)
      socket.destroy()
    })
    // Some of them have come by then, and some have not.
    await coming[0]
    hub.node.reload()
    shown = next
    await Promise.all(coming)
  }
})

test('a link that waits on a connection made before the change is of the certificate that it saw', async () => {
  const withKey = await startReal(at('keyed'), {
    hub: 'true',
    'hub-key-file': at('hub.key'),
    grpc: 'none',
    'http-tls': `{certificate: ${at('tls.crt')}, key: ${at('tls.key')}}`,
  })
  try {
    const before = shown
    const old = await Promise.all(Array.from({ length: 3 }, () => secure(withKey.node.http)))
    // Another key.
    const after = pair()
    write(after)
    withKey.node.reload()
    const refusal = async (socket: TLSSocket, seen: Pair, stated = seen) => {
      const print = Buffer.from(printOf(seen).replaceAll(':', ''), 'hex')
      const certificateKey = Buffer.from(keyFingerprintOf(Buffer.from(stated.certificate)), 'hex')
      const options = { identity: newIdentity(), record, clock: systemClock, report: () => {}, certificateKey }
      const transport = await upgraded(socket)
      const error = await joinLink(transport, print, { ...options, intent: 'CONNECT' }).catch((refused) => refused)
      return [error.reason, error.signed]
    }
    const fresh = await Promise.all(Array.from({ length: 3 }, () => secure(withKey.node.http)))
    const [one, two, three] = fresh.map((socket, i) => [old[i], socket] as [TLSSocket, TLSSocket])
    // The hub finds nothing against these but that such a node is unknown.
    expect(await refusal(one?.[0] as TLSSocket, before)).toEqual(['NOT_A_MEMBER', true])
    expect(await refusal(one?.[1] as TLSSocket, after)).toEqual(['NOT_A_MEMBER', true])
    // A relay that shows the one to the node and has the other itself is found out by the hub key's statement, and by the hub.
    expect(await refusal(two?.[0] as TLSSocket, after)).toEqual(['WRONG_CERTIFICATE', false])
    expect(await refusal(two?.[1] as TLSSocket, before)).toEqual(['WRONG_CERTIFICATE', false])
    expect(await refusal(three?.[0] as TLSSocket, after, before)).toEqual(['WRONG_CERTIFICATE', true])
    expect(await refusal(three?.[1] as TLSSocket, before, after)).toEqual(['WRONG_CERTIFICATE', true])
  } finally {
    write(shown)
    await withKey.node.close()
  }
})

/** The node's end of a link over a connection that stands already. */
async function upgraded(socket: TLSSocket): Promise<LinkTransport> {
  const inner = new WebSocket(`ws://localhost${LINK_PATH}`, SUBPROTOCOL, { createConnection: () => socket })
  const transport: LinkTransport = {
    remoteAddress: '',
    buffered: 0,
    handlers: deaf,
    send: (bytes) => {
      inner.send(bytes)
      return true
    },
    close: () => inner.terminate(),
  }
  inner.on('message', (bytes: Buffer) => transport.handlers.message(bytes))
  inner.on('close', (code, reason) => transport.handlers.close(code, String(reason)))
  await once(inner, 'open')
  return transport
}

test('a node that has pinned takes no certificate with another key, and stays signed in', async () => {
  renew()
  await member.node.close()
  member = await startReal(at('member'))
  await until(() => member.logged.some((line) => line.includes('another certificate')))
  expect(await httpCaller(member).unary('getLocalNodeId')).toMatchObject({ isAuthenticated: true })
})

test('files that cannot be used change nothing', async () => {
  write({ certificate: shown.certificate, key: pair().key })
  hub.node.reload()
  // Later others may have logged.
  const { level, msg } = JSON.parse(hub.logged.at(-1) as string)
  const socket = await secure(hub.node.http)
  expect(printShown(socket)).toBe(printOf(shown))
  socket.destroy()
  expect(level).toBe('warn')
  expect(msg).toMatch(
    /^http\.tls: the key in .*tls\.key does not belong to .*tls\.crt; the last certificate stays in use/,
  )
})
