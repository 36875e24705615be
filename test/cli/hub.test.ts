/** The commands around a hub, as an operator types them: joining, approving, listing, changing, leaving, tokens. */
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { renameSync } from 'node:fs'
import { type AddressInfo, connect, createServer } from 'node:net'
import { createInterface } from 'node:readline'
import { createServer as createTlsServer } from 'node:tls'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { until } from '../harness/waiting.ts'
import { lineOf, lossy, penstock, type Result, scratch, start } from './cli.ts'
import { KEYS, PseudoTerminal } from './pseudo-terminal.ts'
import '../harness/slow.ts'

const directory = scratch()

interface RunningNode {
  process: ChildProcess
  id: string
  url: string
}

async function up(name: string, ...flags: string[]): Promise<RunningNode> {
  const data = ['--data-dir', `${directory.path}/${name}`, '--node-name', name]
  const process = start(['up', ...data, '--http', '127.0.0.1:0', '--grpc', 'none', '--log-level', 'error', ...flags])
  const match = await lineOf(process, /^penstock ready http=(\S+) grpc=none node=(\S+)$/)
  return { process, url: `http://${match[1]}`, id: match[2] as string }
}

let hub: RunningNode
let east: RunningNode
let west: RunningNode
/** A hub that nobody attends. */
let idle: RunningNode

beforeAll(async () => {
  const named = ['--node-metadata', '{region: eu, rack: 4}']
  ;[hub, east, west, idle] = await Promise.all([
    up('hub', '--hub'),
    up('east', ...named),
    up('west'),
    up('idle', '--hub', '--authentication-request-timeout', '1s'),
  ])
})

afterAll(() => {
  for (const node of [hub, east, west, idle]) node?.process.kill('SIGKILL')
  directory.dispose()
})

const at = (node: RunningNode, ...args: string[]): Promise<Result> => penstock([...args, '--url', node.url])

async function json<T>(node: RunningNode, ...args: string[]): Promise<T> {
  const { code, stdout, stderr } = await at(node, ...args, '-o', 'json')
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return JSON.parse(stdout) as T
}

interface Request {
  requestId: string
  node: { id: string; name: string }
}

/** Waits until these nodes, no others, ask to join; gives the requests. */
async function pending(...nodes: RunningNode[]): Promise<Request[]> {
  const wanted = nodes.map(({ id }) => id).sort()
  let requests: Request[] = []
  await until(async () => {
    const response = await fetch(`${hub.url}/v1/hub-server/authentication-requests`)
    requests = ((await response.json()) as { requests: Request[] }).requests
    return JSON.stringify(requests.map(({ node }) => node.id).sort()) === JSON.stringify(wanted)
  }, 'these nodes, no others, ask to join')
  return requests
}

interface Deferred {
  promise: Promise<void>
  resolve: () => void
}

function deferred(): Deferred {
  let resolve = () => {}
  const promise = new Promise<void>((settle) => (resolve = settle))
  return { promise, resolve }
}

/** Gives the next line of standard output that matches. */
function reader(child: ChildProcess): (pattern: RegExp) => Promise<RegExpExecArray> {
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]()
  return async (pattern) => {
    for (;;) {
      const { value, done } = await lines.next()
      if (done) throw new Error(`ended without a line like ${pattern}`)
      const match = pattern.exec(value)
      if (match !== null) return match
    }
  }
}

const ask = (node: RunningNode, ...args: string[]) => at(node, 'authenticate-by-request', hub.url, ...args)

