/** A node whose connection to its hub is slow: what does not come in time is not carried out, however much later it comes. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { settingsOf, temporaryDirectory, traffic } from '../api/running-node.ts'
import { endProcesses, NodeProcess } from '../harness/node-process.ts'
import '../harness/slow.ts'

const root = temporaryDirectory()
/** How much faster than real time links live here. */
const SPEED = 10
const TICK_MS = 20
const closing: (() => void)[] = []
afterEach(async () => {
  await endProcesses()
  for (const close of closing.splice(0)) close()
})

/** A TCP proxy that passes so many bytes a second on to `address`, and everything back; returns its own address. */
async function slowly(address: string, bytesPerSecond: number): Promise<string> {
  const [host = '', port = ''] = address.split(':')
  const sockets = new Set<Socket>()
  const proxy = createServer((near) => {
    const far = connect(Number(port), host)
    for (const socket of [near, far]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        near.destroy()
        far.destroy()
      })
    }
    far.pipe(near)
    near.pause()
    const timer = setInterval(() => {
      const most = Math.min(near.readableLength, (bytesPerSecond * TICK_MS) / 1000)
      if (most > 0) far.write(near.read(most) as Buffer)
      else near.read(0)
    }, TICK_MS)
    near.on('close', () => clearInterval(timer))
  })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  closing.push(() => {
    proxy.close()
    for (const socket of sockets) socket.destroy()
  })
  return `127.0.0.1:${(proxy.address() as AddressInfo).port}`
}

test('a pipeline whose configuration does not reach the hub in time is not created after its caller was told so', async () => {
  const start = (name: string, flags: Record<string, string>) =>
    NodeProcess.start({ directory: join(root, name), flags, speed: SPEED })
  const hub = await start('hub', { hub: 'true' })
  const node = await start('node', {})
  const { stream, answer } = await hub.caller.converse('authenticationByRequests')
  // 30 s of the link are 3 s here.
  const hubServerAddress = `http://${await slowly(hub.address, 60_000)}`
  const joined = node.caller.unary('authenticateByRequest', { hubServerAddress })
  const { requestId } = await Promise.race([stream.next(), joined.then(() => expect.fail('joined unasked'))])
  answer({ requestId, accept: true })
  await joined
  stream.close()
  const settings = settingsOf(traffic(1))
  const create = (name: string, padding: number) =>
    node.caller.unary('createPipeline', {
      nodeId: hub.id,
      ...settings,
      name,
      jsonConfig: settings.jsonConfig + ' '.repeat(padding),
    })
  await create('in time', 50_000)
  // All of both is in the hands of the kernel and the proxy long before the time is up, and what cancels the first comes behind the second.
  const late = [create('too late', 220_000), create('later still', 250_000)].map((call) =>
    expect(call).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' }),
  )
  await Promise.all(late)
  // Frames are handled in their order: whatever was on its way is there before this.
  const through = (): Promise<unknown> => node.caller.unary('getPipelines', { nodeId: hub.id }).catch(through)
  await through()
  const { pipelines } = await hub.caller.unary('getPipelines', { nodeId: hub.id })
  expect(pipelines.map(({ name }: { name: string }) => name)).toEqual(['in time'])
})
