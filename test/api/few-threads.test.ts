/**
 * A node with threads for few runs: who has them when one run takes the place of another; and twenty pipelines that are started, stopped, updated, deleted
 * and made again at once: each call is answered as it should be, every pipeline comes to rest, logs say why, and nothing is left of the runs.
 *
 * PENSTOCK_TEST_SEED repeats a round, as far as the order of answers allows; PENSTOCK_TEST_LONG, seconds, makes one of that length.
 */
import { randomInt } from 'node:crypto'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Random } from '../../src/dataplane/engine/random.ts'
import type { RunPool } from '../../src/dataplane/engine/run.ts'
import { native } from '../../src/dataplane/native/native.ts'
import { loadConfig } from '../../src/node/config.ts'
import { createLog } from '../../src/node/log.ts'
import { startNode } from '../../src/node/node.ts'
import { registry, rehearsal, testPool, watched } from '../dataplane/running.ts'
import { until } from '../harness/waiting.ts'
import { type Answer, RunningNode, temporaryDirectory, traffic } from './running-node.ts'

const SEED = Number(process.env.PENSTOCK_TEST_SEED ?? randomInt(2 ** 31))
const LONG_S = Number(process.env.PENSTOCK_TEST_LONG ?? 0)
const PIPELINES = 20
const THREADS = 4
/** Operations of the short round. */
const SHORT = 400

/** What the state of a pipeline, or of the threads, may have a caller told, by code. */
const EXPECTED = new Map([
  [4, 'DEADLINE_EXCEEDED'],
  [5, 'NOT_FOUND'],
  [8, 'RESOURCE_EXHAUSTED'],
  [9, 'FAILED_PRECONDITION'],
  [10, 'ABORTED'],
])

/** Why runs fail here. */
const CAUSES = [
  'refused to start',
  'refused to stop',
  'THROW_EXCEPTION',
  'all 4 threads of this process have runs: stop others first',
  'the caller went away',
  // A loaded machine takes its time for a thread.
  'was torn down',
]

/** A node whose runs share `pool`; its log has warnings and errors. */
async function nodeWith(pool: RunPool): Promise<RunningNode> {
  const { config } = loadConfig({ flags: { 'data-dir': temporaryDirectory(), http: '127.0.0.1:0', grpc: 'none' } })
  const lines: string[] = []
  const log = createLog({ level: 'warn', format: 'json', destination: { write: (line) => void lines.push(line) } })
  const chosen = new Map([['access.loopback', 'this test']] as const)
  return new RunningNode(await startNode(config, { log, pool, registry, chosen }), lines)
}

test('an update that has a run replaced keeps its thread: a start that comes meanwhile is refused, and has one once the update is over', async () => {
  const node = await nodeWith(testPool({ maximum: 2 }))
  try {
    const file = join(temporaryDirectory(), 'go')
    const settings = (more: object) => {
      const lifecycle_handler = { post_stop: [{ cmd: `until [ -e ${file} ]; do sleep 0.05; done` }] }
      const engine_config = { pipeline: { ...traffic(), ...more }, lifecycle_handler }
      return { name: 'replaced', jsonConfig: JSON.stringify({ engine_config }), instructionsTimeout: 30 }
    }
    const { id } = (await node.call('POST', '/pipelines', settings({}))).body.pipeline
    const [other, third] = [await node.create(traffic()), await node.create(traffic())]
    for (const each of [id, other]) await node.start(each)
    const start = async () => (await node.call('POST', `/pipelines/${third}/start`)).body
    const update = (more: object) =>
      node.call('PUT', `/pipelines/${id}`, { ...settings(more), defaultLoggingLevel: 'INFO', forceRestart: true })
    const full = { code: 8, message: 'all 2 threads of this process have runs: stop others first' }

    const updated = update({
      in: { udp_local: { address: '127.0.0.1:0', output: 'b' } },
      end: { traffic_sink: { input: 'b' } },
    })
    // Its thread is done with it soon, and what is run after it is not.
    await node.when(id, ({ currentRun }) => currentRun.state === 'STOPPING')
    for (let i = 0; i < 10; i++) expect(await start()).toMatchObject(full)
    writeFileSync(file, '')
    expect((await updated).body).toMatchObject({ pipeline: { started: true } })
    expect(await start()).toMatchObject(full)

    const failed = await update({
      ...{ in: { udp_local: { address: '127.0.0.1:0', output: 'b' } }, end: { traffic_sink: { input: 'c' } } },
      trigger: { test_trigger: { input: 'b', output: 'c', throw_at_start: true } },
    })
    expect(failed.body).toMatchObject({ code: 10, message: expect.stringContaining('refused to start') })
    expect(await start()).toMatchObject({ runId: expect.any(String) })
  } finally {
    await node.node.close()
  }
})

