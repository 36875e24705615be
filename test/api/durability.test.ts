/** What was answered survives kill -9: a real node in its own process, killed the moment it has answered, and started again. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test } from 'vitest'
import { settingsOf, temporaryDirectory, traffic } from './running-node.ts'

const children: ChildProcess[] = []
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
})

/** Starts a node process on a data directory, whose files may get `longestFile` bytes long; returns what it prints and how to call and kill it. */
async function spawnNode(directory: string, longestFile?: number) {
  const script = fileURLToPath(new URL('./node-child.mjs', import.meta.url))
  // In units of 512 bytes.
  const limit = longestFile === undefined ? '' : `ulimit -f ${longestFile / 512}; `
  const child = spawn('/bin/sh', ['-c', `${limit}exec "$0" "$@"`, process.execPath, script, directory], {
    stdio: ['ignore', 'pipe', longestFile === undefined ? 'inherit' : 'ignore'],
  })
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
    /** Messages of a run's log up to the first that begins so. */
    async log(runId: string, last: string) {
      const url = `http://${http}/v1/streams/nodes/${id}/pipeline-runs/${runId}/logs?options.lines=100`
      const [response] = (await once(get(url), 'response')) as [IncomingMessage]
      const seen: string[] = []
      for await (const line of createInterface({ input: response })) {
        if (!line.startsWith('data:')) continue
        for (const { message } of JSON.parse(line.slice(5)).messages) seen.push(message)
        if (seen.some((message) => message.startsWith(last))) break
      }
      response.destroy()
      return seen
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
  const log = await node.log(runId, 'ended: ')
  expect(log.at(-1)).toBe('ended: FAILED, node was restarted')
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
  expect(second.error).toContain(`${directory} is in use by another node`)
  await first.kill()
  expect((await spawnNode(directory)).id).toBe(first.id)
})

const REFUSED = `
  import { Store } from '${new URL('../../dist/src/store/store.js', import.meta.url)}'
  const store = new Store(process.argv[1])
  await store.hubId.put('a'.repeat(4 << 20)).catch(({ message }) => console.log(message))
  await store.close()
  console.log('closed')`

test('a store whose last change the disk has refused is closed all the same', () => {
  const script = [process.execPath, '--input-type=module', '-e', REFUSED, temporaryDirectory()]
  const { status, stdout } = spawnSync('/bin/sh', ['-c', 'ulimit -f 1024; exec "$0" "$@"', ...script], {
    encoding: 'utf8',
  })
  const lines = stdout.trimEnd().split('\n')
  expect([status, lines]).toEqual([0, [expect.stringContaining('did not take the change'), 'closed']])
})

const noStrace = spawnSync('strace', ['-qq', '-o', '/dev/null', 'true']).status !== 0
if (noStrace) console.warn('THE TESTS OF A DISK THAT FAILS ARE SKIPPED: strace cannot trace here')

const CHANGED = `
  import { Store } from '${new URL('../../dist/src/store/store.js', import.meta.url)}'
  const store = new Store(process.argv[1])
  const put = (id) => store.hubId.put(id).then(() => console.log(id + ' is stored'), ({ message }) => console.log(message))
  console.log('before: ' + store.hubId.get())
  for (const ids of process.argv.slice(2)) await Promise.all(ids.split('+').map(put))
  console.log('after: ' + store.hubId.get())
  await store.close()
  console.log('closed')`

/** Stores ids of hubs, at once those with + between them; `failing`: the system call of the first write that fails. Returns what was told. */
function storeIds(directory: string, ids: readonly string[], failing?: string) {
  const inject = ['-e', `trace=${failing}`, '-e', `inject=${failing}:error=EIO:when=${failing === 'pwrite64' ? 2 : 1}`]
  const tracer = failing === undefined ? [] : ['strace', '-f', '-qq', '-o', '/dev/null', ...inject]
  const node = ['timeout', '-s', 'KILL', '15', process.execPath, '--input-type=module', '-e', CHANGED, directory]
  const [command = '', ...words] = [...tracer, ...node, ...ids]
  // One thread writes, for which alone calls are counted.
  const env = { ...process.env, UV_THREADPOOL_SIZE: '1' }
  const { status, stdout } = spawnSync(command, words, { encoding: 'utf8', env })
  return [status, ...stdout.trimEnd().split('\n')]
}

