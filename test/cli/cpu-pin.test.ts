/** CPU threads of a node that may use only some of the machine's: cpuPin counts as the kernel does. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, describe, expect, test } from 'vitest'
import { native } from '../../src/dataplane/native/native.ts'
import { packageRoot } from '../../src/package-root.ts'
import { settingsOf, traffic } from '../api/running-node.ts'
import { lineOf, lossy, scratch } from './cli.ts'

const directory = scratch()
afterAll(() => directory.dispose())

const cpus = native.affinity()
const [outside, inside] = [cpus[0] as number, cpus.at(-1) as number]
const possible = cpus.length > 1 && spawnSync('taskset', ['-c', String(inside), 'true']).status === 0
if (!possible) console.warn('SKIPPED: pinning within a set of CPUs needs two of them and taskset')

interface Body {
  message: string
  pipeline: { id: string; currentRun: { cpu: number } }
}

/** Runs `penstock …args` on the last CPU only. */
const confined = (...args: string[]) =>
  spawn('taskset', ['-c', String(inside), process.execPath, join(packageRoot(), 'bin/penstock.js'), ...args])

describe.skipIf(!possible)('on the last CPU thread only', () => {
  test('a pipeline is pinned to it by its number; another is refused with those that there are', async () => {
    const flags = ['--data-dir', directory.path, '--http', '127.0.0.1:0', '--grpc', 'none']
    const child = confined('up', ...flags)
    const gone = once(child, 'exit')
    try {
      const [, http, id] = await lineOf(child, /^penstock ready http=(\S+) grpc=none node=(\S+)$/)
      const url = `http://${http}/v1/nodes/${id}/pipelines`
      const post = async (path: string, body?: unknown) => {
        const response = await fetch(`${url}${path}`, {
          method: 'POST',
          ...(body ? { body: JSON.stringify(body) } : {}),
        })
        return { status: response.status, body: (await response.json()) as Body }
      }
      const refused = await post('', settingsOf(traffic(), { cpuPin: outside }))
      expect(refused.status).toBe(400)
      expect(refused.body.message).toBe(
        `/cpuPin: CPU thread ${outside} cannot be used here: this process may use ${inside}`,
      )
      for (const settings of [{ cpuPin: inside }, {}]) {
        const { body } = await post('', settingsOf(traffic(), settings))
        expect(await post(`/${body.pipeline.id}/start`)).toMatchObject({ status: 200 })
        const { pipeline } = (await (await fetch(`${url}/${body.pipeline.id}`)).json()) as Body
        expect(pipeline.currentRun.cpu).toBe(inside)
      }
      const tasks = `/proc/${child.pid}/task`
      for (const task of readdirSync(tasks)) {
        expect(readFileSync(join(tasks, task, 'status'), 'utf8')).toMatch(
          new RegExp(`^Cpus_allowed_list:\\s${inside}$`, 'm'),
        )
      }
    } finally {
      child.kill('SIGTERM')
      await gone
    }
  })

  test('run --cpu means the same', async () => {
    const file = directory.file('lossy.json', lossy)
    const outcomes = []
    for (const cpu of [outside, inside]) {
      const child = confined('run', file, '--cpu', String(cpu), '--duration', '100ms', '-o', 'json')
      const [stderr, [code]] = await Promise.all([text(child.stderr), once(child, 'close'), text(child.stdout)])
      outcomes.push({ code, stderr })
    }
    expect(outcomes[0]).toMatchObject({ code: 1, stderr: expect.stringContaining(`this process may use ${inside}`) })
    expect(outcomes[1]).toMatchObject({ code: 0 })
  })
})
