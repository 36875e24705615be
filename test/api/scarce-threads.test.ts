/** Starting runs on a node that the system gives no further thread, or no descriptors for one: what is told, and that it lives. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { afterEach, describe, expect, test } from 'vitest'
import { packageRoot } from '../../src/package-root.ts'
import { type Answer, settingsOf, traffic } from './running-node.ts'

const launcher = join(packageRoot(), 'bin/penstock.js')
/** Nobody else has processes as this user, so that the limit counts those of the node. */
const USER = 50_000 + (process.pid % 10_000)
const asUser = ['setpriv', `--reuid=${USER}`, `--regid=${USER}`, '--clear-groups']
const withFewThreads = [...asUser, 'prlimit', '--nproc=36']
const canLimit =
  process.getuid?.() === 0 &&
  spawnSync(withFewThreads[0] as string, [...withFewThreads.slice(1), process.execPath, launcher, 'version']).status ===
    0
const hasPrlimit = spawnSync('prlimit', ['--version']).status === 0
if (!canLimit) console.warn('SKIPPED: a user who may have few threads needs root, setpriv and prlimit')

const endings: (() => Promise<unknown>)[] = []
afterEach(() => Promise.all(endings.splice(0).map((end) => end())))

interface LimitedNode {
  readonly child: ChildProcess
  /** Of its log, with what is below each. */
  readonly lines: string[]
  call(path: string, body?: unknown): Promise<Answer>
}

/** A node that is run through a command that limits it. */
async function limitedNode(through: string[]): Promise<LimitedNode> {
  const directory = mkdtempSync('/tmp/penstock-test-')
  chmodSync(directory, 0o755)
  if (canLimit) chownSync(directory, USER, USER)
  const flags = ['up', '--data-dir', join(directory, 'data'), '--http', '127.0.0.1:0', '--grpc', 'none']
  const [program, ...args] = [...through, process.execPath, launcher, ...flags]
  const child = spawn(program as string, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  const gone = once(child, 'exit')
  endings.push(async () => {
    child.kill('SIGKILL')
    await gone
    rmSync(directory, { recursive: true, force: true })
  })
  const lines: string[] = []
  createInterface({ input: child.stderr }).on('line', (line) => lines.push(line))
  const [ready] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
  const [, http, id] = /^penstock ready http=(\S+) .*node=(\S+)/.exec(ready) as unknown as [string, string, string]
  const call = async (path: string, body: unknown = {}) => {
    const response = await fetch(`http://${http}/v1/nodes/${id}${path}`, { method: 'POST', body: JSON.stringify(body) })
    return { status: response.status, body: (await response.json()) as Answer['body'] }
  }
  return { child, lines, call }
}

/** Makes so many pipelines and starts them in turn: the ids of those that run, and what the others are told. */
async function startMany({ call }: LimitedNode, count: number) {
  const started: string[] = []
  const refused: Answer[] = []
  for (let i = 0; i < count; i++) {
    const { id } = (await call('/pipelines', settingsOf(traffic(), { name: `p${i}` }))).body.pipeline
    const answer = await call(`/pipelines/${id}/start`)
    if (answer.status === 200) started.push(id)
    else refused.push(answer)
  }
  return { started, refused }
}

describe.skipIf(!canLimit)('no further thread', () => {
  test('refuses the start with what to do; stops and later starts are as ever', async () => {
    const node = await limitedNode(withFewThreads)
    const { started, refused } = await startMany(node, 40)
    expect(started.length).toBeGreaterThan(0)
    expect(refused.length).toBeGreaterThan(0)
    for (const { status, body } of refused) {
      const why =
        /: no thread could be started for the run: .*EAGAIN.*; stop other runs, or raise .*ulimit -u, TasksMax=/
      expect([status, body.message]).toEqual([409, expect.stringMatching(why)])
    }
    spawnSync('prlimit', ['--pid', String(node.child.pid), '--nproc=1:'])
    const engine = { pipeline: traffic(), lifecycle_handler: { on_setup: [{ cmd: 'true' }] } }
    const made = await node.call('/pipelines', {
      name: 'command',
      jsonConfig: JSON.stringify({ engine_config: engine }),
    })
    const { body } = await node.call(`/pipelines/${made.body.pipeline.id}/start`)
    expect(body.message).toMatch(
      /could not be started: spawn \/bin\/sh EAGAIN; raise the limit of processes \(ulimit -u/,
    )
    for (const id of started) expect((await node.call(`/pipelines/${id}/stop`)).status).toBe(200)
    for (const id of started) expect((await node.call(`/pipelines/${id}/start`)).status).toBe(200)
    expect([node.child.exitCode, node.child.signalCode]).toEqual([null, null])
  }, 120_000)

  test('leaves nothing of what Node.js has made for the thread', () => {
    const script = fileURLToPath(new URL('../dataplane/refused-threads.mjs', import.meta.url))
    const [program, ...args] = [...asUser, process.execPath, '--expose-gc', script, '300']
    const { stdout, stderr } = spawnSync(program as string, args, { encoding: 'utf8' })
    expect(stderr).toBe('')
    const { error, bytes, listeners } = JSON.parse(stdout)
    expect(error).toMatch(/no thread could be started for the run: .*EAGAIN/)
    expect(listeners).toBe(0)
    // It was 12 kB, and three times that outside of the heap.
    expect(bytes).toBeLessThan(2_000)
  }, 120_000)
})

test('no descriptors for further threads: each start says what to do, and the log has a line for threads kept ready', async () => {
  const node = await limitedNode(['sh', '-c', 'ulimit -n 256 && exec "$@"', 'sh'])
  const { started, refused } = await startMany(node, 60)
  expect(started.length).toBeGreaterThan(0)
  expect(refused.length).toBeGreaterThan(0)
  for (const { status, body } of refused) {
    expect([status, body.message]).toEqual([409, expect.stringMatching(/EMFILE.*ulimit -n/)])
  }
  const told = node.lines.filter((line) => line.includes('a thread kept ready for the next runs died'))
  expect(told.length).toBeLessThan(4)
  // Each with what to do, and no stack.
  expect(told.filter((line) => !line.includes('ulimit -n'))).toEqual([])
  expect(node.lines.filter((line) => line.startsWith(' '))).toEqual([])
  expect([node.child.exitCode, node.child.signalCode]).toEqual([null, null])
}, 120_000)

test.skipIf(!hasPrlimit)(
  'no address space for threads: each start says what to do',
  async () => {
    // Enough for a run or two: a thread takes more than half a gigabyte for a moment, and packets a quarter.
    const node = await limitedNode(['prlimit', '--as=3500000000'])
    const { refused } = await startMany(node, 6)
    expect(refused.length).toBeGreaterThan(0)
    for (const { status, body } of refused) {
      expect([status, body.message]).toEqual([
        409,
        expect.stringMatching(/address space.*stop other runs, or .*ulimit -v/),
      ])
    }
    expect([node.child.exitCode, node.child.signalCode]).toEqual([null, null])
  },
  120_000,
)
