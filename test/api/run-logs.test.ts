/** The logs of runs on a real node: their files, what outlives the node, and the filters of a configuration. */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { checkPipelineConfig } from '../../src/dataplane/engine/check.ts'
import { registry } from '../dataplane/running.ts'
import { until } from '../harness/waiting.ts'
import { type EventStream, type RunningNode, runNode, temporaryDirectory, traffic } from './running-node.ts'

interface Message {
  level: string
  component: string
  message: string
  fields: Record<string, string>
}

let node: RunningNode | undefined
afterEach(async () => {
  await node?.node.close()
  node = undefined
})

const chatter = (lines: number) => ({ chatter: { test_chatter: { lines } }, ...traffic() })

async function created(on: RunningNode, pipeline: unknown, log_filters: unknown[] = []): Promise<string> {
  const jsonConfig = JSON.stringify({ engine_config: { pipeline, log_filters } })
  const { status, body } = await on.call('POST', '/pipelines', { name: 'test', jsonConfig })
  if (status !== 200) throw Object.assign(new Error(body.message), { problems: body.details ?? body.problems })
  return body.pipeline.id
}

async function stopped(on: RunningNode, id: string): Promise<void> {
  await on.call('POST', `/pipelines/${id}/stop`)
  await on.when(id, ({ started }) => !started)
}

/** Messages of a stream up to the one that `isLast` says. */
async function read(stream: EventStream, isLast: (message: Message) => boolean): Promise<Message[]> {
  const seen: Message[] = []
  for (;;) {
    for (const message of (await stream.next()).messages as Message[]) {
      seen.push(message)
      if (isLast(message)) {
        stream.close()
        return seen
      }
    }
  }
}
const isEnd = ({ message }: Message) => message.startsWith('ended: ')
const logOf = async (on: RunningNode, runId: string, lines = 1_000_000) =>
  await read(await on.follow(`/pipeline-runs/${runId}/logs?options.lines=${lines}`), isEnd)
const said = (messages: readonly Message[]) =>
  messages.filter(({ component }) => component === 'chatter').map(({ message }) => Number(message))

test('past lines and new ones meet without gap or repetition while a component talks fast', async () => {
  node = await runNode(temporaryDirectory(), { 'run-log-size': '64MiB' })
  const id = await created(node, chatter(5))
  const runId = await node.start(id)
  // Far more than is kept in memory.
  const early = await node.follow(`/pipeline-runs/${runId}/logs?options.lines=1000000`)
  await read(early, ({ component, message }) => component === 'chatter' && Number(message) > 4_000)
  for (const lines of [10, 3_000, 1_000_000]) {
    const stream = await node.follow(`/pipeline-runs/${runId}/logs?options.lines=${lines}`)
    let first: number | undefined
    const seen = said(
      await read(stream, ({ component, message }) => {
        if (component === 'chatter') first ??= Number(message)
        return first !== undefined && Number(message) > first + (lines % 990_000) + 2_000
      }),
    )
    expect(seen).toEqual(Array.from(seen, (_, i) => (seen[0] as number) + i))
    if (lines === 1_000_000) expect(seen[0]).toBe(0)
  }
  await stopped(node, id)
  const all = said(await logOf(node, runId))
  expect(all).toEqual(all.map((_, i) => i))
})

test('logs outlive the node: those of the last runs, whole; older ones and those of deleted pipelines go from the disk', async () => {
  const directory = temporaryDirectory()
  node = await runNode(directory, { 'run-logs': '2' })
  const id = await created(node, traffic())
  const other = await created(node, traffic())
  const runs: string[] = []
  for (let i = 0; i < 3; i++) {
    runs.push(await node.start(id))
    await stopped(node, id)
  }
  const gone = await node.start(other)
  await stopped(node, other)
  const before = await logOf(node, runs[1] as string)
  const following = await node.follow(`/pipeline-runs/${gone}/logs`)
  await node.call('DELETE', `/pipelines/${other}`)
  await expect(following.next()).rejects.toMatchObject({ code: 5, message: expect.stringContaining('was deleted') })
  await node.node.close()
  expect(readdirSync(join(directory, 'logs')).sort()).toEqual(
    runs
      .slice(1)
      .map((run) => `${run}.jsonl`)
      .sort(),
  )
  node = await runNode(directory, { 'run-logs': '2' })
  expect(await logOf(node, runs[1] as string)).toEqual(before)
  expect((await logOf(node, runs[2] as string, 1)).map(({ message }) => message)).toEqual(['ended: STOPPED'])
  await expect(node.follow(`/pipeline-runs/${runs[0]}/logs`)).rejects.toMatchObject({ code: 5 })
})

