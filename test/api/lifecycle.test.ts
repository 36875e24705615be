/** The commands around a run, on a real node: when they run, with what, what their failure means, and what is left of them. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { until } from '../harness/waiting.ts'
import { type RunningNode, runNode, temporaryDirectory, traffic } from './running-node.ts'

const directory = temporaryDirectory()
const files = join(directory, 'files')
let node: RunningNode
beforeAll(async () => {
  node = await runNode(directory)
})
afterAll(() => node.node.close())

type Hook = 'on_setup' | 'pre_start' | 'post_start' | 'pre_stop' | 'post_stop'
type Commands = Partial<Record<Hook, object[]>>

/** Create settings of a pipeline with these commands around its runs. */
const around = (
  lifecycle_handler: Commands & { env?: object },
  settings: object = {},
  pipeline: object = traffic(),
) => ({
  name: 'test',
  jsonConfig: JSON.stringify({ engine_config: { pipeline, lifecycle_handler } }),
  ...settings,
})
async function create(
  lifecycle_handler: Commands & { env?: object },
  settings: object = {},
  pipeline?: object,
): Promise<string> {
  const { status, body } = await node.call('POST', '/pipelines', around(lifecycle_handler, settings, pipeline))
  expect(body.message ?? status).toBe(200)
  return body.pipeline.id
}
const stop = (id: string) => node.call('POST', `/pipelines/${id}/stop`)
const isOver = (id: string) => node.when(id, ({ started }) => !started)

/** The lines of the log of a run that is over. */
async function linesOf(runId: string) {
  const log = await node.follow(`/pipeline-runs/${runId}/logs?options.lines=2000`)
  const { messages } = await log.next()
  log.close()
  return messages as { level: string; message: string; fields: Record<string, string> }[]
}

/** Whether a process is there, and no zombie. */
function isAlive(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'latin1'))
  } catch {
    return false
  }
}
const pidIn = (file: string): number => {
  try {
    return Number(readFileSync(join(files, file), 'latin1').trim())
  } catch {
    return 0
  }
}
/** The process that a command has written the number of into a file. */
async function process(file: string): Promise<number> {
  await until(() => pidIn(file) > 0, `a process in ${file}`)
  return pidIn(file)
}

test('what is cut, a long line of output or a command that is told of, is cut between two characters', async () => {
  const text = `x${'😀'.repeat(2_100)}`
  const id = await create({ pre_start: [{ cmd: `echo '${text}'; false` }] })
  const { body } = await node.call('POST', `/pipelines/${id}/start`)
  expect(body.message).toContain(`pre_start command 1 (echo 'x${'😀'.repeat(36)}…) ended with exit code 1`)
  const { body: told } = await node.call('GET', `/pipelines/${id}`)
  const lines = await linesOf(told.pipeline.currentRun.id)
  expect(lines.filter(({ message }) => !message.isWellFormed())).toEqual([])
  const printed = lines.filter(({ fields }) => fields.stream === 'stdout').map(({ message }) => message)
  expect(printed).toHaveLength(2)
  expect(printed.join('')).toBe(text)
})

test('the five hooks run in their order, each line of their output is in the log of the run', async () => {
  const hooks = ['on_setup', 'pre_start', 'post_start', 'pre_stop', 'post_stop'] as const
  const id = await create(
    Object.fromEntries(
      hooks.map((hook) => [hook, [{ cmd: `echo ${hook}; echo to stderr >&2` }, { cmd: 'printf more' }]]),
    ),
  )
  const runId = await node.start(id)
  const log = await node.follow(`/pipeline-runs/${runId}/logs?options.lines=100`)
  const seen: { message: string; fields: Record<string, string> }[] = []
  const until = async (is: (message: string) => boolean, hook: string) => {
    while (!seen.some(({ message, fields }) => is(message) && (hook === '' || fields.hook === hook))) {
      seen.push(...(await log.next()).messages)
    }
  }
  await until((message) => message === 'more', 'post_start')
  await stop(id)
  await until((message) => message.startsWith('ended: '), '')
  log.close()
  const order = seen.map(({ message, fields }) => [fields.hook ?? '', message].join(' ').trim())
  const of = (hook: string) =>
    order.filter((line) => line.startsWith(`${hook} `)).map((line) => line.slice(hook.length + 1))
  for (const hook of hooks) expect(of(hook).sort()).toEqual([hook, 'more', 'to stderr'].sort())
  const places = [
    'on_setup more',
    'pre_start more',
    'running',
    'post_start more',
    'pre_stop more',
    'post_stop more',
    'ended: STOPPED',
  ]
  expect(places.map((line) => order.indexOf(line))).toEqual(
    [...places.map((line) => order.indexOf(line))].sort((a, b) => a - b),
  )
  expect(places.every((line) => order.includes(line))).toBe(true)
  expect(seen.find(({ message }) => message === 'to stderr')?.fields).toEqual({
    hook: 'on_setup',
    command: '1',
    stream: 'stderr',
  })
})