describe('asking to join', () => {
  it('says what is wrong with an address, and what answers there', async () => {
    expect(await at(east, 'authenticate-by-request', 'ftp://x')).toMatchObject({ code: 2 })
    const noPort = await at(east, 'authenticate-by-request', 'http://127.0.0.1:99999')
    expect(noPort.code).toBe(2)
    expect(noPort.stderr).toContain('"http://127.0.0.1:99999" has the port 99999: ports end at 65535')
    const gone = await at(east, 'authenticate-by-request', 'http://127.0.0.1:9')
    expect(gone).toMatchObject({ code: 1, stdout: '' })
    expect(gone.stderr).toContain('its HTTP port can be reached')
    const noHub = await at(east, 'authenticate-by-request', west.url)
    expect(noHub.code).toBe(1)
    expect(noHub.stderr).toContain('penstock up --hub')
    const noTls = await at(east, 'authenticate-by-request', hub.url.replace('http:', 'https:'))
    expect(noTls.code).toBe(1)
    expect(noTls.stderr).toContain('speaks no TLS; if it is a hub on plain HTTP, write http://')
    // It has no certificate, so that no client agrees with it.
    const other = createTlsServer({ ciphers: 'aNULL:@SECLEVEL=0', maxVersion: 'TLSv1.2' }).listen(0, '127.0.0.1')
    await once(other, 'listening')
    const otherTls = `https://127.0.0.1:${(other.address() as AddressInfo).port}`
    const inTls = await at(east, 'authenticate-by-request', otherTls)
    expect(inTls.stderr).toMatch(/: TLS failed: [a-z0-9/ ]*handshake failure\n/)
    expect((await penstock(['status', '--url', otherTls])).stderr).toMatch(
      /\(TLS failed: [a-z0-9/ ]*handshake failure\): start/,
    )
    other.close()
    const isHub = await at(hub, 'authenticate-by-request', idle.url)
    expect(isHub.stderr).toContain('hosts a hub server')
    // It cannot.
    expect(isHub.stderr).not.toContain('penstock disconnect')
  })

  it('shows the list on a terminal that was never told its size', async () => {
    const terminal = new PseudoTerminal(['authentication-requests', '--url', hub.url], { TERMINAL_SIZE: '0x0' })
    await terminal.see(/no node asks to join.* the hub of/)
    terminal.type('q')
    expect(await terminal.code()).toBe(0)
  })

  it('tells of a rejection, and of nobody answering', async () => {
    const asked = ask(east)
    const [request] = await pending(east)
    expect(await at(hub, 'authentication-requests', 'reject', request!.requestId)).toMatchObject({
      code: 0,
      stdout: `rejected ${request!.requestId}\n`,
    })
    const rejected = await asked
    expect(rejected).toMatchObject({ code: 1, stdout: '' })
    expect(rejected.stderr).toMatch(/reject/)
    const late = await at(east, 'authenticate-by-request', idle.url)
    expect(late.code).toBe(1)
    expect(late.stderr).toContain('penstock authentication-requests')
  })

  it('withdraws at Ctrl-C', async () => {
    const asked = penstock(['authenticate-by-request', hub.url, '--url', east.url], {
      onStart: (child) => void pending(east).then(() => child.kill('SIGINT')),
    })
    expect(await asked).toMatchObject({ code: 130, stdout: '' })
    await pending()
  })

  it('withdraws at Ctrl-C on a terminal, where a spinner turns', async () => {
    const terminal = new PseudoTerminal(['authenticate-by-request', hub.url, '--url', east.url], {})
    await terminal.see(new RegExp(`approve node ${east.id}`))
    await terminal.see(/waiting for .* to answer; Ctrl-C withdraws the request 0 s/)
    await terminal.see(/ 1 s/)
    await pending(east)
    terminal.type(KEYS.interrupt)
    await terminal.see(/withdrawn/)
    expect(await terminal.code()).toBe(130)
    await pending()
  })
})

