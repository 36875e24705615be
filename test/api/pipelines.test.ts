/** Pipelines over REST on a real node with real runs: create, read, update, delete, start, stop, and every code they fail with. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { codeNumbers } from '../../src/contract/errors.ts'
import { type RunningNode, runNode, settingsOf, temporaryDirectory, traffic } from './running-node.ts'

let node: RunningNode
beforeAll(async () => {
  node = await runNode(temporaryDirectory())
})
afterAll(() => node.node.close())

/** What a failed call answers. */
const failure = (status: number, code: keyof typeof codeNumbers, message: string) => ({
  status,
  body: expect.objectContaining({ code: codeNumbers[code], message: expect.stringContaining(message) }),
})

test('an answer shows what was answered to have been written before it, on connections that stay open', async () => {
  const id = await node.create(traffic(), { name: 'turn 0' })
  for (let turn = 1; turn <= 50; turn++) {
    const written = await node.call(
      'PUT',
      `/pipelines/${id}`,
      settingsOf(traffic(), { name: `turn ${turn}`, instructionsTimeout: 5 }),
    )
    expect(written.body.pipeline.name).toBe(`turn ${turn}`)
    expect(await node.get(id)).toEqual(written.body.pipeline)
    expect(await node.get(id), 'and when it is asked for again').toEqual(written.body.pipeline)
  }
  await node.call('POST', `/pipelines/${id}/start`)
  expect(await node.get(id)).toMatchObject({ started: true, currentRun: { state: 'RUNNING' } })
  await node.call('POST', `/pipelines/${id}/stop`)
  // The stop is asked for; the run may not have ended yet.
  expect((await node.get(id)).currentRun.state).toMatch(/^(STOPPING|ENDED)$/)
  await node.call('DELETE', `/pipelines/${id}`)
  expect((await node.call('GET', `/pipelines/${id}`)).status).toBe(404)
})

