/** A hub behind nginx, which serves it below a path of its own and strips that from the requests it passes on. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { type RunningNode, temporaryDirectory } from '../api/running-node.ts'
import { until } from '../harness/waiting.ts'
import { freeAddress, httpCaller, startReal } from './callers.ts'

const isThere = spawnSync('nginx', ['-v']).status === 0
if (!isThere) console.warn('SKIPPED: the tests of a hub behind a proxy lack nginx')

const root = temporaryDirectory()
afterAll(() => rmSync(root, { recursive: true, force: true }))

/** nginx at `listen`, which passes what is below /penstock/ on to `upstream`. */
async function nginx(name: string, listen: string, upstream: string): Promise<ChildProcess> {
  const directory = join(root, name)
  mkdirSync(directory)
  const config = join(directory, 'nginx.conf')
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((kind) => `${kind}_temp_path ${directory}/${kind};`)
    .join('\n')
  writeFileSync(
    config,
    `daemon off; master_process off; pid ${directory}/pid; error_log stderr; worker_processes 1;
     events {}
     http {
       access_log off;
       ${temporary}
       server {
         listen ${listen};
         location /penstock/ {
           proxy_pass ${upstream}/;
           proxy_http_version 1.1;
           proxy_set_header X-Forwarded-For $remote_addr;
           proxy_set_header Upgrade $http_upgrade;
           proxy_set_header Connection upgrade;
         }
       }
     }`,
  )
  const child = spawn('nginx', ['-c', config, '-p', directory], { stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  child.stderr?.on('data', (text) => {
    said += text
  })
  const [address] = listen.split(' ')
  await until(async () => {
    if (child.exitCode !== null) throw new Error(`nginx ended: ${said}`)
    return spawnSync('bash', ['-c', `exec 3<>/dev/tcp/${address?.replace(':', '/')}`]).status === 0
  })
  return child
}

describe.skipIf(!isThere)('a hub whose address has a base path', () => {
  const ask = (node: RunningNode, hubServerAddress: string) =>
    httpCaller(node).unary('authenticateByRequest', { hubServerAddress })
  const stateOf = async (node: RunningNode) => {
    const stream = await httpCaller(node).stream('streamConnectionState', {})
    const { state } = await stream.next()
    stream.close()
    return state
  }

  test.each([
    ['http', '', []],
    ['https, the proxy with the certificate of the hub', 's', ['auto']],
  ] as const)('over %s: is joined, and found again after a restart', async (_, s, tls) => {
    const hubDirectory = join(root, `hub${s}`)
    const hub = await startReal(hubDirectory, { hub: 'true', ...(tls[0] === undefined ? {} : { 'http-tls': tls[0] }) })
    const address = await freeAddress()
    const certificate = `ssl; ssl_certificate ${hubDirectory}/tls.crt; ssl_certificate_key ${hubDirectory}/tls.key`
    const listen = s === '' ? address : `${address} ${certificate}`
    const proxy = await nginx(`proxy${s}`, listen, `http${s}://${hub.node.http}`)
    const directory = join(root, `node${s}`)
    const operator = new WebSocket(`ws${s}://${hub.node.http}/v1/streams/hub-server/authentication-requests`, {
      rejectUnauthorized: false,
    })
    operator.on('message', (data) => {
      operator.send(JSON.stringify({ requestId: JSON.parse(String(data)).result.requestId, accept: true }))
    })
    await once(operator, 'open')
    const nodes = [await startReal(directory)]
    try {
      const first = nodes[0] as RunningNode
      await ask(first, `http${s}://${address}/penstock`)
      expect(await stateOf(first)).toBe('CONNECTED')
      await first.node.close()
      const again = await startReal(directory)
      nodes.push(again)
      await until(async () => (await stateOf(again)) === 'CONNECTED')
      // Calls go through the proxy.
      const named = await httpCaller(again).unary('getNode', { nodeId: hub.node.id })
      expect(named.node).toMatchObject({ id: hub.node.id, online: true })
      await httpCaller(again).unary('disconnect', {})
      await ask(again, `http${s}://${address}/penstock/`)
      expect(await stateOf(again)).toBe('CONNECTED')
      await httpCaller(again).unary('disconnect', {})
      await expect(ask(again, `http${s}://${address}/elsewhere`)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    } finally {
      operator.terminate()
      for (const { node } of nodes) await node.close()
      const gone = once(proxy, 'exit')
      proxy.kill('SIGTERM')
      await gone
      await hub.node.close()
    }
  })
})