/** Of a pipeline that runs until it is stopped, ends by itself or by an error, does not start, or fails as it is stopped. */
function settings(random: Random) {
  const pick = <Value>(values: readonly Value[]) => values[Math.floor(random.float() * values.length)] as Value
  const delay = Math.floor(random.float() * 30)
  const trigger = (options: object) => ({ trigger: { test_trigger: { input: 'a', output: 'b', ...options } } })
  const way = pick([
    trigger({}),
    trigger({}),
    trigger({ throw_at_start: true }),
    trigger({ throw_at_stop: true }),
    { ...trigger({}), bomb: { bomb: { delay, poison: 'NONE' } } },
    { ...trigger({}), bomb: { bomb: { delay, poison: 'THROW_EXCEPTION' } } },
  ])
  const { source } = traffic(1 + random.float())
  // Which no run takes over.
  const seed = 200 + Math.floor(random.float() * 4)
  const throughput_traffic_source = { ...source.throughput_traffic_source, seed }
  const pipeline = { source: { throughput_traffic_source }, ...way, sink: { traffic_sink: { input: 'b' } } }
  const lifecycle_handler = { pre_start: [{ cmd: 'true' }], post_stop: [{ cmd: 'true' }] }
  const engine_config = random.float() < 0.2 ? { pipeline, lifecycle_handler } : { pipeline }
  const restartPolicy = pick([
    { never: {} },
    { never: {} },
    { onFailure: { maxRestarts: 2 } },
    { always: { maxRestarts: 2 } },
  ])
  return { name: 'churned', jsonConfig: JSON.stringify({ engine_config }), instructionsTimeout: 60, restartPolicy }
}

