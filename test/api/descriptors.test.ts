/** Starting runs on a node that has hardly a file descriptor left: what its REST API answers, and that it recovers. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { until } from '../harness/waiting.ts'
import { type Answer, settingsOf, temporaryDirectory, traffic } from './running-node.ts'

test('starts fail with a cause while descriptors are used up, and succeed once they are back', async () => {
  const script = fileURLToPath(new URL('descriptors-child.mjs', import.meta.url))
  const limited = ['-c', 'ulimit -n 256 && exec "$@"', 'sh', process.execPath, script, temporaryDirectory()]
  const child = spawn('sh', limited, { stdio: ['pipe', 'pipe', 'inherit'] })
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
  const next = async () => JSON.parse((await lines.next()).value)
  const left = async (count: number): Promise<number> => {
    child.stdin.write(`${count}\n`)
    return (await next()).held
  }
  // One connection, made while there were descriptors for it.
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  try {
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
    const call = async (method: string, path: string, body?: unknown): Promise<Answer> => {
      const { status, text } = await ask(method, `/v1/nodes/${id}${path}`, body)
      return { status, body: JSON.parse(text) }
    }
    const pipelines: string[] = []
    for (let i = 0; i < 6; i++) {
      const { body } = await call('POST', '/pipelines', settingsOf(traffic(), { name: `p${i}` }))
      pipelines.push(body.pipeline.id)
    }
    // Once no thread is being made ready, only the node's own: the lock of its data directory.
    const isIdle = async () => (await left(200)) === 1
    await until(isIdle)
    // What is read from the system for a sample needs descriptors too: the sample comes without it.
    expect((await call('POST', `/pipelines/${pipelines[0]}/start`)).status).toBe(200)
    await left(0)
    const metrics = await ask('GET', '/metrics')
    expect([metrics.status, metrics.text]).toEqual([200, expect.stringContaining('resident_memory')])
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
          expect([status, body.message]).toEqual([409, expect.stringMatching(/EMFILE/)])
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
  } finally {
    agent.destroy()
    child.kill('SIGKILL')
    await once(child, 'close')
  }
}, 120_000)
