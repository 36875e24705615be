/** A node that asks callers on its own machine for a token too: who gets in, with what, on every transport and by the command line. */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, mkdirSync, readFileSync, rmSync, statSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import * as grpc from '@grpc/grpc-js'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { WebSocket } from 'ws'
import { loadOperations } from '../../src/contract/operations.ts'
import { packageRoot } from '../../src/package-root.ts'
import { lineOf, penstock, type Result, scratch, start } from '../cli/cli.ts'
import { until } from '../harness/waiting.ts'

/** Nobody, who runs what a stranger on the machine would. */
const STRANGER = 65_534
const launcher = join(packageRoot(), 'bin/penstock.js')
const free = ['--http', '127.0.0.1:0', '--grpc', '127.0.0.1:0', '--log-format', 'json']

/** What is missing to run commands as another user. */
function strangersLack(): string | undefined {
  if (process.getuid?.() !== 0) return 'root'
  const tried = spawnSync(process.execPath, [launcher, 'version'], { uid: STRANGER, gid: STRANGER })
  return tried.status === 0 ? undefined : `a checkout that uid ${STRANGER} may read`
}

const missing = strangersLack()
if (missing !== undefined) console.warn(`SKIPPED: the tests with a second user lack ${missing}`)

interface Up {
  child: ChildProcess
  url: string
  grpc: string
  logged(): string
}

async function up(args: string[], child = start(['up', ...free, ...args])): Promise<Up> {
  let said = ''
  child.stderr?.on('data', (chunk) => {
    said += chunk
  })
  const [, http, rpc] = await lineOf(child, /^penstock ready http=(\S+) grpc=(\S+) /).catch(() => {
    throw new Error(`the node did not start: ${said}`)
  })
  return { child, url: `http://${http}`, grpc: rpc as string, logged: () => said }
}

/** What it logs comes by another way than what it prints, and may be behind that. */
const says = (node: Up, text: string) =>
  until(
    () => node.logged().includes(text),
    () => `${text} in ${node.logged()}`,
  )

async function down({ child }: Up): Promise<void> {
  const gone = once(child, 'close')
  child.kill('SIGTERM')
  await gone
}

/** Runs the command line as somebody else. */
async function strange(args: string[], env: Record<string, string>): Promise<Result> {
  const child = spawn(process.execPath, [launcher, ...args], {
    uid: STRANGER,
    gid: STRANGER,
    env: { PATH: process.env.PATH, HOME: '/nonexistent', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const ended = once(child, 'close')
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)])
  const [code, signal] = await ended
  return { code, signal, stdout, stderr }
}

const fill = (path: string): string => path.replaceAll(/\{\w+\}/g, 'x')

/** The status of an upgrade request: 101 when the socket opens. */
function upgrade(url: string, headers: Record<string, string>, protocol: string[] = []): Promise<number> {
  const socket = new WebSocket(url.replace(/^http/, 'ws'), protocol, { headers })
  return new Promise((resolve, reject) => {
    socket.on('open', () => {
      socket.close()
      resolve(101)
    })
    socket.on('unexpected-response', (_, response) => {
      response.destroy()
      resolve(response.statusCode ?? 0)
    })
    socket.on('error', reject)
  })
}

/** The status code of a gRPC call with an empty message. */
function codeOf(client: grpc.Client, path: string, token: string | undefined): Promise<number> {
  const metadata = new grpc.Metadata()
  if (token !== undefined) metadata.set('authorization', `Bearer ${token}`)
  const call = client.makeBidiStreamRequest(path, Buffer.from, Buffer.from, metadata)
  return new Promise((resolve) => {
    call.on('data', () => {})
    call.on('error', () => {})
    call.on('status', ({ code }) => resolve(code))
    call.write(Buffer.alloc(0))
    call.end()
  })
}

