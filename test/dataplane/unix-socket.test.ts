/** Unix sockets through real sockets and graphs in worker threads: ids, users, files that are left behind. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { constants, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest'
import { bytesOf, freePacket, ioCounters, packetMemory, packetOf } from '../../src/dataplane/native/fixture.ts'
import { native } from '../../src/dataplane/native/native.ts'
import { conservation, type Pipeline } from '../harness/component.ts'
import '../harness/slow.ts'
import { until } from '../harness/waiting.ts'
import { configure, Peer, startRun, type TestRun, testPool } from './running.ts'

const root = process.getuid?.() === 0
if (!root) console.warn('SKIPPED: tests of other users need root')

const pool = testPool()
const before = native.openDescriptors()
const runs: TestRun[] = []
const closing: (() => void)[] = []
let folder = ''

async function start(pipeline: Pipeline): Promise<TestRun> {
  const run = await startRun(pool, pipeline)
  runs.push(run)
  return run
}

const failure = (pipeline: Pipeline): Promise<unknown> =>
  startRun(pool, pipeline).then(
    (run) => run.stop(),
    (error: Error) => error,
  )

async function balanced(run: TestRun, pipeline: Pipeline): Promise<Record<string, Record<string, number>>> {
  await run.stop()
  expect(conservation(configure(pipeline), run.metrics())).toEqual([])
  return run.metrics()
}

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'penstock-unix-'))
})
afterEach(async () => {
  for (const run of runs.splice(0)) await run.stop()
  for (const close of closing.splice(0)) close()
  rmSync(folder, { recursive: true, force: true })
  expect(native.openDescriptors()).toBe(before)
})
afterAll(() => pool.close())

/** A client of the addon's own, without a run. */
class Client {
  private readonly owner = native.ownerOpen()
  private readonly memory = packetMemory(64, 70_000)
  private readonly id = native.memoryOpen(this.memory)
  private readonly connection: number

  constructor(name: string, bind?: string) {
    closing.push(() => this.close())
    this.connection = native.unixConnect(this.owner, { name, mtu: 65_535, ...(bind !== undefined && { bind }) })
  }

  send(...texts: string[]): void {
    const handles = Int32Array.from(texts, (text) => packetOf(this.memory, Buffer.from(text)))
    expect(native.connectionSend(this.connection, this.id, handles, 0, handles.length, ioCounters())).toBe(texts.length)
  }

  /** What has come, or the name of the error that ended it. */
  receive(): string[] | string {
    const handles = new Int32Array(32)
    const count = native.connectionReceive(this.connection, this.id, handles, 32, 0, ioCounters())
    if (count < 0) return Object.entries(constants.errno).find(([, errno]) => errno === -count)?.[0] ?? ''
    const heard: string[] = []
    for (const handle of handles.subarray(0, count)) {
      heard.push(Buffer.from(bytesOf(this.memory, handle)).toString())
      freePacket(this.memory, handle)
    }
    return heard
  }

  async hears(...texts: string[]): Promise<void> {
    const heard: string[] = []
    await until(() => {
      heard.push(...this.receive())
      return heard.length >= texts.length
    })
    expect(heard).toEqual(texts)
  }

  close(): void {
    native.ownerRelease(this.owner)
  }
}

const echo = (listen_address: string, fields: Record<string, unknown> = {}): Pipeline => ({
  unix: { unix_socket: { server: { listen_address }, output: 'in', input: 'out', ...fields } },
  loop: { observer: { input: 'in', output: 'out' } },
})
const path = () => join(folder, 'socket')
const abstract = () => `@penstock-test-${process.pid}`