describe('answering', () => {
  it('refuses what is no request', async () => {
    const unknown = await at(hub, 'authentication-requests', 'approve', '999')
    expect(unknown).toMatchObject({ code: 1, stdout: '' })
    expect(unknown.stderr).toContain('999')
    expect((await at(hub, 'authentication-requests', 'approve')).code).toBe(2)
    expect((await at(hub, 'authentication-requests', 'approve', '1', '--all')).code).toBe(2)
    for (const none of ['x', '0', String(2n ** 64n)]) {
      expect((await at(hub, 'authentication-requests', 'approve', none)).code).toBe(2)
    }
    const highest = await at(hub, 'authentication-requests', 'approve', String(2n ** 64n - 1n))
    expect(highest).toMatchObject({ code: 1, stdout: '' })
    expect(highest.stderr).toContain('is pending')
    expect((await at(hub, 'authentication-requests', 'approve', '--all')).stdout).toBe('no node asks to join\n')
    const off = await at(west, 'authentication-requests', 'approve', '1')
    expect(off.code).toBe(1)
    expect(off.stderr).toMatch(/hub/)
  })

  it('lists on a pipe, and answers what can be answered when something cannot', async () => {
    const asked = ask(east)
    const [request] = await pending(east)
    const id = request!.requestId
    expect((await at(hub, 'authentication-requests')).stdout).toMatch(
      new RegExp(`^REQUEST +NAME +NODE +METADATA\n${id} +east +${east.id} +rack:=4 region=eu\n$`),
    )
    expect(await json<Request[]>(hub, 'authentication-requests')).toMatchObject([
      { requestId: id, node: { id: east.id } },
    ])
    const mixed = await at(hub, 'authentication-requests', 'approve', '998', id, '-o', 'json')
    expect(mixed.code).toBe(1)
    expect(JSON.parse(mixed.stdout)).toEqual([
      { requestId: '998', error: expect.stringContaining('998') },
      { requestId: id, accepted: true },
    ])
    const joined = await asked
    expect(joined.code).toBe(0)
    expect(joined.stdout).toContain(`joined the hub hub (${hub.id})`)
    expect((await ask(east)).stderr).toContain('penstock disconnect')
    expect(await at(east, 'disconnect')).toMatchObject({ code: 0, stdout: 'left the hub\n' })
    expect(await at(east, 'disconnect')).toMatchObject({ code: 0, stdout: 'the node was on no hub\n' })
  })

  it('of a node that is awaited: as soon as it asks, and nobody else', async () => {
    const approve = (...args: string[]) => at(hub, 'authentication-requests', 'approve', ...args)
    const awaited = approve(east.id, '--wait', '5min')
    const other = ask(west)
    const [request] = await pending(west)
    const asked = ask(east)
    expect(await awaited).toMatchObject({ code: 0, stdout: expect.stringMatching(/^approved \d+\n$/), stderr: '' })
    expect((await asked).code).toBe(0)
    expect((await approve(east.id, '--wait', '1s')).stderr).toContain(`node ${east.id} is on the hub already`)
    const late = await approve(idle.id, '--wait', '10ms', '-o', 'json')
    expect(late).toMatchObject({ code: 1, stdout: '[]\n' })
    expect(late.stderr).toContain(`not within 10ms: ${idle.id} did not ask to join`)
    for (const wrong of [['--all'], [], [west.id.slice(0, 8)], [request!.requestId]]) {
      expect((await approve(...wrong, '--wait', '1s')).code).toBe(2)
    }
    expect((await pending(west))[0]).toMatchObject({ requestId: request!.requestId })
    await at(hub, 'authentication-requests', 'reject', request!.requestId)
    expect((await other).code).toBe(1)
    expect(await at(east, 'disconnect')).toMatchObject({ code: 0 })
  })

  it('of a node that is awaited, and whose request is answered by somebody else meanwhile: it may ask again, and may be in', async () => {
    // Between the operator who waits and the hub: it holds up a look at who asks, on its way there and back.
    const looks = (['reject', 'approve'] as const).map((answer) => {
      const [asked, forward, came, deliver] = Array.from({ length: 4 }, deferred) as [
        Deferred,
        Deferred,
        Deferred,
        Deferred,
      ]
      return { answer, asked, forward, came, deliver }
    })
    const held = [...looks]
    const proxy = createServer((client) => {
      const server = connect(Number(new URL(hub.url).port), '127.0.0.1')
      let look: (typeof looks)[number] | undefined
      client.on('data', (chunk) => {
        look = chunk.includes('GET /v1/hub-server/authentication-requests ') ? held.shift() : undefined
        look?.asked.resolve()
        if (look === undefined) server.write(chunk)
        else void look.forward.promise.then(() => server.write(chunk))
      })
      server.on('data', (chunk) => {
        look?.came.resolve()
        if (look === undefined) client.write(chunk)
        else void look.deliver.promise.then(() => client.write(chunk))
      })
      client.on('error', () => {}).on('close', () => server.destroy())
      server
        .on('error', () => {})
        .on('close', () => void Promise.resolve(look?.deliver.promise).then(() => client.end()))
    })
    await once(proxy.listen(0, '127.0.0.1'), 'listening')
    const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`
    const waiting = penstock(['authentication-requests', 'approve', east.id, '--wait', '5min', '--url', url])
    try {
      for (const { answer, asked, forward, came, deliver } of looks) {
        await asked.promise
        const asking = ask(east)
        const [request] = await pending(east)
        forward.resolve()
        await came.promise
        expect(await at(hub, 'authentication-requests', answer, request!.requestId)).toMatchObject({ code: 0 })
        expect((await asking).code).toBe(answer === 'approve' ? 0 : 1)
        deliver.resolve()
      }
      const stdout = `node ${east.id} is on the hub: another has approved it\n`
      expect(await waiting).toMatchObject({ code: 0, stdout, stderr: '' })
    } finally {
      proxy.close()
    }
    expect(await at(east, 'disconnect')).toMatchObject({ code: 0 })
  })

  it('of a node that is awaited, where the hub is away for a while', async () => {
    const [looked, refused] = [deferred(), deferred()]
    let restarted = await up('restarted', '--hub')
    const proxy = createServer((client) => {
      const server = connect(Number(new URL(restarted.url).port), '127.0.0.1')
      client.on('data', (chunk) => {
        if (chunk.includes('GET /v1/hub-server/authentication-requests ')) looked.resolve()
        server.write(chunk)
      })
      server.on('data', (chunk) => client.write(chunk)).on('close', () => client.destroy())
      server.on('error', refused.resolve)
      client.on('error', () => {}).on('close', () => server.destroy())
    })
    await once(proxy.listen(0, '127.0.0.1'), 'listening')
    const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`
    const awaited = penstock(['authentication-requests', 'approve', east.id, '--wait', '5min', '--url', url])
    try {
      await looked.promise
      const gone = once(restarted.process, 'exit')
      restarted.process.kill('SIGTERM')
      await gone
      await refused.promise
      restarted = await up('restarted', '--hub')
      const asked = penstock(['authenticate-by-request', restarted.url, '--url', east.url])
      expect(await awaited).toMatchObject({ code: 0, stdout: expect.stringMatching(/^approved \d+\n$/), stderr: '' })
      expect((await asked).code).toBe(0)
    } finally {
      proxy.close()
      restarted.process.kill('SIGKILL')
    }
    expect(await at(east, 'disconnect')).toMatchObject({ code: 0 })
  })

  it('of more than the terminal has rows for: the one that a key would answer is seen', async () => {
    const over = new AbortController()
    const body = JSON.stringify({ hubServerAddress: hub.url })
    const asking = Array.from({ length: 6 }, () =>
      fetch(`${east.url}/v1/hub-client/authenticate-by-request`, { method: 'POST', body, signal: over.signal }),
    )
    const asked = Promise.allSettled(asking)
    const ids = (await pending(...asking.map(() => east))).map(({ requestId }) => Number(requestId))
    const [first, last] = [Math.min(...ids), Math.max(...ids)]
    const terminal = new PseudoTerminal(['authentication-requests', '--url', hub.url], { TERMINAL_SIZE: '100x8' })
    await terminal.see(new RegExp(`❯ +${first} +east[\\s\\S]*1 to 3 of 6 requests[\\s\\S]*q quits`))
    terminal.type(KEYS.down.repeat(5))
    await terminal.see(new RegExp(`❯ +${last} +east[\\s\\S]*4 to 6 of 6 requests[\\s\\S]*q quits`))
    terminal.type('q')
    expect(await terminal.code()).toBe(0)
    over.abort()
    await asked
    await pending()
  })

  it('by key: arrows choose, r rejects, enter approves, q quits; what comes and goes meanwhile is shown', async () => {
    const terminal = new PseudoTerminal(['authentication-requests', '--url', hub.url], {})
    await terminal.see(/no node asks to join the hub of/)
    await terminal.see(/q quits/)
    const first = ask(east)
    await terminal.see(new RegExp(`1 node asks to join[\\s\\S]*❯ +\\d+ +east +${east.id}`))
    const second = ask(west)
    await terminal.see(new RegExp(`2 nodes ask to join[\\s\\S]*❯ +\\d+ +east[\\s\\S]* +\\d+ +west +${west.id}`))
    terminal.type(KEYS.down)
    await terminal.see(/❯ +\d+ +west/)
    terminal.type(KEYS.up)
    await terminal.see(/❯ +\d+ +east/)
    const store = `${directory.path}/hub/penstock.lmdb`
    renameSync(store, `${store}.away`)
    terminal.type(KEYS.enter)
    await terminal.see(/1 node asks[\s\S]*did not take the change/)
    renameSync(`${store}.away`, store)
    await terminal.see(/2 nodes ask[\s\S]*❯ +\d+ +west[\s\S]*east \w+ still waits for an answer/)
    terminal.type(KEYS.up)
    await terminal.see(/❯ +\d+ +east/)
    terminal.type('r')
    await terminal.see(/1 node asks[\s\S]*❯ +\d+ +west[\s\S]*rejected east/)
    expect((await first).code).toBe(1)
    // The cursor came to this row by itself: a key chooses it, then enter counts.
    terminal.type(KEYS.down)
    terminal.type(KEYS.enter)
    await terminal.see(/no node asks[\s\S]*rejected east[\s\S]*approved west/)
    expect(await second).toMatchObject({ code: 0 })
    const third = penstock(['authenticate-by-request', hub.url, '--url', east.url], {
      onStart: (child) => void pending(east).then(() => child.kill('SIGINT')),
    })
    await terminal.see(/east \w+ waits no more: answered elsewhere, withdrawn or timed out/)
    await third
    terminal.type('q')
    expect(await terminal.code()).toBe(0)
    expect(await json(west, 'status')).toMatchObject({ state: 'CONNECTED', hub: hub.id, nodes: 2, nodesOnline: 2 })
  })

  it('ends at SIGHUP from elsewhere too, so that the terminal is as it was', async () => {
    const terminal = new PseudoTerminal(['authentication-requests', '--url', hub.url], {})
    await terminal.see(/q quits/)
    terminal.signal('SIGHUP')
    expect(await terminal.code()).toBe(0)
  })

  it('by key: Ctrl-C ends it, and it says when the node goes away', async () => {
    const terminal = new PseudoTerminal(['authentication-requests', '--url', hub.url], {})
    await terminal.see(/q quits/)
    terminal.type(KEYS.interrupt)
    expect(await terminal.code()).toBe(0)
    const doomed = await up('doomed', '--hub')
    const other = new PseudoTerminal(['authentication-requests', '--url', doomed.url], {})
    await other.see(/q quits/)
    doomed.process.kill('SIGKILL')
    await other.see(/the stream of requests broke off/)
    expect(await other.code()).toBe(1)
  })

  it('of a hub that takes none: says so and ends, on a terminal and in scripts', async () => {
    const closed = await up('closed', '--hub', '--authentication-by-request', 'none')
    const said = /this hub does not accept authentication by request/
    const terminal = new PseudoTerminal(['authentication-requests', '--url', closed.url], {})
    await terminal.see(said)
    expect(await terminal.code()).toBe(1)
    for (const args of [
      ['approve', '1'],
      ['reject', '1'],
      ['approve', '--all'],
    ]) {
      const { code, stderr } = await at(closed, 'authentication-requests', ...args)
      expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringMatching(said) })
    }
    closed.process.kill('SIGKILL')
  })
})