test("pre_start runs when the run's sockets are open, on_setup before", async () => {
  const path = join(directory, 'there.sock')
  const socket = {
    a: { unix_socket: { output: 'x', server: { listen_address: path } } },
    b: { traffic_sink: { input: 'x' } },
  }
  const id = await create(
    { on_setup: [{ cmd: `test ! -S ${path}` }], pre_start: [{ cmd: `test -S ${path}` }] },
    {},
    socket,
  )
  await node.start(id)
  await stop(id)
  expect((await isOver(id)).currentRun).toMatchObject({ outcome: 'STOPPED' })
})

test("environment: the command's over the handler's over the node's, the ids over all; the working directory", async () => {
  mkdirSync(join(files, 'below'), { recursive: true })
  const print = 'echo "$A $B $HOME $PENSTOCK_PIPELINE_ID $PENSTOCK_RUN_ID $(pwd)"'
  const env = { vars: { B: 'command', PENSTOCK_RUN_ID: 'forged' } }
  const id = await create({
    env: { vars: { A: 'handler', B: 'handler' } },
    on_setup: [{ cmd: print }, { cmd: print, cwd: 'below', env }, { cmd: 'pwd', cwd: '/' }],
  })
  const runId = await node.start(id)
  await stop(id)
  await isOver(id)
  const told = (await linesOf(runId)).filter(({ fields }) => fields.hook === 'on_setup').map(({ message }) => message)
  const home = globalThis.process.env.HOME
  expect(told).toEqual([
    `handler handler ${home} ${id} ${runId} ${files}`,
    `handler command ${home} ${id} ${runId} ${files}/below`,
    '/',
  ])
})

test('a command gets none of the descriptors of the node', async () => {
  const id = await create({ on_setup: [{ cmd: 'exec ls -l /proc/self/fd' }] })
  const runId = await node.start(id)
  await stop(id)
  await isOver(id)
  const given = (await linesOf(runId)).flatMap(
    ({ message }) => /(\d+) -> (.*)$/.exec(message)?.slice(1, 3).join(' ') ?? [],
  )
  // The fourth is the directory that is read.
  const output = expect.stringMatching(/^[12] (pipe|socket):/)
  expect(given).toEqual(['0 /dev/null', output, output, expect.stringMatching(/^3 \/proc\/\d+\/fd$/)])
})