test.skipIf(noStrace)('a change that the disk refuses as it is synced is not there, neither then nor later', () => {
  const directory = temporaryDirectory()
  expect(storeIds(directory, ['a'])).toEqual([0, 'before: undefined', 'a is stored', 'after: a', 'closed'])
  const refused = expect.stringContaining('did not take the change (Input/output error')
  expect(storeIds(directory, ['b'], 'fdatasync')).toEqual([0, 'before: a', refused, 'after: a', 'closed'])
  expect(storeIds(directory, ['c'])).toEqual([0, 'before: a', 'c is stored', 'after: c', 'closed'])
})

// LMDB writes the pages that hold the record, and once these are on disk the meta page.
test.skipIf(noStrace)('a meta page that the disk refuses: each change is answered, and the store closes', () => {
  const directory = temporaryDirectory()
  expect(storeIds(directory, ['a'])).toEqual([0, 'before: undefined', 'a is stored', 'after: a', 'closed'])
  const first = expect.stringContaining('did not take the change (Input/output error')
  const further = expect.stringContaining('a page that the database cannot be without): see whether its disk is full')
  const told = [0, 'before: a', first, further, further, further, 'after: a', 'closed']
  expect(storeIds(directory, ['b', 'c+d', 'e'], 'pwrite64')).toEqual(told)
  expect(storeIds(directory, ['f'])).toEqual([0, 'before: a', 'f is stored', 'after: f', 'closed'])
})

const OPENED = `
  import { Store } from '${new URL('../../dist/src/store/store.js', import.meta.url)}'
  try {
    new Store(process.argv[1])
  } catch ({ message }) {
    console.log(message)
  }`

test('a store that the disk does not let begin is named, with what to do', () => {
  const directory = temporaryDirectory()
  const script = [process.execPath, '--input-type=module', '-e', OPENED, directory]
  const { stdout } = spawnSync('/bin/sh', ['-c', 'ulimit -f 24; exec "$0" "$@"', ...script], { encoding: 'utf8' })
  expect(stdout).toContain(`${directory}/penstock.lmdb cannot be read and written (File too large`)
  expect(stdout).toContain('is its disk full, or failing (dmesg)?')
})

test('a disk that is full: the change is refused, the node lives, what was answered is there', async () => {
  const directory = temporaryDirectory()
  let node = await spawnNode(directory, 512 * 1024)
  const settings = settingsOf(traffic())
  settings.jsonConfig += ' '.repeat(50_000)
  const created: string[] = []
  let refused: { code?: number; message?: string } = {}
  while (refused.code === undefined && created.length < 100) {
    const answer = (await node.call('POST', '/pipelines', settings)) as { pipeline?: { id: string }; code?: number }
    if (answer.pipeline) created.push(answer.pipeline.id)
    else refused = answer
  }
  expect(refused).toMatchObject({ code: 8, message: expect.stringContaining('is its disk full?') })
  expect(created.length).toBeGreaterThan(2)
  const stored = async () => {
    const { pipelines } = (await node.call('GET', '/pipelines')) as unknown as { pipelines: { id: string }[] }
    return pipelines.map(({ id }) => id)
  }
  expect(new Set(await stored())).toEqual(new Set(created))
  // What runs goes on, and room that was made is used.
  const [first, second, third] = created as [string, string, string]
  expect(await node.call('POST', `/pipelines/${first}/start`)).toHaveProperty('runId')
  for (const id of [second, third]) expect(await node.call('DELETE', `/pipelines/${id}`)).toEqual({})
  expect(await node.call('POST', '/pipelines', settingsOf(traffic()))).toHaveProperty('pipeline')
  const kept = new Set(await stored())
  expect(kept.size).toBe(created.length - 1)
  await node.kill()
  node = await spawnNode(directory)
  expect(new Set(await stored())).toEqual(kept)
})
