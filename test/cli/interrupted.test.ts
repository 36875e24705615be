/** Ctrl-C while a node that is stuck, or a name server, has not answered: every command ends at the first one. */
import { type ChildProcess, execFileSync, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, expect, test } from 'vitest'
import { packageRoot } from '../../src/package-root.ts'
import { until } from '../harness/waiting.ts'
import { plainEnvironment, type Result, scratch, start } from './cli.ts'

const RUN = '01234567-89ab-4cde-8f01-23456789abcd'

const servers: Server[] = []
const children: ChildProcess[] = []
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
  for (const server of servers.splice(0)) {
    server.close()
    server.closeAllConnections()
  }
})

/** A node that answers all until it is asked for what ends with `stuckAt`. */
async function stuckNode(stuckAt: string): Promise<{ url: string; isStuck: () => boolean }> {
  let isStuck = false
  const node = { id: 'self', name: 'self', metadata: { items: {} }, online: true, services: ['PIPELINES'] }
  const server = createServer(({ url = '' }, response) => {
    if (url.startsWith('/v1/streams/'))
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write(': ready\n\n')
    else if (url.endsWith(stuckAt)) isStuck = true
    else response.end(JSON.stringify({ nodeId: 'self', isAuthenticated: false, node }))
  })
  servers.push(server)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, isStuck: () => isStuck }
}

type Ended = Pick<Result, 'code' | 'signal'>
const KILLED: Ended = { code: null, signal: 'SIGINT' }
/** It follows something, which Ctrl-C is the end of. */
const DONE: Ended = { code: 0, signal: null }

test.each([
  [['pipelines', 'list'], '/pipelines', KILLED],
  [['pipelines', 'list', '--watch'], '/pipelines', DONE],
  [['pipelines', 'logs', 'first'], '/pipelines/first', KILLED],
  [['pipelines', 'logs', '--run', RUN, '--follow'], `/pipeline-runs/${RUN}`, KILLED],
  [['pipelines', 'telemetry', 'first'], '/pipelines/first', KILLED],
  [['pipelines', 'telemetry', '--run', RUN], `/pipeline-runs/${RUN}`, DONE],
  [['top'], '/nodes/self', KILLED],
  [['top', '--json'], '/pipelines', DONE],
])('%j, stuck at %s', async (args, stuckAt, outcome) => {
  const { url, isStuck } = await stuckNode(stuckAt)
  const child = start([...args, '--url', url])
  children.push(child)
  await until(isStuck, 'it asks for what is not answered')
  child.kill('SIGINT')
  await until(() => child.exitCode !== null || child.signalCode !== null, 'it ends')
  expect({ code: child.exitCode, signal: child.signalCode }).toEqual(outcome)
})

const NAMESPACES = ['-n', '-m', '--propagation', 'private']
const possible = spawnSync('unshare', [...NAMESPACES, 'ip', 'link', 'set', 'lo', 'up']).status === 0
if (!possible) console.warn('SKIPPED: the test of Ctrl-C while a name server says nothing needs root, unshare and ip')

const directory = scratch()
afterAll(() => directory.dispose())
const pipeline = {
  out: { udp: { output: 'back', remote_address: 'silent.example:1' } },
  end: { traffic_sink: { input: 'back' } },
}

test.skipIf(!possible).each([
  ['run', [directory.file('named.json', { engine_config: { pipeline } })], 'the pipeline did not start'],
  ['impair', ['--listen', '127.0.0.1:0', '--forward', 'silent.example:1', '--loss', '1%'], 'the link did not start'],
])('%s, whose name server says nothing', (name, args, what) => {
  const script = fileURLToPath(new URL('silent-name-server.mjs', import.meta.url))
  const command = [process.execPath, script, join(packageRoot(), 'bin/penstock.js'), name, ...args]
  const options = { env: plainEnvironment(), timeout: 50_000, encoding: 'utf8' } as const
  expect(JSON.parse(execFileSync('unshare', [...NAMESPACES, ...command], options))).toEqual({
    code: 130,
    signal: null,
    stderr: `penstock: interrupted: ${what}\n`,
  })
})