// Each of these starts a dozen processes.
describe('access.loopback: token', { timeout: 120_000 }, () => {
  const directory = scratch()
  const data = join(directory.path, 'data')
  const file = join(data, 'local.token')
  let node: Up
  let token: string

  beforeAll(async () => {
    node = await up(['--hub', '--data-dir', data, '--loopback', 'token'])
    token = readFileSync(file, 'utf8').trim()
  })

  afterAll(async () => {
    await down(node)
    directory.dispose()
  })

  it('makes a token for the owner of the data directory, and says where', async () => {
    expect(statSync(file).mode & 0o7777).toBe(0o600)
    expect(token).toMatch(/^penstock_\S{43}$/)
    await says(node, 'made a token for callers on this machine: there was none')
    await says(node, `"file":${JSON.stringify(file)}`)
    expect(node.logged()).not.toContain(token)
    expect(node.logged()).not.toContain('every user of this machine')
    const store = readFileSync(join(data, 'penstock.lmdb'))
    expect(store.includes(Buffer.from(token))).toBe(false)
  })

  it('lets nobody in without it over REST, event streams and WebSockets', async () => {
    const wrong: unknown[] = []
    for (const operation of loadOperations()) {
      for (const { verb, path, transport } of operation.http) {
        for (const headers of [{}, { authorization: 'Bearer penstock_guess' }]) {
          const url = node.url + fill(path)
          const status =
            transport === 'websocket'
              ? await upgrade(url, headers)
              : (await fetch(url, { method: verb, headers, signal: AbortSignal.timeout(10_000) })).status
          if (status !== 401) wrong.push([operation.name, transport, status])
        }
      }
    }
    expect(wrong).toEqual([])
  })

  it('lets its holder in, and the link’s peers as ever', async () => {
    const headers = { authorization: `Bearer ${token}` }
    expect((await fetch(`${node.url}/v1/hub-client/local-node-id`, { headers })).status).toBe(200)
    const stop = new AbortController()
    const events = `${node.url}/v1/streams/hub-client/connection-state`
    expect((await fetch(events, { headers, signal: stop.signal })).status).toBe(200)
    stop.abort()
    expect(await upgrade(`${node.url}/v1/streams/hub-server/authentication-requests`, headers)).toBe(101)
    expect(await upgrade(`${node.url}/v1/link`, {}, ['penstock-link.v1'])).toBe(101)
  })

  it('does the same over gRPC, health and reflection included', async () => {
    const client = new grpc.Client(node.grpc, grpc.credentials.createInsecure())
    const health = '/grpc.health.v1.Health/Check'
    const paths = [
      ...loadOperations().map(({ grpcPath }) => grpcPath),
      health,
      '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo',
    ]
    const wrong: unknown[] = []
    for (const path of paths) {
      for (const shown of [undefined, 'penstock_guess']) {
        const code = await codeOf(client, path, shown)
        if (code !== grpc.status.UNAUTHENTICATED) wrong.push([path, code])
      }
    }
    expect(wrong).toEqual([])
    expect(await codeOf(client, health, token)).toBe(grpc.status.OK)
    expect(await codeOf(client, '/servicegrpc.hub.HubClientService/getLocalNodeId', token)).toBe(grpc.status.OK)
    client.close()
  })

  it('is used by curl and by the command line, which finds the file by the data directory', async () => {
    const answer = execFileSync(
      'bash',
      ['-c', 'curl -sf -H "authorization: Bearer $(cat "$0")" "$1/v1/nodes"', file, node.url],
      { encoding: 'utf8' },
    )
    expect(JSON.parse(answer).nodes).toHaveLength(1)
    for (const [flags, env] of [
      [['--data-dir', data], {}],
      [['--token-file', file], {}],
      [[], { PENSTOCK_DATA_DIRECTORY: data }],
      [[], { PENSTOCK_TOKEN_FILE: file }],
      [[], { PENSTOCK_TOKEN: token }],
    ] as [string[], Record<string, string>][]) {
      const said = await penstock(['nodes', ...flags], { env: { PENSTOCK_URL: node.url, ...env } })
      expect([flags, env, said]).toMatchObject([flags, env, { code: 0, stderr: '' }])
    }
    // By WebSocket too.
    const approve = await penstock(['authentication-requests', 'approve', '7', '--data-dir', data], {
      env: { PENSTOCK_URL: node.url },
    })
    expect(approve.stderr).toContain('7')
    expect(approve.stderr).not.toContain('token')
  })

  it('says what to do to whoever has none, or another', async () => {
    const none = await penstock(['nodes'], { env: { PENSTOCK_URL: node.url, PENSTOCK_DATA_DIRECTORY: directory.path } })
    expect(none).toMatchObject({ code: 1, stdout: '' })
    expect(none.stderr).toContain(`there is no ${join(directory.path, 'local.token')}`)
    expect(none.stderr).toMatch(/--data-dir[\s\S]*penstock token create[\s\S]*PENSTOCK_TOKEN[\s\S]*--token-file/)
    const other = await penstock(['nodes'], { env: { PENSTOCK_URL: node.url, PENSTOCK_TOKEN: 'penstock_other' } })
    expect(other.code).toBe(1)
    expect(other.stderr).toContain('the token sent was that of PENSTOCK_TOKEN')
    const far = await penstock(['nodes', '--data-dir', data, '--url', 'http://192.0.2.1:8769'])
    expect(far).toMatchObject({ code: 2, stderr: expect.stringContaining('on this machine') })
  })

  it('does not send the token to a node that asks for none', async () => {
    const open = await up(['--data-dir', join(directory.path, 'open')])
    // That node would refuse it, since it is none of its own.
    const env = { PENSTOCK_URL: open.url, PENSTOCK_DATA_DIRECTORY: data }
    expect(await penstock(['status'], { env })).toMatchObject({ code: 0, stderr: '' })
    await down(open)
  })

  it('takes no file that others may use or that is a link, neither the command line nor a node', async () => {
    const mine = join(directory.path, 'mine')
    const held = join(mine, 'local.token')
    const first = await up(['--data-dir', mine, '--loopback', 'token'])
    const before = readFileSync(held, 'utf8')
    const env = { PENSTOCK_URL: first.url, PENSTOCK_DATA_DIRECTORY: mine }
    chmodSync(held, 0o640)
    for (const command of [
      await penstock(['status', '--data-dir', mine], { env }),
      await penstock(['status', '--token-file', held], { env }),
      await penstock(['status'], { env }),
    ]) {
      expect(command).toMatchObject({ code: 1, stderr: expect.stringContaining(`may use ${held} (mode 0640)`) })
    }
    await down(first)
    const refused = await penstock(['up', ...free, '--data-dir', mine, '--loopback', 'token'])
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining(`may use ${held} (mode 0640)`) })
    rmSync(held)
    symlinkSync(file, held)
    const linked = await penstock(['up', ...free, '--data-dir', mine, '--loopback', 'token'])
    expect(linked).toMatchObject({ code: 1, stderr: expect.stringContaining(`${held} is a symbolic link`) })
    expect(await penstock(['status', '--token-file', held])).toMatchObject({ code: 1 })
    rmSync(held)
    const again = await up(['--data-dir', mine, '--loopback', 'token'])
    await says(again, 'made a token for callers on this machine: there was none')
    const now = readFileSync(held, 'utf8')
    expect(now).not.toBe(before)
    const asks = (shown: string) =>
      fetch(`${again.url}/v1/hub-client/local-node-id`, { headers: { authorization: `Bearer ${shown.trim()}` } })
    expect((await asks(now)).status).toBe(200)
    expect((await asks(before)).status).toBe(401)
    // Revoked like any other; the node makes another at its next start.
    expect(
      await penstock(['token', 'revoke', 'file:local.token'], { env: { ...env, PENSTOCK_URL: again.url } }),
    ).toMatchObject({ code: 0 })
    expect((await asks(now)).status).toBe(401)
    await down(again)
    const last = await up(['--data-dir', mine, '--loopback', 'token'])
    await says(last, 'the one there was not valid')
    expect(readFileSync(held, 'utf8')).not.toBe(now)
    await down(last)
    // Kept otherwise.
    const kept = readFileSync(held, 'utf8')
    const same = await up(['--data-dir', mine, '--loopback', 'token'])
    expect(same.logged()).not.toContain('made a token')
    expect(readFileSync(held, 'utf8')).toBe(kept)
    await down(same)
  })
})