describe.each([
  ['a path', path],
  ['an abstract name', abstract],
])('at %s', (_what, nameOf) => {
  it('every client gets its own answers by its id, the newest those of nobody', async () => {
    const name = nameOf()
    const run = await start(echo(name))
    const clients = [1, 2_147_483_647, 7].map((id) => new Client(name, `@${id}.${name}`))
    await until(() => run.metrics().unix.connections === 3)
    for (const [index, client] of clients.entries()) client.send(`one ${index}`, `two ${index}`)
    for (const [index, client] of clients.entries()) await client.hears(`one ${index}`, `two ${index}`)
    const nobody = new Client(name)
    const pretender = new Client(name, `@5.${name}x`)
    await until(() => run.metrics().unix.connections === 5)
    nobody.send('from whom?')
    await pretender.hears('from whom?')
    expect((await balanced(run, echo(name))).unix).toMatchObject({ received_packets: 7, sent_packets: 7 })
  })

  it('client and server of two runs find each other, however late the one comes and whenever it goes', async () => {
    const name = nameOf()
    const toServer: Pipeline = {
      in: { udp_local: { address: '127.0.0.1:0', output: 'a' } },
      unix: { unix_socket: { client: { server_address: name, bind_address: 3 }, input: 'a', output: 'c' } },
      end: { traffic_sink: { input: 'c' } },
    }
    const run = await start(toServer)
    await until(() => run.metrics().unix.socket_errors > 0)
    const sender = await Peer.open()
    closing.push(() => sender.close())
    await sender.send(run.port('in'), 'waits')
    for (const round of [1, 2]) {
      const server = await start(echo(name))
      await until(() => run.metrics().unix.received_packets === round)
      await until(() => server.metrics().unix.connections === 1)
      await sender.send(run.port('in'), 'answered')
      await until(() => run.metrics().unix.received_packets === round + 1)
      await server.stop()
      await until(() => run.metrics().unix.connections === 0)
    }
    expect((await balanced(run, toServer)).unix).toMatchObject({ opened_connections: 2, sent_packets: 3 })
  })

  it('packets that come from elsewhere have no id, whoever had their slot before', async () => {
    const name = nameOf()
    const sender = await Peer.open()
    closing.push(() => sender.close())
    const run = await start({
      unix: { unix_socket: { server: { listen_address: name }, output: 'a', input: 'b' } },
      udp: { udp: { remote_address: sender.address, local_address: '127.0.0.1:0', input: 'a', output: 'b' } },
    })
    const [first, newest] = [1, 2].map((id) => new Client(name, `@${id}.${name}`))
    await until(() => run.metrics().unix.connections === 2)
    for (let i = 0; i < 3; i++) {
      first.send(`to the network ${i}`)
      await sender.hears(i + 1)
      await sender.send(run.port('udp'), `from the network ${i}`)
      await newest.hears(`from the network ${i}`)
    }
  })

  it('whose id or name is taken is refused', async () => {
    const name = nameOf()
    await start(echo(name))
    new Client(name, `@4.${name}`)
    const second = { unix: { unix_socket: { client: { server_address: name, bind_address: 4 }, output: 'a' } } }
    const sink = { sink: { traffic_sink: { input: 'a' } } }
    expect(await failure({ ...second, ...sink })).toMatchObject({
      message: expect.stringContaining('another bind_address'),
    })
    expect(await failure(echo(name))).toMatchObject({ message: expect.stringContaining('somebody listens there') })
    // Nothing of the server that is refused may take the file of the one that listens away.
    const client = new Client(name)
    client.send('still there')
    await client.hears('still there')
  })

  it('packets over the MTU and slow readers cost packets, counted, and not the connection', async () => {
    const name = nameOf()
    const run = await start(echo(name, { mtu: 1000 }))
    const client = new Client(name)
    client.send('x'.repeat(1001), 'y'.repeat(1000))
    await client.hears('y'.repeat(1000))
    await until(() => run.metrics().unix.received_oversize_packets === 1)
    const slow: Pipeline = {
      in: { udp_local: { address: '127.0.0.1:0', output: 'a' } },
      unix: { unix_socket: { server: { listen_address: `${name}2` }, input: 'a' } },
    }
    const other = await start(slow)
    const sender = await Peer.open()
    closing.push(() => sender.close())
    const reader = new Client(`${name}2`)
    await until(() => other.metrics().unix.connections === 1)
    while (other.metrics().unix.send_queue_drops < 10) {
      for (let i = 0; i < 50; i++) await sender.send(other.port('in'), Buffer.alloc(1400, 'z'))
    }
    await until(() => {
      reader.receive()
      return other.metrics().unix.queued_packets === 0
    })
    expect((await balanced(other, slow)).unix).toMatchObject({ reset_connections: 0, unsent_packets: 0 })
  })

  it('a thousand clients in and out leave no descriptor and no slot behind', async () => {
    const name = nameOf()
    const run = await start(echo(name))
    const standing = native.openDescriptors()
    for (let round = 1; round <= 4; round++) {
      const clients = Array.from({ length: 250 }, (_, i) => new Client(name, `@${i + 1}.${name}`))
      for (const [index, client] of clients.entries()) client.send(`${index}`)
      for (const [index, client] of clients.entries()) if (index % 2 === 0) await client.hears(`${index}`)
      // Half of them go without having read.
      for (const client of clients) client.close()
      await until(() => run.metrics().unix.connections === 0 && run.metrics().unix.opened_connections === round * 250)
    }
    expect(native.openDescriptors()).toBe(standing)
    await balanced(run, echo(name))
  })
})