describe('a command that fails', () => {
  test.each(['on_setup', 'pre_start'] as const)(
    '%s, STOP_ON_ERROR: the start fails with the command and its exit code',
    async (hook) => {
      const id = await create({
        [hook]: [{ cmd: 'echo no good; exit 3' }, { cmd: 'echo never' }],
        post_stop: [{ cmd: 'echo tidied' }],
      })
      const { status, body } = await node.call('POST', `/pipelines/${id}/start`)
      expect([status, body.code]).toEqual([409, 10])
      const fault = `${hook} command 1 (echo no good; exit 3) ended with exit code 3`
      expect(body.message).toBe(`the run failed while starting: ${fault}`)
      const { currentRun } = await isOver(id)
      expect(currentRun).toMatchObject({ outcome: 'FAILED', error: fault })
      const lines = await linesOf(currentRun.id)
      expect(lines).toContainEqual(expect.objectContaining({ level: 'ERROR', message: fault }))
      const told = lines.map(({ message }) => message)
      expect(told).toContain('tidied')
      expect(told).not.toContain('never')
      expect(told).not.toContain('running')
      expect(told.at(-1)).toBe(`ended: FAILED, ${fault}`)
    },
  )

  test('post_start, STOP_ON_ERROR: the run is stopped and FAILED, and the restart policy decides', async () => {
    const id = await create({ post_start: [{ cmd: 'false' }] }, { restartPolicy: { onFailure: { maxRestarts: 1 } } })
    await node.start(id)
    const waiting = await node.when(id, ({ restarts }) => restarts?.nextAt !== undefined)
    expect(waiting.currentRun).toMatchObject({
      outcome: 'FAILED',
      error: 'post_start command 1 (false) ended with exit code 1',
    })
    await stop(id)
  })

  test('CONTINUE_ON_ERROR: a warning, and the next one runs', async () => {
    const cmds = [{ cmd: 'exit 7', policy: 'CONTINUE_ON_ERROR' }, { cmd: 'echo next' }]
    const id = await create({ pre_start: cmds, pre_stop: [{ cmd: 'false' }], post_stop: [{ cmd: 'kill -9 $$' }] })
    const runId = await node.start(id)
    await stop(id)
    expect((await isOver(id)).currentRun).toMatchObject({ outcome: 'STOPPED' })
    const told = (await linesOf(runId)).map(({ level, message }) => `${level} ${message}`)
    expect(told).toEqual(
      expect.arrayContaining([
        'WARN pre_start command 1 (exit 7) ended with exit code 7',
        'INFO next',
        'ERROR pre_stop command 1 (false) ended with exit code 1',
        'ERROR post_stop command 1 (kill -9 $$) ended with exit code 137',
      ]),
    )
  })

  test('a working directory that is not there is told', async () => {
    const id = await create({ on_setup: [{ cmd: 'true', cwd: 'nowhere' }] })
    const { body } = await node.call('POST', `/pipelines/${id}/start`)
    expect(body.message).toContain(`could not be started: there is no directory ${files}/nowhere`)
  })

  test('a file as working directory is told as well, and the policy says what follows', async () => {
    writeFileSync(join(files, 'no-directory'), '')
    const id = await create({
      post_start: [
        { cmd: 'true', cwd: 'no-directory', policy: 'CONTINUE_ON_ERROR' },
        { cmd: 'true', cwd: 'no-directory', policy: 'RUN_IN_BACKGROUND' },
        { cmd: 'echo next' },
      ],
    })
    const runId = await node.start(id)
    await until(async () => (await linesOf(runId)).some(({ message }) => message === 'next'))
    await stop(id)
    await isOver(id)
    // The last one may not be over yet, though it has said all it has to, and is killed then.
    const told = (await linesOf(runId))
      .filter(({ level, fields }) => level === 'WARN' && fields.command !== '3')
      .map(({ message }) => message)
    const none = `could not be started: there is no directory ${files}/no-directory; make it, or set cwd`
    expect(told).toEqual([`post_start command 1 (true) ${none}`, `post_start command 2 (true) ${none}`])
  })

  test('one that takes too long is killed with all that it has started', async () => {
    const id = await create({ on_setup: [{ cmd: 'sleep 1000 & echo $! > late; sleep 1000', timeout: 2_000 }] })
    const { status, body } = await node.call('POST', `/pipelines/${id}/start`)
    expect(status).toBe(409)
    expect(body.message).toContain('was not over within 2000 ms (timeout) and was killed')
    expect(isAlive(await process('late'))).toBe(false)
  })
})

test('not running within 10 seconds, its commands included: DEADLINE_EXCEEDED, and nothing is left', async () => {
  const id = await create({ pre_start: [{ cmd: 'echo $$ > slow; sleep 1000', timeout: 60_000 }] })
  const { status, body } = await node.call('POST', `/pipelines/${id}/start`)
  expect([status, body.code]).toEqual([504, 4])
  const { currentRun } = await isOver(id)
  expect(currentRun).toMatchObject({ outcome: 'FAILED' })
  expect(isAlive(await process('slow'))).toBe(false)
  expect((await linesOf(currentRun.id)).map(({ message }) => message)).toContain(
    'pre_start command 1 (echo $$ > slow; sleep 1000) was killed: the run ended before it was over',
  )
}, 30_000)

test('a second start while the first is in its commands is refused, and runs none', async () => {
  const id = await create({
    pre_start: [{ cmd: 'echo $$ >> begun; while ! test -e may-fail; do sleep 0.05; done; false' }],
  })
  const start = () => node.call('POST', `/pipelines/${id}/start`)
  const first = start()
  await process('begun')
  const run = (await node.get(id)).currentRun.id
  expect(await start()).toMatchObject({
    status: 400,
    body: { code: 9, message: `pipeline "test" is already started (run ${run})` },
  })
  writeFileSync(join(files, 'may-fail'), '')
  expect((await first).body.code).toBe(10)
  expect((await isOver(id)).currentRun.id).toBe(run)
  expect(readFileSync(join(files, 'begun'), 'latin1').trim().split('\n')).toHaveLength(1)
})