describe('create', () => {
  test('answers the pipeline with its id and defaults, not started', async () => {
    const settings = settingsOf(traffic(), { name: 'first' })
    const { status, body } = await node.call('POST', '/pipelines', settings)
    expect(status).toBe(200)
    expect(body).toEqual({
      pipeline: {
        id: expect.stringMatching(/.+/),
        name: 'first',
        jsonConfig: settings.jsonConfig,
        restartPolicy: { never: {} },
        startupPolicy: { manual: {} },
        defaultLoggingLevel: 'INFO',
        instructionsTimeout: 30,
        performanceMode: false,
        started: false,
      },
    })
    expect(await node.get(body.pipeline.id)).toEqual(body.pipeline)
    const { body: list } = await node.call('GET', '/pipelines')
    expect(list.pipelines).toContainEqual(body.pipeline)
    expect((await node.call('GET', '/pipelines-by-name/first')).body).toEqual(body)
  })

  test('keeps what it is given', async () => {
    const given = {
      restartPolicy: { onFailure: { maxRestarts: 3 } },
      startupPolicy: { auto: {} },
      defaultLoggingLevel: 'WARN',
      nodeReferenceId: 'somewhere',
      instructionsTimeout: 7,
      cpuPin: 0,
      performanceMode: true,
    }
    const id = await node.create(traffic(), given)
    expect(await node.get(id)).toMatchObject(given)
    await node.call('DELETE', `/pipelines/${id}`)
  })

  test.each(['.', '..'])('refuses the name %s, which no path could hold', async (name) => {
    const answer = await node.call('POST', '/pipelines', { name, jsonConfig: JSON.stringify(traffic()) })
    expect(answer).toMatchObject({
      status: 400,
      body: { message: expect.stringContaining(`/name: must not be ${name},`) },
    })
  })

  test('lists every problem with its pointer and stores nothing', async () => {
    const before = (await node.call('GET', '/pipelines')).body.pipelines.length
    const answer = await node.call('POST', '/pipelines', {
      name: '',
      instructionsTimeout: -1,
      cpuPin: 100_000,
      jsonConfig: JSON.stringify({
        engine_config: {
          pipeline: {
            a: { throughput_traffic_source: { output: 'x', throughput_mbit: 'fast', payload_size: 200, colour: 1 } },
            b: { no_such_component: {} },
          },
        },
      }),
    })
    expect(answer).toEqual(failure(400, 'INVALID_ARGUMENT', 'problems'))
    const pointers = [
      '/name',
      '/instructionsTimeout',
      '/cpuPin',
      '/engine_config/pipeline/a/throughput_traffic_source/throughput_mbit',
      '/engine_config/pipeline/a/throughput_traffic_source/colour',
      '/engine_config/pipeline/b/no_such_component',
    ]
    for (const pointer of pointers) expect(answer.body.message).toContain(pointer)
    const fields = answer.body.details[0].fieldViolations.map(({ field }: { field: string }) => field)
    expect(fields).toEqual(expect.arrayContaining(pointers))
    expect((await node.call('GET', '/pipelines')).body.pipelines).toHaveLength(before)
  })

  const refused: [string, Record<string, unknown>, string][] = [
    ['not JSON', { jsonConfig: '{' }, '/jsonConfig'],
    ['no configuration', { jsonConfig: undefined }, '/jsonConfig: a pipeline needs a configuration'],
    ['more than 1 MiB', { jsonConfig: `{"x":"${'x'.repeat(1 << 20)}"}` }, '/jsonConfig'],
    ['no name', { name: undefined }, '/name'],
    ['no time', { instructionsTimeout: 0 }, '/instructionsTimeout'],
    ['a dangling connection', settingsOf({ sink: { traffic_sink: { input: 'nowhere' } } }), 'nowhere'],
    ['a newer version', { jsonConfig: '{"version": 2, "engine_config": {"pipeline": {}}}' }, '/version'],
    ['a component that nobody knows', settingsOf({ t: { kodok_decodr: {} } }), 'Did you mean "kodok_decoder"?'],
  ]
  test.each(refused)('refuses %s', async (_, settings, message) => {
    const answer = await node.call('POST', '/pipelines', { ...settingsOf(traffic()), ...settings })
    expect(answer).toEqual(failure(400, 'INVALID_ARGUMENT', message))
  })
})

describe('what does not exist', () => {
  test.each([
    ['GET', '/pipelines/none'],
    ['DELETE', '/pipelines/none'],
    ['GET', '/pipelines-by-name/none'],
    ['POST', '/pipelines/none/start'],
    ['POST', '/pipelines/none/stop'],
    ['POST', '/pipelines-by-name/none/start'],
    ['POST', '/pipelines-by-name/none/stop'],
    ['POST', '/pipeline-runs/none/stop'],
  ])('%s %s: NOT_FOUND', async (method, path) => {
    expect(await node.call(method, path)).toEqual(failure(404, 'NOT_FOUND', 'none'))
  })

  test('update: NOT_FOUND', async () => {
    const body = settingsOf(traffic(), { instructionsTimeout: 5 })
    expect(await node.call('PUT', '/pipelines/none', body)).toEqual(failure(404, 'NOT_FOUND', 'none'))
  })

  test('a run: DEADLINE_EXCEEDED', async () => {
    expect(await node.call('GET', '/pipeline-runs/none')).toEqual(failure(504, 'DEADLINE_EXCEEDED', 'none'))
  })

  test('another node, as long as this one is on no hub: FAILED_PRECONDITION', async () => {
    const url = `http://${node.node.http}/v1/nodes/another/pipelines`
    expect(await node.call('GET', url)).toEqual(failure(400, 'FAILED_PRECONDITION', 'another'))
  })
})