describe.skipIf(missing !== undefined)('a second user of the machine', { timeout: 120_000 }, () => {
  const directory = scratch()
  const data = join(directory.path, 'data')
  beforeAll(() => {
    // The way to what is open to everybody must be, too.
    for (const path of [dirname(directory.path), directory.path]) {
      if ((statSync(path).mode & 0o001) === 0) chmodSync(path, 0o711)
    }
  })
  afterAll(() => directory.dispose())

  it('is refused by a node of root that asks for a token, and told why', async () => {
    const node = await up(['--data-dir', data, '--loopback', 'token'])
    const env = { PENSTOCK_URL: node.url }
    const refused = await strange(['token', 'create', 'mine'], env)
    expect(refused).toMatchObject({ code: 1, stdout: '' })
    expect(refused.stderr).toMatch(/callers on the machine of this node need[\s\S]*run this as the user of the node/)
    const named = await strange(['status', '--data-dir', data], env)
    expect(named).toMatchObject({ code: 1, stderr: expect.stringContaining('this user may not read') })
    const status = execFileSync('curl', ['-s', '-o', '/dev/null', '-w', '%{http_code}', `${node.url}/v1/nodes`], {
      uid: STRANGER,
      encoding: 'utf8',
    })
    expect(status).toBe('401')
    // With a token that root made, given on purpose.
    const { stdout } = await penstock(['token', 'create', 'guest', '--data-dir', data], { env })
    expect(await strange(['status'], { ...env, PENSTOCK_TOKEN: stdout.trim() })).toMatchObject({ code: 0 })
    await down(node)
  })

  it('gets in where root has not asked for one, which the node warns of unless that was chosen', async () => {
    const warning =
      /run by root, this node obeys every user of this machine: set access\.loopback to token \(--loopback token\)/
    const open = await up(['--data-dir', data])
    await until(() => warning.test(open.logged()))
    expect(await strange(['status'], { PENSTOCK_URL: open.url })).toMatchObject({ code: 0 })
    await down(open)
    const chosen = await up(['--data-dir', data, '--loopback', 'open'])
    expect(chosen.logged()).not.toMatch(warning)
    await down(chosen)
  })

  it('has a node of its own, with the data directory where both look by default', async () => {
    const state = join(directory.path, 'state')
    mkdirSync(state)
    chownSync(state, STRANGER, STRANGER)
    const env = { PATH: process.env.PATH, XDG_STATE_HOME: state }
    const child = spawn(process.execPath, [launcher, 'up', ...free, '--loopback', 'token'], {
      uid: STRANGER,
      gid: STRANGER,
      env,
      stdio: 'pipe',
    })
    const node = await up([], child)
    expect(statSync(join(state, 'penstock/local.token'))).toMatchObject({ uid: STRANGER })
    expect(node.logged()).not.toContain('run by root')
    expect(await strange(['status'], { XDG_STATE_HOME: state, PENSTOCK_URL: node.url })).toMatchObject({
      code: 0,
      stderr: '',
    })
    await down(node)
  })

  it('is not handed the token by listening where the node would', async () => {
    const node = await up(['--data-dir', data, '--loopback', 'token'])
    await down(node)
    const program = `
      require('node:http').createServer((request, response) => {
        console.log('asked ' + (request.headers.authorization ?? 'without'))
        response.statusCode = 401
        response.end('{"code":16,"message":"your token, please","details":[]}')
      }).listen(0, '127.0.0.1', function () { console.log('port ' + this.address().port) })`
    const thief = spawn(process.execPath, ['-e', program], {
      uid: STRANGER,
      gid: STRANGER,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let heard = ''
    thief.stdout.on('data', (chunk) => {
      heard += chunk
    })
    const [, port] = await lineOf(thief, /^port (\d+)$/)
    const said = await penstock(['status', '--data-dir', data], { env: { PENSTOCK_URL: `http://127.0.0.1:${port}` } })
    expect(said).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`was not sent: what listens at http://127.0.0.1:${port}`),
    })
    thief.kill('SIGKILL')
    await once(thief, 'close')
    expect(heard).toContain('asked without')
    expect(heard).not.toContain('Bearer')
  })
})
