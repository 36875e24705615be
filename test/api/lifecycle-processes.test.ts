/** Nodes as processes with runs that have commands: stopped with SIGTERM, and killed with all that is open. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterEach, expect, test } from 'vitest'
import { packageRoot } from '../../src/package-root.ts'
import { until } from '../harness/waiting.ts'
import { type Answer, temporaryDirectory, traffic } from './running-node.ts'

const children: ChildProcess[] = []
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
})

/** `penstock up` in a process of its own. */
async function up(directory: string) {
  const args = ['bin/penstock.js', 'up', '--data-dir', directory, '--http', '127.0.0.1:0', '--grpc', 'none']
  const child = spawn(process.execPath, [...args, '--log-format', 'json'], {
    cwd: packageRoot(),
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  children.push(child)
  const logged: Record<string, unknown>[] = []
  createInterface({ input: child.stderr }).on('line', (line) => logged.push(JSON.parse(line)))
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
  const [, http, id] = /http=(\S+) .*node=(\S+)/.exec(line) ?? []
  return {
    logged,
    async call(method: string, path: string, body?: unknown): Promise<Answer['body']> {
      const url = `http://${http}/v1/nodes/${id}${path}`
      const response = await fetch(url, body === undefined ? { method } : { method, body: JSON.stringify(body) })
      const answer = (await response.json()) as Answer['body']
      expect(answer.message ?? response.status).toBe(200)
      return answer
    },
    /** Ends the process; its exit code, or the signal. */
    async end(signal: NodeJS.Signals): Promise<unknown> {
      const gone = once(child, 'exit')
      child.kill(signal)
      const [code, by] = await gone
      return code ?? by
    },
  }
}

const settings = (pipeline: object, lifecycle_handler: object, more: object = {}) => ({
  name: 'test',
  jsonConfig: JSON.stringify({ engine_config: { pipeline, lifecycle_handler } }),
  ...more,
})

/** Whether a process is there, and no zombie. */
function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'latin1'))
  } catch {
    return false
  }
}

async function pidIn(file: string): Promise<number> {
  const read = () => (existsSync(file) ? Number(readFileSync(file, 'latin1').trim()) : 0)
  await until(() => read() > 0, `a process in ${file}`)
  return read()
}

test('SIGTERM: runs stop, their commands run, the node exits 0; how they ended is known at the next start', async () => {
  const directory = temporaryDirectory()
  const node = await up(directory)
  const commands = {
    pre_start: [{ cmd: 'echo $$ > background; exec sleep 1000', policy: 'RUN_IN_BACKGROUND' }],
    pre_stop: [{ cmd: 'echo before >> order' }],
    post_stop: [{ cmd: 'sleep 0.2; echo after >> order' }],
  }
  const { pipeline } = await node.call('POST', '/pipelines', settings(traffic(), commands, { instructionsTimeout: 10 }))
  await node.call('POST', `/pipelines/${pipeline.id}/start`)
  const background = await pidIn(join(directory, 'files/background'))
  expect(await node.end('SIGTERM')).toBe(0)
  expect(readFileSync(join(directory, 'files/order'), 'latin1')).toBe('before\nafter\n')
  expect(isAlive(background)).toBe(false)
  const next = await up(directory)
  const { pipeline: found } = await next.call('GET', `/pipelines/${pipeline.id}`)
  expect(found.currentRun).toMatchObject({ outcome: 'STOPPED' })
  expect(next.logged.filter(({ processes }) => processes !== undefined)).toEqual([])
})

test('SIGTERM: a command that does not end is killed when the instruction timeout is over, and the node exits 0', async () => {
  const directory = temporaryDirectory()
  const node = await up(directory)
  const commands = { post_stop: [{ cmd: 'echo $$ > hanging; sleep 1000', timeout: 600_000 }] }
  const { pipeline } = await node.call('POST', '/pipelines', settings(traffic(), commands, { instructionsTimeout: 4 }))
  await node.call('POST', `/pipelines/${pipeline.id}/start`)
  expect(await node.end('SIGTERM')).toBe(0)
  expect(isAlive(await pidIn(join(directory, 'files/hanging')))).toBe(false)
})

test.skipIf(process.getuid?.() !== 0)(
  'kill -9: what starts with the node starts again; no interface, socket file or process of the last life stands in its way (needs root)',
  async () => {
    const directory = temporaryDirectory()
    const socket = join(directory, 'in.sock')
    const pipeline = {
      tun: { tun: { interface_name: 'pslife0', ip: '10.99.7.1', netmask: '255.255.255.0', input: 'b', output: 'a' } },
      socket: { unix_socket: { server: { listen_address: socket }, input: 'a', output: 'b' } },
    }
    const commands = {
      on_setup: [{ cmd: 'rm -f child grandchild daemon bare' }],
      pre_start: [
        { cmd: 'sleep 1000 & echo $! > grandchild; echo $$ > child; wait', policy: 'RUN_IN_BACKGROUND' },
        { cmd: 'echo $$ > bare; exec env -i sleep 1000', policy: 'RUN_IN_BACKGROUND' },
        { cmd: "setsid sh -c 'echo $$ > daemon; exec sleep 1000' > /dev/null 2>&1 &" },
      ],
    }
    const numbers = () =>
      Promise.all(['child', 'grandchild', 'bare', 'daemon'].map((file) => pidIn(join(directory, 'files', file))))
    let node = await up(directory)
    const created = await node.call('POST', '/pipelines', settings(pipeline, commands, { startupPolicy: { auto: {} } }))
    const { id } = created.pipeline
    await node.call('POST', `/pipelines/${id}/start`)
    for (let life = 0; life < 3; life++) {
      const before = await numbers()
      expect(before.map(isAlive)).toEqual([true, true, true, true])
      const { pipeline: last } = await node.call('GET', `/pipelines/${id}`)
      expect(await node.end('SIGKILL')).toBe('SIGKILL')
      // What nobody has ended goes on, and the file of the socket stays.
      expect(before.map(isAlive)).toEqual([true, true, true, true])
      expect(existsSync(socket)).toBe(true)
      node = await up(directory)
      expect(before.map(isAlive)).toEqual([false, false, false, false])
      const { logged } = node
      await until(() => logged.some(({ level, processes }) => level === 'warn' && processes === 6))
      await until(async () => {
        const { currentRun } = (await node.call('GET', `/pipelines/${id}`)).pipeline
        return currentRun.id !== last.currentRun.id && currentRun.state === 'RUNNING'
      }, 'the pipeline runs again')
    }
    await node.call('POST', `/pipelines/${id}/stop`)
    expect(await node.end('SIGTERM')).toBe(0)
  },
  60_000,
)