test('a name that two pipelines have finds neither', async () => {
  const ids = [await node.create(traffic(), { name: 'twin' }), await node.create(traffic(), { name: 'twin' })]
  expect(await node.call('GET', '/pipelines-by-name/twin')).toEqual(failure(404, 'NOT_FOUND', '2 pipelines'))
  for (const verb of ['start', 'stop']) {
    const answer = await node.call('POST', `/pipelines-by-name/twin/${verb}`)
    expect(answer).toEqual(failure(400, 'FAILED_PRECONDITION', ids[0] as string))
  }
})

describe('start and stop', () => {
  test('every row of the state table', async () => {
    const id = await node.create(traffic(), { name: 'rows' })
    expect(await node.call('POST', `/pipelines/${id}/stop`)).toEqual(
      failure(400, 'FAILED_PRECONDITION', 'already stopped'),
    )
    const { status, body } = await node.call('POST', `/pipelines-by-name/rows/start`)
    expect(status).toBe(200)
    const running = await node.get(id)
    expect(running).toMatchObject({ started: true, currentRun: { id: body.runId, state: 'RUNNING' } })
    expect(running.currentRun.cpu).toBeTypeOf('number')
    expect(await node.call('POST', `/pipelines/${id}/start`)).toEqual(
      failure(400, 'FAILED_PRECONDITION', 'already started'),
    )
    expect((await node.call('GET', `/pipeline-runs/${body.runId}`)).body.pipeline.id).toBe(id)
    expect(await node.call('POST', `/pipeline-runs/${body.runId}/stop`)).toEqual({ status: 200, body: {} })
    const stopped = await node.when(id, ({ started }) => !started)
    expect(stopped.currentRun).toMatchObject({ id: body.runId, state: 'ENDED', outcome: 'STOPPED' })
    expect(await node.call('POST', `/pipeline-runs/${body.runId}/stop`)).toEqual(
      failure(400, 'FAILED_PRECONDITION', 'already stopped'),
    )
    const second = await node.start(id)
    expect(second).not.toBe(body.runId)
    // The first run is still known.
    expect((await node.call('GET', `/pipeline-runs/${body.runId}`)).body.pipeline.currentRun.id).toBe(second)
    expect(await node.call('POST', `/pipelines-by-name/rows/stop`)).toEqual({ status: 200, body: {} })
    expect(await node.call('DELETE', `/pipelines/${id}`)).toEqual({ status: 200, body: {} })
    expect((await node.call('GET', `/pipelines/${id}`)).status).toBe(404)
  })

  describe('a run whose source is done', () => {
    const finite = {
      source: { uniform_traffic_source: { output: 'a', interval: 1, total_packets: 20 } },
      sink: { traffic_sink: { input: 'a' } },
    }

    test('ends by itself: COMPLETED, and its pipeline is stopped and can be started again', async () => {
      for (const restartPolicy of [{ never: {} }, { onFailure: { maxRestarts: 0 } }]) {
        const id = await node.create(finite, { restartPolicy })
        for (let round = 0; round < 2; round++) {
          const runId = await node.start(id)
          const ended = await node.when(id, ({ started }) => !started)
          expect(ended.currentRun).toMatchObject({ id: runId, state: 'ENDED', outcome: 'COMPLETED' })
          expect(ended.currentRun.error).toBe(undefined)
        }
      }
    })

    test('is followed by another one where the restart policy says always', async () => {
      const id = await node.create(finite, { restartPolicy: { always: { maxRestarts: 1 } } })
      const first = await node.start(id)
      const ended = await node.when(
        id,
        ({ started, currentRun }) => !started && currentRun.id !== first && currentRun.state === 'ENDED',
      )
      expect(ended.currentRun).toMatchObject({ outcome: 'COMPLETED' })
    })
  })

  test('deleting a started pipeline stops its run, whose log ends, and takes it away', async () => {
    const probe = createSocket('udp4').bind(0, '127.0.0.1')
    await once(probe, 'listening')
    const { port } = probe.address()
    await new Promise<void>((resolve) => probe.close(resolve))
    const id = await node.create(
      {
        a: { udp: { local_address: `127.0.0.1:${port}`, output: 'x' } },
        b: { traffic_sink: { input: 'x' } },
      },
      { restartPolicy: { always: { maxRestarts: 0 } } },
    )
    const run = await node.start(id)
    expect(await node.call('DELETE', `/pipelines/${id}`)).toEqual({ status: 200, body: {} })
    expect((await node.call('GET', `/pipelines/${id}`)).status).toBe(404)
    expect((await node.call('DELETE', `/pipelines/${id}`)).status).toBe(404)
    expect((await node.call('GET', `/pipeline-runs/${run}`)).status).toBe(504)
    // Its socket is closed: the port is free at once.
    const again = createSocket('udp4').bind(port, '127.0.0.1')
    await once(again, 'listening')
    again.close()
  })

  test('of two starts at once exactly one wins', async () => {
    const id = await node.create(traffic())
    const answers = await Promise.all([1, 2, 3].map(() => node.call('POST', `/pipelines/${id}/start`)))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 400, 400])
    await node.call('POST', `/pipelines/${id}/stop`)
  })

  test('a start right after a stop waits for the old run to end', async () => {
    const id = await node.create(traffic())
    for (let round = 0; round < 5; round++) {
      await node.start(id)
      expect((await node.call('POST', `/pipelines/${id}/stop`)).status).toBe(200)
    }
    expect((await node.call('DELETE', `/pipelines/${id}`)).status).toBe(200)
  })

  test('runs are spread over the CPU threads; a pin is kept', async () => {
    const threads = new Set<number>()
    const ids: string[] = []
    for (let i = 0; i < 2; i++) {
      const id = await node.create(traffic())
      ids.push(id)
      await node.start(id)
      threads.add((await node.get(id)).currentRun.cpu)
    }
    const pinned = await node.create(traffic(), { cpuPin: 0 })
    await node.start(pinned)
    expect((await node.get(pinned)).currentRun.cpu).toBe(0)
    // On a machine with one CPU thread there is nothing to spread over.
    const available = (await import('../../src/dataplane/native/native.ts')).native.affinity().length
    expect(threads.size).toBe(Math.min(2, available))
    for (const id of [...ids, pinned]) await node.call('POST', `/pipelines/${id}/stop`)
  })

  test('a run that cannot start: ABORTED with the cause, and nothing is left of it', async () => {
    const holder = await node.create({
      a: { udp: { local_address: '127.0.0.1:0', output: 'x' } },
      b: { traffic_sink: { input: 'x' } },
    })
    await node.start(holder)
    const id = await node.create({
      front: { test_trigger: { input: 'x', output: 'y', throw_at_start: true } },
      a: { udp: { local_address: '127.0.0.1:0', output: 'x' } },
      b: { traffic_sink: { input: 'y' } },
    })
    expect(await node.call('POST', `/pipelines/${id}/start`)).toEqual(failure(409, 'ABORTED', 'refused to start'))
    expect(await node.get(id)).toMatchObject({ started: false, currentRun: { state: 'ENDED', outcome: 'FAILED' } })
    // The other run goes on.
    expect(await node.get(holder)).toMatchObject({ started: true, currentRun: { state: 'RUNNING' } })
    await node.call('POST', `/pipelines/${holder}/stop`)
  })

  test('a port that is taken: ABORTED and the port', async () => {
    const { Peer } = await import('../dataplane/running.ts')
    const peer = await Peer.open()
    const id = await node.create({
      a: { udp: { local_address: peer.address, output: 'x' } },
      b: { traffic_sink: { input: 'x' } },
    })
    expect(await node.call('POST', `/pipelines/${id}/start`)).toEqual(failure(409, 'ABORTED', `${peer.port}`))
    peer.close()
    await node.start(id)
    await node.call('POST', `/pipelines/${id}/stop`)
  })
})