describe('a stop while commands hold up', () => {
  const start = (id: string) => node.call('POST', `/pipelines/${id}/start`)
  const asleep = (file: string) => ({ cmd: `echo $$ > ${file}; exec sleep 1000`, timeout: 60_000 })

  test.each(['on_setup', 'pre_start'] as const)('a start, in %s: it fails, and its run is STOPPED', async (hook) => {
    for (const how of ['pipeline', 'run', 'deletion'] as const) {
      const file = `held-${hook}-${how}`
      const id = await create({ [hook]: [asleep(file)] })
      const started = start(id)
      const pid = await process(file)
      const { currentRun: run } = await node.get(id)
      expect(run.state).toBe('STARTING')
      const events = await node.follow('/pipelines')
      const path = how === 'run' ? `/pipeline-runs/${run.id}/stop` : `/pipelines/${id}/stop`
      const answer = how === 'deletion' ? node.call('DELETE', `/pipelines/${id}`) : node.call('POST', path)
      expect((await answer).status).toBe(200)
      expect(await started).toMatchObject({
        status: 409,
        body: { code: 10, message: 'the run failed while starting: it was stopped' },
      })
      expect(isAlive(pid)).toBe(false)
      for (let ended = false; !ended; ) {
        const { update } = await events.next()
        const { state, outcome } = update.pipeline.currentRun
        ended = state === 'ENDED'
        expect([state, outcome]).toEqual(ended ? ['ENDED', 'STOPPED'] : ['STOPPING', undefined])
      }
      events.close()
    }
  })

  test('an update that has the run replaced, in its pre_stop: it fails, and its settings are not stored', async () => {
    const gate = { cmd: 'echo $$ > leaving; while ! test -e may-leave; do sleep 0.05; done', timeout: 60_000 }
    const id = await create({ pre_stop: [gate] })
    const before = await node.get(id)
    const run = await node.start(id)
    const replacing = around({}, { instructionsTimeout: 5, forceRestart: true })
    const updated = node.call('PUT', `/pipelines/${id}`, replacing)
    await process('leaving')
    expect((await stop(id)).status).toBe(200)
    expect((await stop(id)).body.code).toBe(9)
    writeFileSync(join(files, 'may-leave'), '')
    const { status, body } = await updated
    expect([status, body.message]).toEqual([
      409,
      'the pipeline was stopped before its next run began; the settings stay as they were, and the pipeline is stopped',
    ])
    const { currentRun, ...after } = await node.get(id)
    expect(after).toEqual(before)
    expect(currentRun).toMatchObject({ id: run, outcome: 'STOPPED' })
  })
})

describe('processes that a run has left', () => {
  test('in the background, in a session of their own, without environment: they end with the run', async () => {
    const id = await create({
      pre_start: [
        { cmd: 'echo $$ > plain; exec sleep 1000', policy: 'RUN_IN_BACKGROUND' },
        { cmd: 'echo $$ > bare; exec env -i /bin/sleep 1000', policy: 'RUN_IN_BACKGROUND' },
        { cmd: "setsid sh -c 'echo $$ > daemon; exec sleep 1000' > /dev/null 2>&1 &" },
        { cmd: "echo $$ > deaf; trap '' TERM; while :; do sleep 1; done", policy: 'RUN_IN_BACKGROUND' },
      ],
    })
    await node.start(id)
    const pids = await Promise.all(['plain', 'bare', 'daemon', 'deaf'].map(process))
    expect(pids.map(isAlive)).toEqual([true, true, true, true])
    await stop(id)
    await isOver(id)
    expect(pids.map(isAlive)).toEqual([false, false, false, false])
  })

  test('in the background of post_stop: killed immediately after launch', async () => {
    const id = await create({ post_stop: [{ cmd: 'sleep 1000', policy: 'RUN_IN_BACKGROUND' }] })
    const runId = await node.start(id)
    await stop(id)
    await isOver(id)
    expect((await linesOf(runId)).map(({ message }) => message)).toContain(
      'post_stop command 1 (sleep 1000) was ended by SIGKILL',
    )
  })

  test('strangers are left alone', async () => {
    const id = await create({
      pre_start: [{ cmd: 'echo $$ > other', policy: 'RUN_IN_BACKGROUND' }, { cmd: 'exec true' }],
    })
    const other = await create({
      pre_start: [{ cmd: 'echo $$ > lasting; exec sleep 1000', policy: 'RUN_IN_BACKGROUND' }],
    })
    await node.start(other)
    await node.start(id)
    const lasting = await process('lasting')
    await stop(id)
    await isOver(id)
    expect(isAlive(lasting)).toBe(true)
    await stop(other)
    await isOver(other)
    expect(isAlive(lasting)).toBe(false)
  })
})