test('logs that cannot be read keep the node neither from starting nor from deleting', async () => {
  const directory = temporaryDirectory()
  node = await runNode(directory)
  const id = await created(node, traffic())
  const run = await node.start(id)
  await stopped(node, id)
  await node.node.close()
  const path = join(directory, 'logs', `${run}.jsonl`)
  rmSync(path)
  mkdirSync(path)
  node = await runNode(directory)
  await expect(node.follow(`/pipeline-runs/${run}/logs?options.lines=10`)).rejects.toMatchObject({ code: 13 })
  const next = await node.start(id)
  await stopped(node, id)
  expect((await logOf(node, next)).at(-1)?.message).toBe('ended: STOPPED')
  expect((await node.call('DELETE', `/pipelines/${id}`)).status).toBe(200)
})

test('filters: more of one component, nothing of another, a file, and the end of the run', async () => {
  const directory = temporaryDirectory()
  node = await runNode(directory)
  const id = await created(node, chatter(1), [
    {
      level: 'INFO',
      actions: { actions: ['file', 'discard'] },
      path_filter: 'chat*',
      file: 'talk.log',
      mode: 'TRUNCATE',
    },
  ])
  const runId = await node.start(id)
  const file = join(directory, 'files', 'talk.log')
  await until(() => existsSync(file) && readFileSync(file, 'utf8').split('\n').length > 50, 'lines are in the file')
  const update = (log_filters: unknown[]) =>
    node?.call('PUT', `/pipelines/${id}`, {
      name: 'test',
      jsonConfig: JSON.stringify({ engine_config: { pipeline: chatter(1), log_filters } }),
      instructionsTimeout: 5,
      defaultLoggingLevel: 'INFO',
    })
  // A change of filters needs no other run.
  const answer = await update([{ level: 'INFO', actions: { actions: ['log', 'stop'] }, path_filter: 'chatter' }])
  expect(answer).toMatchObject({ status: 200, body: { pipeline: { currentRun: { id: runId } } } })
  const pipeline = await node.when(id, ({ started }) => !started)
  expect(pipeline.currentRun).toMatchObject({ id: runId, outcome: 'STOPPED' })
  const log = await logOf(node, runId)
  // Lines are on their way to the file when the end is told; each ends with a line feed.
  const inFile = () => readFileSync(file, 'utf8').split('\n').slice(0, -1)
  await until(() => inFile().length >= (said(log)[0] as number), 'all lines before the change are in the file')
  const numbers = inFile().map((text) => Number(JSON.parse(text).message))
  expect(numbers).toEqual(numbers.map((_, i) => i))
  // What went to the file before is not in the log; what came after the change is.
  expect(said(log)[0]).toBe(numbers.length)
  expect(log.find(({ message }) => message.startsWith('stopped by a log filter'))).toMatchObject({
    level: 'STATE',
    message: `stopped by a log filter, for this line of chatter: INFO ${numbers.length}`,
  })
})

test.each([
  [{ level: 'LOUD', actions: { actions: ['log'] } }, '/engine_config/log_filters/0/level'],
  [{ level: 'INFO' }, '/engine_config/log_filters/0/actions'],
  [{ level: 'INFO', actions: { actions: [] } }, '/engine_config/log_filters/0/actions/actions'],
  [{ level: 'INFO', actions: { actions: ['mail'] } }, '/engine_config/log_filters/0/actions/actions/0'],
  [{ level: 'INFO', actions: { actions: ['file'] } }, '/engine_config/log_filters/0/file'],
  [{ level: 'INFO', actions: { actions: ['log'] }, file: 'x' }, '/engine_config/log_filters/0/file'],
  [{ level: 'INFO', actions: { actions: ['log'] }, path: 'x' }, '/engine_config/log_filters/0/path'],
] as const)('a filter that is wrong is refused with its place: %j', (filter, pointer) => {
  const jsonConfig = JSON.stringify({ engine_config: { pipeline: traffic(), log_filters: [filter] } })
  expect(checkPipelineConfig(jsonConfig, registry).problems.map((problem) => problem.pointer)).toContain(pointer)
})