describe('nodes of a hub', () => {
  beforeAll(async () => {
    const asked = ask(east)
    await pending(east)
    expect(await at(hub, 'authentication-requests', 'approve', '--all')).toMatchObject({ code: 0 })
    expect(await asked).toMatchObject({ code: 0 })
  })

  it('are listed and filtered, from any of them', async () => {
    const { stdout } = await at(west, 'nodes')
    expect(stdout).toMatch(/^NAME +ID +ONLINE +SERVICES +LAST SEEN +METADATA\n/)
    expect(stdout).toMatch(new RegExp(`east +${east.id} +yes +pipelines +now +rack:=4 region=eu`))
    expect(stdout).toMatch(new RegExp(`hub +${hub.id} +yes +hub, pipelines +now`))
    const names = async (...args: string[]) =>
      (await json<{ name: string }[]>(west, 'nodes', ...args)).map(({ name }) => name).sort()
    expect(await names()).toEqual(['east', 'hub', 'west'])
    expect(await names('--service', 'hub')).toEqual(['hub'])
    expect(await names('--filter', 'region=eu', '--filter', 'rack:=4')).toEqual(['east'])
    expect(await names('--filter', 'rack=4')).toEqual([])
    const { code, stderr } = await at(west, 'nodes', '--service', 'nope')
    expect(code).toBe(2)
    expect(stderr).toContain('there is no service "nope": there are hub and pipelines')
    expect((await at(west, 'nodes', '--filter', 'nope')).code).toBe(2)
  })

  it('are changed by name from another one, keeping what is not given', async () => {
    const changed = ['nodes', 'set', 'east', '--metadata', 'site=b', '--metadata', 'load:=0.5', '--unset', 'rack']
    expect(await json(west, ...changed)).toMatchObject({
      name: 'east',
      metadata: { items: { region: { stringValue: 'eu' }, site: { stringValue: 'b' }, load: { doubleValue: 0.5 } } },
    })
    expect(await json(hub, 'nodes', 'set', east.id, '--name', 'orient', '--clear')).toMatchObject({
      name: 'orient',
      metadata: { items: {} },
    })
    expect(await json(east, 'nodes', 'set', '.', '--name', 'east')).toMatchObject({ name: 'east' })
    expect((await at(west, 'nodes', 'set', 'nobody', '--name', 'x')).stderr).toContain('nobody')
    expect((await at(west, 'nodes', 'set', 'east')).code).toBe(2)
    expect((await at(west, 'nodes', 'set', 'east', '--metadata', 'a:=[]')).code).toBe(2)
    const large = await at(west, 'nodes', 'set', 'east', '--metadata', 'a:=1e400')
    expect(large.code).toBe(2)
    expect(large.stderr).toContain('"a:=1e400": the number is too large')
  })

  it('have metadata of any name, and none by what objects have', async () => {
    const set = ['nodes', 'set', 'east', '--clear', '--metadata', '__proto__=a']
    const { metadata } = await json<{ metadata: { items: object } }>(west, ...set)
    expect(Object.entries(metadata.items)).toEqual([['__proto__', { stringValue: 'a' }]])
    expect(await json(west, 'nodes', '--filter', '__proto__=b')).toEqual([])
    expect(await json(west, 'nodes', '--filter', '__proto__=a')).toMatchObject([{ name: 'east' }])
    const { code, stderr } = await at(west, 'nodes', 'set', 'east', '--unset', 'toString')
    expect({ code, stderr }).toEqual({ code: 1, stderr: 'penstock: the node has no metadata "toString"\n' })
    expect(await json(west, 'nodes', 'set', 'east', '--unset', '__proto__')).toMatchObject({ metadata: { items: {} } })
  })

  it('run pipelines for each other', async () => {
    const config = directory.file('lossy.json', lossy)
    const { id } = await json<{ id: string }>(west, 'pipelines', 'create', 'far', config, '--node', 'east')
    expect(await at(west, 'pipelines', 'start', 'far', '--node', 'east')).toMatchObject({ code: 0 })
    expect(await json(east, 'pipelines', 'get', id)).toMatchObject({ started: true })
    expect(await json(west, 'status', '--node', 'east')).toMatchObject({ node: east.id, nodeId: west.id, running: 1 })
    // What is said is about the node meant, not about the one that is asked.
    const hosted = /hub +connected, which this node hosts\n/
    expect((await at(hub, 'status')).stdout).toMatch(hosted)
    expect((await at(west, 'status', '--node', 'hub')).stdout).toMatch(hosted)
    for (const [asked, meant] of [
      [hub, 'east'],
      [west, 'east'],
    ] as const) {
      const { stdout } = await at(asked, 'status', '--node', meant)
      expect(stdout).not.toMatch(hosted)
      expect(stdout).toMatch(new RegExp(`hub +connected to hub ${hub.id}\\n`))
    }
    expect(await at(west, 'pipelines', 'delete', 'far', '--node', 'nobody')).toMatchObject({ code: 1 })
    expect(await at(west, 'pipelines', 'stop', 'far', '--node', east.id)).toMatchObject({ code: 0 })
  })

  it('are followed: on a terminal as a table, elsewhere a line for each change', async () => {
    const lines = start(['nodes', '--watch', '--url', west.url])
    const terminal = new PseudoTerminal(['nodes', '--watch', '--url', hub.url], {})
    const next = reader(lines)
    await terminal.see(/east +\w+ +yes/)
    // Once the table is there the stream has begun: the next change is told as one.
    await next(/^east /)
    await json(east, 'nodes', 'set', '.', '--name', 'levant')
    expect((await next(/^changed levant (\S+)$/))[1]).toBe(east.id)
    await terminal.see(/levant +\w+ +yes/)
    await json(east, 'nodes', 'set', '.', '--name', 'east')
    terminal.type(KEYS.interrupt)
    expect(await terminal.code()).toBe(0)
    lines.kill('SIGINT')
  })

  it('are drawn a few times a second, however many changes come', async () => {
    const headers = { 'content-type': 'application/json' }
    const rename = (name: string) =>
      fetch(`${hub.url}/v1/nodes/${hub.id}`, { method: 'PUT', headers, body: JSON.stringify({ name }) })
    const terminal = new PseudoTerminal(['nodes', '--watch', '--url', hub.url], {})
    await terminal.see(/hub +\w+ +yes/)
    const begun = performance.now()
    for (let i = 1; i <= 300; i++) await rename(`hub ${i}`)
    await terminal.see(/hub 300 +\w+ +yes/)
    terminal.type(KEYS.interrupt)
    expect(await terminal.code()).toBe(0)
    const drawings = terminal.raw.split('\x1b[0J').length - 1
    // Five a second for changes, one because time goes by, and a few as it begins and ends.
    expect(drawings).toBeLessThan(10 + ((performance.now() - begun) / 1000) * 6)
    await rename('hub')
  })

  it('are removed', async () => {
    expect(await at(west, 'nodes', 'remove', 'east')).toMatchObject({ code: 0, stdout: `removed east ${east.id}\n` })
    expect((await json<unknown[]>(hub, 'nodes')).length).toBe(2)
    const own = await at(hub, 'nodes', 'remove', 'hub')
    expect(own.code).toBe(1)
    expect((await at(west, 'nodes', 'remove', 'east')).stderr).toContain(
      'no node on this hub has the id or name "east"',
    )
    expect(await at(west, 'disconnect')).toMatchObject({ code: 0 })
    expect(await json(west, 'status')).toMatchObject({ state: 'UNAUTHENTICATED', isAuthenticated: false })
    const off = await at(west, 'nodes')
    expect(off).toMatchObject({ code: 1, stdout: '' })
  })
})

