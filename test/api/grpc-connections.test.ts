/** Connections to the gRPC port that are good for nothing, made by hand: a real node in a process of its own gets its descriptors back. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readlinkSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import * as grpc from '@grpc/grpc-js'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { Access } from '../../src/api/access.ts'
import { Dispatcher } from '../../src/api/dispatcher.ts'
import { GrpcListener } from '../../src/api/grpc.ts'
import { handlers, Seen } from '../contract/handlers.ts'
import { Cable, FAR, NEAR, namespacesLack } from '../e2e/namespaces.ts'
import { until } from '../harness/waiting.ts'
import { FRAME, faults, frame, PREFACE, RawHttp2 } from './http2-client.ts'
import { temporaryDirectory } from './running-node.ts'

const pass = (bytes: Buffer): Buffer => bytes
/** Of a process that answers: the port of its gRPC listener, and how many sockets it has open. */
interface Child {
  readonly grpc: string
  readonly process: ChildProcess
  readonly sockets: () => number
}

/** Its threads come and go by themselves, and have descriptors of other kinds. */
function socketsOf(pid: number): number {
  const directory = `/proc/${pid}/fd`
  return readdirSync(directory).filter((descriptor) => {
    try {
      return readlinkSync(join(directory, descriptor)).startsWith('socket:')
    } catch {
      return false // closed meanwhile
    }
  }).length
}