test(
  'twenty pipelines at once come to rest whatever is done to them, their logs say why, and nothing is left',
  async () => {
    const threads = () => readdirSync('/proc/self/task').length
    const before = { descriptors: native.openDescriptors(), threads: threads() }
    const { pool, active } = watched(testPool({ maximum: THREADS, warm: 1, rehearsal }))
    const node = await nodeWith(pool)
    const answers = new Map<string, number>()
    const count = (answer: string) => answers.set(answer, (answers.get(answer) ?? 0) + 1)
    const unexpected: unknown[] = []
    const call = async (method: string, path: string, body?: object, signal: AbortSignal | null = null) => {
      const headers = { 'content-type': 'application/json' }
      const sent = body === undefined ? {} : { body: JSON.stringify(body), headers }
      const response = await fetch(node.url + path, { method, signal, ...sent })
      const answer: Answer = { status: response.status, body: await response.json() }
      const code = answer.status === 200 ? 'OK' : EXPECTED.get(answer.body.code)
      if (code === undefined) unexpected.push({ method, path, ...answer })
      count(`${path.split('/')[3] ?? method} ${code}`)
      return answer
    }
    const seen = () =>
      `seed ${SEED}, ${JSON.stringify(Object.fromEntries(answers))}, runs ${JSON.stringify([...active.keys()])}`
    const create = async (random: Random): Promise<string> =>
      (await call('POST', '/pipelines', settings(random))).body.pipeline.id
    const random = new Random(SEED)
    const ids: string[] = []
    while (ids.length < PIPELINES) ids.push(await create(random))
    let left = SHORT
    const end = performance.now() + LONG_S * 1_000
    const goesOn = () => (LONG_S > 0 ? performance.now() < end : left-- > 0)

    const one = async (random: Random): Promise<void> => {
      const place = Math.floor(random.float() * PIPELINES)
      const id = ids[place] as string
      const dice = random.float()
      if (dice < 0.4) await call('POST', `/pipelines/${id}/start`)
      else if (dice < 0.5) {
        // Who asked may go away before the answer.
        const patience = AbortSignal.timeout(Math.floor(random.float() * 60))
        await call('POST', `/pipelines/${id}/start`, undefined, patience).catch(() => count('gone'))
      } else if (dice < 0.75) await call('POST', `/pipelines/${id}/stop`)
      else if (dice < 0.92) {
        const forceRestart = random.float() < 0.5
        await call('PUT', `/pipelines/${id}`, { ...settings(random), defaultLoggingLevel: 'INFO', forceRestart })
      } else {
        const next = await create(random)
        const isReplaced = ids[place] !== id
        if (!isReplaced) ids[place] = next
        // Others may be in the midst of something with it.
        await call('DELETE', `/pipelines/${isReplaced ? next : id}`)
      }
    }
    const client = async (index: number): Promise<void> => {
      const random = new Random(SEED + index * 7919)
      while (goesOn()) await one(random)
    }
    await Promise.all(Array.from({ length: PIPELINES }, (_, index) => client(index + 1)))
    console.info(`churn: PENSTOCK_TEST_SEED=${SEED}, ${JSON.stringify(Object.fromEntries(answers))}`)
    expect(unexpected, seen()).toEqual([])
    expect(
      [answers.get('start OK') ?? 0, answers.get('start RESOURCE_EXHAUSTED') ?? 0].every((n) => n > 0),
      seen(),
    ).toBe(true)

    for (const id of ids) await call('POST', `/pipelines/${id}/stop`)
    for (const id of ids) {
      const isAtRest = ({ started, currentRun }: Answer['body']) =>
        !started && ['ENDED', undefined].includes(currentRun?.state)
      await until(
        async () => isAtRest(await node.get(id)),
        () => `${id} comes to rest, ${seen()}`,
      )
    }
    expect([...active.keys()], seen()).toEqual([])
    for (const { id, currentRun } of (await call('GET', '/pipelines')).body.pipelines) {
      expect(ids, seen()).toContain(id)
      if (currentRun === undefined) continue
      const { outcome, error } = currentRun
      if (outcome === 'FAILED')
        expect(
          CAUSES.filter((cause) => error.includes(cause)),
          `${error}, ${seen()}`,
        ).toHaveLength(1)
      const log = await node.follow(`/pipeline-runs/${currentRun.id}/logs?options.lines=1000`)
      let last = ''
      while (!last.startsWith('ended: ')) last = (await log.next()).messages.at(-1).message
      log.close()
      expect(last, seen()).toBe(`ended: ${outcome}${error === undefined ? '' : `, ${error}`}`)
    }
    for (const { msg, error } of node.logged.map((line) => JSON.parse(line))) {
      expect(msg, seen()).toMatch(/^pipeline (failed|will be started again|is not started again)/)
      if (msg === 'pipeline failed')
        expect(
          CAUSES.some((cause) => error.includes(cause)),
          `${error}, ${seen()}`,
        ).toBe(true)
    }

    // As many as there are threads for have one, and no more.
    const steady = [] as string[]
    while (steady.length <= THREADS) steady.push(await node.create(traffic()))
    for (const [i, id] of steady.entries()) {
      expect((await call('POST', `/pipelines/${id}/start`)).status, seen()).toBe(i < THREADS ? 200 : 429)
    }
    await node.node.close()
    await until(
      () => threads() <= before.threads,
      () => `${threads()} threads, ${before.threads} before, ${seen()}`,
    )
    await until(
      () => native.openDescriptors() <= before.descriptors,
      () => `${native.openDescriptors()} descriptors, ${before.descriptors} before, ${seen()}`,
    )
  },
  (LONG_S + 120) * 1_000,
)