describe('tokens', () => {
  it('are made, shown once, listed, used and revoked', async () => {
    const made = await at(hub, 'token', 'create', 'laptop')
    expect(made.code).toBe(0)
    expect(made.stdout).toMatch(/^penstock_[\w-]{43}\n$/)
    expect(made.stderr).toContain('only its hash')
    const secret = made.stdout.trim()
    expect((await at(hub, 'token', 'list')).stdout).toMatch(/^NAME +CREATED +LAST USED\nlaptop +\S+ +never\n$/)
    const env = { PENSTOCK_TOKEN: secret }
    expect(await penstock(['status', '--url', hub.url], { env })).toMatchObject({ code: 0 })
    expect((await at(hub, 'token', 'list')).stdout).toMatch(/laptop +\S+ +(now|\d+ s ago)\n/)
    expect((await at(hub, 'token', 'create', 'laptop')).stderr).toContain('there is a token laptop')
    expect((await at(hub, 'token', 'create', 'a b')).code).toBe(1)
    expect(await json<object[]>(hub, 'token', 'list')).toEqual([
      { name: 'laptop', createdAt: expect.any(String), lastUsed: expect.any(String) },
    ])
    expect(await at(hub, 'token', 'revoke', 'laptop')).toMatchObject({ code: 0, stdout: 'revoked laptop\n' })
    const refused = await penstock(['status', '--url', hub.url], { env })
    expect(refused.code).toBe(1)
    expect(refused.stderr).toContain('the bearer token is not known here')
    expect(await at(hub, 'token', 'revoke', 'laptop')).toMatchObject({ code: 1 })
    expect((await at(hub, 'token', 'list')).stdout).toBe('no tokens\n')
  })
})

