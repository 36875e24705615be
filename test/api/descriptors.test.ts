/** Starting runs on a node that has hardly a file descriptor left, and their commands: what its REST API answers, and that it recovers. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs'
import { Agent, request } from 'node:http'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test } from 'vitest'
import { until } from '../harness/waiting.ts'
import { type Answer, EventStream, settingsOf, temporaryDirectory, traffic } from './running-node.ts'

const endings: (() => Promise<unknown>)[] = []
afterEach(() => Promise.all(endings.splice(0).map((end) => end())))

/** A node in a process of its own that can be left with few descriptors; `more`: what else its script takes. */
async function limitedNode(...more: string[]) {
  const directory = temporaryDirectory()
  const script = fileURLToPath(new URL('descriptors-child.mjs', import.meta.url))
  const limited = ['-c', 'ulimit -n 256 && exec "$@"', 'sh', process.execPath, script, directory, ...more]
  const child = spawn('sh', limited, { stdio: ['pipe', 'pipe', 'inherit'] })
  // One connection, made while there were descriptors for it.
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  endings.push(async () => {
    agent.destroy()
    if (child.exitCode !== null || child.signalCode !== null) return
    const gone = once(child, 'exit')
    child.kill('SIGKILL')
    await gone
  })
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
  const next = async () => JSON.parse((await lines.next()).value)
  const { http, id } = await next()
  const ask = (method: string, path: string, body?: unknown) =>
    new Promise<{ status: number; text: string }>((resolve, reject) => {
      const headers = { 'content-type': 'application/json' }
      const asked = request(`http://${http}${path}`, { method, agent, headers }, async (response) => {
        let text = ''
        for await (const part of response) text += part
        resolve({ status: response.statusCode as number, text })
      })
      asked.on('error', reject).end(body === undefined ? undefined : JSON.stringify(body))
    })
  return {
    child,
    directory,
    streams: `http://${http}/v1/streams/nodes/${id}`,
    ask,
    async call(method: string, path: string, body?: unknown): Promise<Answer> {
      const { status, text } = await ask(method, `/v1/nodes/${id}${path}`, body)
      return { status, body: JSON.parse(text) }
    },
    /** Leaves it that many; how many the addon holds. */
    async left(count: number): Promise<number> {
      child.stdin.write(`${count}\n`)
      return (await next()).held
    },
  }
}

test('starts fail with a cause while descriptors are used up, and succeed once they are back', async () => {
  const { child, ask, call, left } = await limitedNode()
  const pipelines: string[] = []
  for (let i = 0; i < 6; i++) {
    const { body } = await call('POST', '/pipelines', settingsOf(traffic(), { name: `p${i}` }))
    pipelines.push(body.pipeline.id)
  }
  // Once no thread is being made ready, only the node's own: the lock of its data directory.
  const isIdle = async () => (await left(200)) === 1
  await until(isIdle)
  // What is read from the system for a sample needs none.
  expect((await call('POST', `/pipelines/${pipelines[0]}/start`)).status).toBe(200)
  let metrics = { status: 0, text: '' }
  const figure = (name: string) => Number(new RegExp(`^${name} (.*)$`, 'm').exec(metrics.text)?.[1])
  // A thread that is being made ready meanwhile may die for want of descriptors and give some back: they are taken again.
  await until(async () => {
    await left(0)
    metrics = await ask('GET', '/metrics')
    return metrics.status !== 200 || figure('process_open_fds') === 256
  })
  expect(metrics.status).toBe(200)
  expect(figure('process_resident_memory_bytes')).toBeGreaterThan(1e7)
  expect(figure('process_threads')).toBeGreaterThan(1)
  await call('POST', `/pipelines/${pipelines[0]}/stop`)
  let failed = 0
  // Too few for the run's event, for its poller, for a new thread, for what a new thread loads, and enough for some.
  for (const count of [0, 0, 1, 2, 3, 5, 8, 12, 16, 24]) {
    await left(count)
    const started: string[] = []
    for (const pipeline of pipelines) {
      const { status, body } = await call('POST', `/pipelines/${pipeline}/start`)
      if (status === 200) started.push(pipeline)
      else {
        failed++
        expect([status, body.message]).toEqual([409, expect.stringMatching(/EMFILE.*ulimit -n/)])
      }
    }
    for (const pipeline of started) await call('POST', `/pipelines/${pipeline}/stop`)
  }
  expect(failed).toBeGreaterThanOrEqual(12)
  await left(200)
  for (const pipeline of pipelines) {
    const { status, body } = await call('POST', `/pipelines/${pipeline}/start`)
    expect([status, body.message]).toEqual([200, undefined])
  }
  for (const pipeline of pipelines) await call('POST', `/pipelines/${pipeline}/stop`)
  // A stop is answered once it is asked for; the run's thread ends a little later.
  await until(isIdle)
  expect(child.exitCode).toBeNull()
}, 120_000)