describe('the file', () => {
  it('has mode 0600 and goes with the run', async () => {
    const run = await start(echo(path()))
    expect(statSync(path()).mode & 0o777).toBe(0o600)
    await run.stop()
    expect(existsSync(path())).toBe(false)
  })

  /** Leaves a socket behind, as a server that was killed does. */
  async function abandoned(type: 'SOCK_SEQPACKET' | 'SOCK_STREAM', stays: boolean): Promise<ChildProcess> {
    const text = `import socket,sys,time
s=socket.socket(socket.AF_UNIX,socket.${type});s.bind(sys.argv[1]);s.listen()
print("bound",flush=True)
${stays ? 'time.sleep(60)' : ''}`
    const child = spawn('python3', ['-c', text, path()], { stdio: ['ignore', 'pipe', 'inherit'] })
    closing.push(() => child.kill('SIGKILL'))
    const gone = once(child, 'exit')
    await once(child.stdout, 'data')
    if (!stays) await gone
    return child
  }

  it.each(['SOCK_SEQPACKET', 'SOCK_STREAM'] as const)('of a server of %s that is gone is replaced', async (type) => {
    await abandoned(type, false)
    expect(existsSync(path())).toBe(true)
    await start(echo(path()))
    const client = new Client(path())
    client.send('anew')
    await client.hears('anew')
  })

  /** Listens there in a process of its own, after `first` has run there; what it prints. */
  function listensAfter(first: string): string {
    const program = `import { closeSync, openSync } from 'node:fs'
import { native } from ${JSON.stringify(new URL('../../dist/src/dataplane/native/native.js', import.meta.url))}
${first}
try {
  native.unixListen(native.ownerOpen(), { name: 'socket', mtu: 100 })
  console.log('listens')
} catch ({ message }) {
  console.log(message)
}`
    const args = ['-c', 'ulimit -n 100 && exec "$0" --input-type=module -e "$1"', process.execPath, program]
    const { stdout, stderr } = spawnSync('sh', args, { cwd: folder, encoding: 'utf8' })
    expect(stderr).toBe('')
    return stdout
  }

  it('of a server that is gone is replaced with the last descriptor that the process may have', async () => {
    await abandoned('SOCK_SEQPACKET', false)
    const takeOthers = `let last
try { for (;;) last = openSync('/dev/null') } catch { closeSync(last) }`
    expect(listensAfter(takeOthers)).toBe('listens\n')
  })

  it.skipIf(!root)('of a server that is gone, which may not be removed, is not said to be in use', async () => {
    await abandoned('SOCK_SEQPACKET', false)
    chmodSync(path(), 0o777)
    chmodSync(folder, 0o755)
    expect(listensAfter('process.seteuid(65534)')).toMatch(/^unlink EACCES .*: permission denied\n$/)
  })

  it.each(['SOCK_SEQPACKET', 'SOCK_STREAM'] as const)('of a server of %s that lives is left alone', async (type) => {
    await abandoned(type, true)
    const { ino } = statSync(path())
    expect(await failure(echo(path()))).toMatchObject({ message: expect.stringContaining('EADDRINUSE') })
    expect(statSync(path()).ino).toBe(ino)
  })

  it('that is no socket is left alone', async () => {
    writeFileSync(path(), 'mine')
    expect(await failure(echo(path()))).toMatchObject({ message: expect.stringContaining('the file is no socket') })
    expect(statSync(path()).size).toBe(4)
  })

  it('that somebody else has put in its place stays at the end', async () => {
    const run = await start(echo(path()))
    rmSync(path())
    writeFileSync(path(), 'theirs')
    await run.stop()
    expect(statSync(path()).size).toBe(6)
  })
})