/** Starts a node that may open this many descriptors. */
async function child(descriptors: number, flags: Record<string, string> = {}): Promise<Child> {
  const script = fileURLToPath(new URL('../hub/node-child.mjs', import.meta.url))
  const all = { 'data-dir': join(temporaryDirectory(), 'node'), grpc: '127.0.0.1:0', http: 'none', ...flags }
  const command = `ulimit -n ${descriptors} && exec "$0" "$1" "$2"`
  const given = JSON.stringify({ flags: all })
  const process_ = spawn('bash', ['-c', command, process.execPath, script, given], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [line] = await once(createInterface({ input: process_.stdout }), 'line')
  const said = JSON.parse(line) as { grpc: string; error?: string }
  if (said.error !== undefined) throw new Error(said.error)
  return { grpc: said.grpc, process: process_, sockets: () => socketsOf(process_.pid as number) }
}

async function end({ process: child }: Child): Promise<void> {
  const gone = once(child, 'exit')
  child.kill('SIGKILL')
  await gone
}

function call(client: grpc.Client): Promise<Buffer> {
  const path = '/servicegrpc.hub.HubClientService/getLocalNodeId'
  return new Promise((resolve, reject) => {
    const deadline = { deadline: Date.now() + 10_000 }
    client.makeUnaryRequest(path, pass, pass, Buffer.alloc(0), deadline, (error, bytes) => {
      if (error === null) resolve(bytes as Buffer)
      else reject(error)
    })
  })
}

const clients: grpc.Client[] = []
function clientOf(address: string, isTls = false): grpc.Client {
  const credentials = isTls
    ? grpc.credentials.createSsl(null, null, null, { checkServerIdentity: () => undefined, rejectUnauthorized: false })
    : grpc.credentials.createInsecure()
  // A connection of its own: clients of one address would share theirs.
  const client = new grpc.Client(address, credentials, { 'grpc.use_local_subchannel_pool': 1 })
  clients.push(client)
  return client
}
afterEach(() => {
  for (const client of clients.splice(0)) client.close()
})

describe.each([
  ['plain', false],
  ['TLS', true],
])('%s: a client that breaks the protocol and goes', (_name, isTls) => {
  let node: Child
  beforeAll(async () => {
    node = await child(256, isTls ? { 'http-tls': 'auto' } : {})
  })
  afterAll(() => end(node))

  test.each(Object.entries(faults))('%s', { timeout: 60_000 }, async (_fault, bytes) => {
    const other = clientOf(node.grpc, isTls)
    await call(other)
    const before = node.sockets()
    // More of them in all than the process has descriptors, and others are served all the time.
    for (let round = 0; round < 6; round++) {
      const broken = await Promise.all(Array.from({ length: 50 }, () => RawHttp2.connect(node.grpc, isTls)))
      for (const each of broken) each.send(PREFACE, bytes)
      await Promise.all(broken.map((each) => each.received(FRAME.goaway)))
      await call(other)
      await call(clientOf(node.grpc, isTls))
      for (const each of broken) each.gone()
      // Its deadline is far above a second for a busy machine, far below the 50 s after which a keep-alive ping has failed.
      await until(() => node.sockets() <= before + 8)
    }
  })
})

test('more silent connections than the process has descriptors leave room for those who call', async () => {
  const node = await child(256)
  const held: Socket[] = []
  try {
    for (let i = 0; i < 400; i++) {
      const socket = connect(Number(node.grpc.split(':')[1]), '127.0.0.1')
      socket.on('error', () => undefined)
      held.push(socket)
      await once(socket, 'connect')
      // Some say nothing, some only hello.
      if (i % 2 === 0) socket.write(PREFACE)
    }
    expect(node.sockets()).toBeLessThan(256)
    for (let i = 0; i < 20; i++) await call(clientOf(node.grpc))
  } finally {
    for (const socket of held) socket.destroy()
    await end(node)
  }
})

describe('a listener with short times', () => {
  const seen = new Seen()
  const dispatcher = new Dispatcher({ handlers: handlers(seen), report: (error) => seen.reports.push(error) })
  const access = new Access({ verifyToken: () => undefined })
  let listener: GrpcListener
  let address: string
  const warnings: string[] = []
  const listen = async (limits: ConstructorParameters<typeof GrpcListener>[0]['limits']) => {
    listener = new GrpcListener({
      dispatcher,
      access,
      address: '127.0.0.1',
      port: 0,
      ...(limits === undefined ? {} : { limits }),
      warn: (message) => warnings.push(message),
    })
    address = `127.0.0.1:${(await listener.start()).port}`
  }
  afterEach(() => listener.stop())

  test.each([
    ['nothing', []],
    ['half a preface', [PREFACE.subarray(0, 10)]],
    ['a preface and no request', [PREFACE]],
    ['a request without headers of gRPC', [PREFACE, frame(FRAME.headers, 5, 1, Buffer.from([0x82, 0x84, 0x86]))]],
  ])('closes a connection that says %s', async (_what, frames) => {
    await listen({ silentMs: 200 })
    const silent = await RawHttp2.connect(address)
    silent.send(...frames)
    await silent.closed
  })

  test('closes a session whose calls are over, not one with a quiet stream', async () => {
    await listen({ silentMs: 300, idleMs: 300 })
    const idle = clientOf(address)
    const quiet = clientOf(address)
    const operation = dispatcher.operations.find(({ name }) => name === 'streamPipelines')
    const node = dispatcher.operations.find(({ name }) => name === 'getNode')
    const of = (text: string) => Buffer.concat([Buffer.from([10, text.length]), Buffer.from(text)])
    const stream = quiet.makeServerStreamRequest(operation?.grpcPath ?? '', pass, pass, of('g'))
    let failure: unknown
    stream.on('error', (error) => {
      failure = error
    })
    await once(stream, 'metadata')
    await new Promise((resolve) => idle.makeUnaryRequest(node?.grpcPath ?? '', pass, pass, of('n1'), resolve))
    const ready = () => idle.getChannel().getConnectivityState(false) === grpc.connectivityState.READY
    expect(ready()).toBe(true)
    await until(() => !ready())
    // The quiet one began earlier and has lasted longer.
    expect(failure).toBe(undefined)
    expect(quiet.getChannel().getConnectivityState(false)).toBe(grpc.connectivityState.READY)
    stream.cancel()
  })

  test('refuses further connections when all places are taken by callers, and says so once', async () => {
    await listen({ most: 2 })
    const node = dispatcher.operations.find(({ name }) => name === 'getNode')?.grpcPath ?? ''
    const request = Buffer.from([10, 2, 110, 49])
    const ask = (client: grpc.Client) =>
      new Promise((resolve) =>
        client.makeUnaryRequest(node, pass, pass, request, { deadline: Date.now() + 3_000 }, (error) =>
          resolve(error === null ? 'OK' : grpc.status[error.code]),
        ),
      )
    expect(await ask(clientOf(address))).toBe('OK')
    expect(await ask(clientOf(address))).toBe('OK')
    expect(await ask(clientOf(address))).toBe('UNAVAILABLE')
    expect(await ask(clientOf(address))).toBe('UNAVAILABLE')
    expect(warnings).toEqual(['gRPC connections are refused: all 2 places are taken'])
  })
})

const missing = namespacesLack()
if (missing.length > 0) console.warn(`SKIPPED: the test of connections from one address lacks ${missing.join(', ')}`)

test.skipIf(missing.length > 0)('one address has at most so many connections, loopback apart', async () => {
  const cable = new Cable()
  const run = (namespace: string, code: string) => {
    const program = cable.spawn(namespace, '--input-type=module', ['-e', code])
    program.stderr?.pipe(process.stderr)
    return createInterface({ input: program.stdout as NodeJS.ReadableStream })
  }
  try {
    const server = run(
      cable.near,
      `import { GrpcConnections } from ${JSON.stringify(new URL('../../dist/src/api/grpc-connections.js', import.meta.url))}
       const limits = { mostPerAddress: 3 }
       const connections = new GrpcConnections({ inject() {}, warn: console.log, limits })
       console.log(await connections.listen('0.0.0.0', 0))`,
    )
    const warnings: string[] = []
    const [port] = await once(server, 'line')
    server.on('line', (line) => warnings.push(line))
    const callers = (host: string) => `import { connect } from 'node:net'
       const sockets = Array.from({ length: 8 }, () => connect(${port}, '${host}'))
       for (const socket of sockets) socket.on('error', () => {}).on('connect', () => socket.write('x'))
       setInterval(() => console.log(sockets.filter((socket) => socket.readyState === 'open').length), 50)`
    const open = (namespace: string, host: string, wanted: string) =>
      new Promise<void>((resolve) => {
        const lines = run(namespace, callers(host))
        lines.on('line', (line) => line === wanted && resolve())
      })
    await open(cable.far, NEAR, '3')
    expect(warnings).toEqual([`gRPC connections from ${FAR} are refused: it has 3, the most from one address`])
    await open(cable.near, '127.0.0.1', '8')
  } finally {
    await cable.dispose()
  }
})