test('a command that cannot be started for want of descriptors: its policy says what follows, nothing stays open, and the node lives', async () => {
  const { child, directory, streams, call, left } = await limitedNode('{}', '0')
  const commands = [
    { cmd: 'until [ -e go ]; do sleep 0.01; done' },
    { cmd: 'echo two', policy: 'CONTINUE_ON_ERROR' },
    { cmd: 'echo three', policy: 'RUN_IN_BACKGROUND' },
    { cmd: 'echo four', policy: 'STOP_ON_ERROR' },
    { cmd: 'echo five' },
  ]
  const jsonConfig = JSON.stringify({
    engine_config: { pipeline: traffic(), lifecycle_handler: { post_start: commands } },
  })
  const { body } = await call('POST', '/pipelines', { name: 'test', jsonConfig })
  const { id } = body.pipeline
  const { runId } = (await call('POST', `/pipelines/${id}/start`)).body
  await left(0)
  writeFileSync(join(directory, 'files/go'), '')
  await until(async () => (await call('GET', `/pipelines/${id}`)).body.pipeline.currentRun.state === 'ENDED')
  await left(200)
  const { currentRun } = (await call('GET', `/pipelines/${id}`)).body.pipeline
  const why = 'could not be started: spawn /bin/sh EMFILE'
  expect(currentRun).toMatchObject({ outcome: 'FAILED', error: `post_start command 4 (echo four) ${why}` })
  const log = new EventStream()
  // A node that has read a moment ago how many it has left may still refuse a newcomer.
  const opened = () => log.open(`${streams}/pipeline-runs/${runId}/logs?options.lines=100`)
  await until(() =>
    opened().then(
      () => true,
      () => false,
    ),
  )
  const { messages } = (await log.next()) as { messages: { level: string; message: string }[] }
  log.close()
  const told = messages.filter(({ level }) => level === 'WARN' || level === 'ERROR')
  expect(told.map(({ level, message }) => `${level} ${message}`)).toEqual([
    `WARN post_start command 2 (echo two) ${why}`,
    `WARN post_start command 3 (echo three) ${why}`,
    `ERROR post_start command 4 (echo four) ${why}`,
    expect.stringMatching(/^WARN processes that commands have left may run on: they could not be looked for: EMFILE/),
  ])

  // With some of the descriptors that a command takes: none of them stays open.
  const sockets = () => {
    const fds = `/proc/${child.pid}/fd`
    const isSocket = (fd: string) => {
      try {
        return readlinkSync(join(fds, fd)).startsWith('socket:')
      } catch {
        // Closed meanwhile.
        return false
      }
    }
    return readdirSync(fds).filter(isSocket).length
  }
  const before = sockets()
  rmSync(join(directory, 'files/go'))
  expect((await call('POST', `/pipelines/${id}/start`)).status).toBe(200)
  // And two that the command which is on gives back.
  await left(3)
  writeFileSync(join(directory, 'files/go'), '')
  await until(async () => (await call('GET', `/pipelines/${id}`)).body.pipeline.currentRun.state === 'ENDED')
  await left(200)
  const again = (await call('GET', `/pipelines/${id}`)).body.pipeline.currentRun
  expect(again).toMatchObject({ outcome: 'FAILED', error: `post_start command 4 (echo four) ${why}` })
  // The follower's of above may still have been there.
  await until(() => sockets() <= before, `there are ${before} sockets again`)
  expect(child.exitCode).toBeNull()
}, 30_000)