test('a stop while a run that ends by itself has its last commands: none follows it, whatever the restart policy says', async () => {
  const once = {
    source: { uniform_traffic_source: { output: 'a', total_packets: 1, interval: 1 } },
    sink: { traffic_sink: { input: 'a' } },
  }
  const commands = { post_stop: [{ cmd: 'while ! test -e let-go; do sleep 0.05; done' }] }
  const id = await create(commands, { restartPolicy: { always: { maxRestarts: 0 } } }, once)
  const runId = await node.start(id)
  await node.when(id, ({ currentRun }) => currentRun.state === 'STOPPING')
  expect((await stop(id)).status).toBe(200)
  // Once is enough.
  expect((await stop(id)).body.code).toBe(9)
  writeFileSync(join(files, 'let-go'), '')
  const { currentRun } = await isOver(id)
  expect(currentRun).toMatchObject({ id: runId, outcome: 'COMPLETED' })
})

test('a command that prints without end: a part of it is in the log, what is dropped is counted, the node answers', async () => {
  const id = await create({ pre_start: [{ cmd: 'yes endless', policy: 'RUN_IN_BACKGROUND' }] })
  const runId = await node.start(id)
  const log = await node.follow(`/pipeline-runs/${runId}/logs?options.lines=100`)
  for (let told = false; !told; ) {
    told = (await log.next()).messages.some(({ message }: { message: string }) =>
      /lines that commands printed were dropped/.test(message),
    )
  }
  log.close()
  await stop(id)
  await isOver(id)
})

test('lines that were dropped are told of once the second is over, also of a command that prints nothing more', async () => {
  const cmd = 'seq 5000; exec sleep 1000'
  const id = await create({ pre_start: [{ cmd, policy: 'RUN_IN_BACKGROUND' }] })
  const runId = await node.start(id)
  const log = await node.follow(`/pipeline-runs/${runId}/logs?options.lines=1000`)
  let printed = 0
  let dropped = 0
  while (printed + dropped < 5_000) {
    for (const { message, fields } of (await log.next()).messages) {
      if (fields.stream === 'stdout') printed++
      else if (fields.dropped !== undefined) {
        expect(message).toBe(`${fields.dropped} lines that commands printed were dropped: too many in one second`)
        dropped += Number(fields.dropped)
      }
    }
  }
  log.close()
  expect(printed).toBeGreaterThanOrEqual(500)
  expect(dropped).toBeGreaterThan(0)
  await stop(id)
  await isOver(id)
})

test('what is wrong with a handler is told with its place', async () => {
  const wrong = {
    env: { vars: { 'A=B': 'x' } },
    preStart: [{ cmd: 'a\0b' }, { cmd: 'true', policy: 'RUN_IN_BACKGROUND', env: { vars: { OK: 'y' } } }],
  }
  const { status, body } = await node.call('POST', '/pipelines', around(wrong as never))
  expect(status).toBe(400)
  expect(body.message).toContain('/engine_config/lifecycle_handler/env/vars/A=B: the name of an environment variable')
  expect(body.message).toContain('/cmd: must not hold a NUL character')
  const { body: second } = await node.call('POST', '/pipelines', around({ on_setup: [{ cmd: '', policy: 'MAYBE' }] }))
  expect(second.message).toContain('/engine_config/lifecycle_handler/on_setup/0/cmd: must not be empty')
  expect(second.message).toContain('/policy: "MAYBE" is none of STOP_ON_ERROR, CONTINUE_ON_ERROR, RUN_IN_BACKGROUND')
})

test('another handler needs another run', async () => {
  const id = await create({ post_stop: [{ cmd: 'true' }] })
  await node.start(id)
  const changed = around({ post_stop: [{ cmd: 'false' }] }, { instructionsTimeout: 5 })
  const { status, body } = await node.call('PUT', `/pipelines/${id}`, changed)
  expect(status).toBe(400)
  expect(body.message).toContain('/engine_config/lifecycle_handler')
  await stop(id)
})

test('a file of commands is a file like any other', async () => {
  writeFileSync(join(files, 'hook.sh'), 'echo from a file\n')
  const id = await create({ on_setup: [{ cmd: '. ./hook.sh' }] })
  const runId = await node.start(id)
  await stop(id)
  await isOver(id)
  expect((await linesOf(runId)).map(({ message }) => message)).toContain('from a file')
})
