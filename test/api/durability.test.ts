/** What was answered survives kill -9: a real node in its own process, killed the moment it has answered, and started again. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test } from 'vitest'
import { settingsOf, temporaryDirectory, traffic } from './running-node.ts'

const children: ChildProcess[] = []
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
})

/** Starts a node process on a data directory; returns what it prints and how to call and kill it. */
async function spawnNode(directory: string) {
  const script = fileURLToPath(new URL('./node-child.mjs', import.meta.url))
  const child = spawn(process.execPath, [script, directory], { stdio: ['ignore', 'pipe', 'inherit'] })
  children.push(child)
  const [line] = await once(createInterface({ input: child.stdout }), 'line')
  const { http, id, error } = JSON.parse(line) as { http: string; id: string; error?: string }
  return {
    id,
    error,
    async call(method: string, path: string, body?: unknown) {
      const url = `http://${http}/v1/nodes/${id}${path}`
      const response = await fetch(url, body === undefined ? { method } : { method, body: JSON.stringify(body) })
      return response.json() as Promise<Record<string, never>>
    },
    async kill() {
      const gone = once(child, 'exit')
      child.kill('SIGKILL')
      await gone
    },
  }
}

test('pipelines that were created, changed and deleted', async () => {
  const directory = temporaryDirectory()
  const kept = new Map<string, unknown>()
  let identity: string | undefined
  for (let round = 0; round < 4; round++) {
    const node = await spawnNode(directory)
    identity ??= node.id
    expect(node.id).toBe(identity)
    const { pipelines } = (await node.call('GET', '/pipelines')) as unknown as { pipelines: { id: string }[] }
    expect(new Map(pipelines.map((pipeline) => [pipeline.id, pipeline]))).toEqual(kept)
    let last: { pipeline: { id: string } }
    if (round === 1) {
      const [id] = [...kept.keys()]
      last = (await node.call(
        'PUT',
        `/pipelines/${id}`,
        settingsOf(traffic(2), { name: 'changed', instructionsTimeout: 1 }),
      )) as never
    } else {
      last = (await node.call('POST', '/pipelines', settingsOf(traffic(), { name: `round ${round}` }))) as never
    }
    if (round === 2) {
      const [id] = [...kept.keys()] as [string]
      kept.set(last.pipeline.id, last.pipeline)
      await node.call('DELETE', `/pipelines/${id}`)
      kept.delete(id)
    } else kept.set(last.pipeline.id, last.pipeline)
    await node.kill()
  }
  expect(kept.size).toBe(2)
})

test('runs: cut off, they end FAILED; their pipelines start again if they start with the node', async () => {
  const directory = temporaryDirectory()
  let node = await spawnNode(directory)
  const create = async (settings: Record<string, unknown>) => {
    const { pipeline } = (await node.call('POST', '/pipelines', settingsOf(traffic(), settings))) as never as {
      pipeline: { id: string }
    }
    return pipeline.id
  }
  const manual = await create({ startupPolicy: { manual: {} } })
  const auto = await create({ startupPolicy: { auto: {} } })
  const { runId } = (await node.call('POST', `/pipelines/${manual}/start`)) as never as { runId: string }
  const { runId: autoRun } = (await node.call('POST', `/pipelines/${auto}/start`)) as never as { runId: string }
  await node.kill()
  node = await spawnNode(directory)
  expect(await node.call('GET', `/pipelines/${manual}`)).toMatchObject({
    pipeline: {
      started: false,
      currentRun: { id: runId, state: 'ENDED', outcome: 'FAILED', error: 'node was restarted' },
    },
  })
  const { pipeline } = (await node.call('GET', `/pipeline-runs/${autoRun}`)) as never as {
    pipeline: { id: string; started: boolean; currentRun: { id: string } }
  }
  expect(pipeline).toMatchObject({ id: auto, started: true })
  expect(pipeline.currentRun.id).not.toBe(autoRun)
})

test('two nodes never share a data directory; a killed one gives it free', async () => {
  const directory = temporaryDirectory()
  const first = await spawnNode(directory)
  const second = await spawnNode(directory)
  expect(second.error).toContain(`${directory} is in use by process`)
  await first.kill()
  expect((await spawnNode(directory)).id).toBe(first.id)
})