describe('config check', () => {
  it('shows every key of a hub with its origin', async () => {
    const file = directory.file('hub.yaml', 'hubServer:\n  authenticationByRequest:\n    timeout: 90s\n')
    const { code, stdout } = await penstock(['config', 'check', '-c', file, '--http-hostnames', 'a.example'], {
      env: { PENSTOCK_HTTP_TLS: 'auto', PENSTOCK_HTTP_ALLOWED_ORIGINS: 'https://page.example', COLUMNS: '200' },
    })
    expect(code).toBe(0)
    expect(stdout).toMatch(/^hubServer +true +\S*hub\.yaml:1$/m)
    expect(stdout).toMatch(/^hubServer\.authenticationByRequest\.timeout +90s +\S*hub\.yaml:3$/m)
    expect(stdout).toMatch(/^http\.tls +auto +PENSTOCK_HTTP_TLS$/m)
    expect(stdout).toMatch(/^http\.hostnames +\["a\.example"\] +--http-hostnames$/m)
    expect(stdout).toMatch(/^http\.allowedOrigins +\["https:\/\/page\.example"\] +PENSTOCK_HTTP_ALLOWED_ORIGINS$/m)
    expect(stdout).toMatch(/^access\.open +false +default$/m)
    expect(stdout).toMatch(/^access\.loopback +open +default$/m)
    expect(stdout).not.toContain('nodes set')
    const wrong = await penstock(['config', 'check', '--http-allowed-origins', 'https://page.example/x'])
    expect(wrong).toMatchObject({ code: 1, stdout: '' })
    expect(wrong.stderr).toContain('--http-allowed-origins: http.allowedOrigins: "https://page.example/x" is no origin')
  })

  it('says of a name by flag what goes before it', async () => {
    const { stdout } = await penstock(['config', 'check', '--node-name', 'new'], { env: { COLUMNS: '200' } })
    expect(stdout).toMatch(/^node\.name +new +--node-name$/m)
    expect(stdout).toMatch(/\n\nnode\.name: until "penstock nodes set" has changed .* goes first\n$/)
  })
})