const socat = spawnSync('socat', ['-V']).status === 0
if (!socat) console.warn('SKIPPED: tests against socat lack socat')

describe.skipIf(!socat)('socat', () => {
  const SEQPACKET = 'socktype=5,protocol=0'

  it('as client is answered, packet by packet', async () => {
    const run = await start(echo(path()))
    const child = spawn('socat', ['-t5', '-', `UNIX-CONNECT:${path()},${SEQPACKET}`])
    closing.push(() => child.kill())
    child.stdin.write('hello')
    const [answer] = await once(child.stdout, 'data')
    expect(String(answer)).toBe('hello')
    child.stdin.end()
    await until(() => run.metrics().unix.connections === 0)
  })

  it('as server is heard and answered', async () => {
    const child = spawn('socat', [`UNIX-LISTEN:${path()},${SEQPACKET}`, 'EXEC:cat'])
    closing.push(() => child.kill())
    await until(() => existsSync(path()))
    const sender = await Peer.open()
    closing.push(() => sender.close())
    const run = await start({
      in: { udp_local: { address: '127.0.0.1:0', output: 'a' } },
      unix: { unix_socket: { client: { server_address: path() }, input: 'a', output: 'b' } },
      out: { udp: { remote_address: sender.address, input: 'b' } },
    })
    await sender.send(run.port('in'), 'there and back')
    await sender.hears(1)
    expect(sender.heard).toMatchObject([{ text: 'there and back' }])
  })

  it.skipIf(!root)('of another user is not spoken to', async () => {
    chmodSync(folder, 0o755)
    const run = await start(echo(abstract()))
    const nobody = (...args: string[]) =>
      spawn('socat', args, { uid: 65_534, gid: 65_534, stdio: ['pipe', 'pipe', 'pipe'] })
    const intruder = nobody('-t5', '-', `ABSTRACT-CONNECT:${abstract().slice(1)},${SEQPACKET}`)
    await until(() => run.metrics().unix.refused_connections === 1)
    intruder.kill()
    await run.stop()
    const file = await start(echo(path()))
    const other = nobody('-', `UNIX-CONNECT:${path()},${SEQPACKET}`)
    const [text] = await once(other.stderr, 'data')
    expect(String(text)).toContain('Permission denied')
    expect(file.metrics().unix.opened_connections).toBe(0)
    // Nor is a server of another user by a client of this one.
    const server = nobody(`ABSTRACT-LISTEN:${abstract().slice(1)}s,${SEQPACKET},fork`, 'EXEC:cat')
    closing.push(() => server.kill())
    const client = await start({
      unix: { unix_socket: { client: { server_address: `${abstract()}s` }, output: 'a' } },
      sink: { traffic_sink: { input: 'a' } },
    })
    await until(
      () => client.log.some(({ message }) => message.includes('of another user (65534)')),
      () => JSON.stringify(client.log),
    )
    expect(client.metrics().unix.opened_connections).toBe(0)
  })
})
