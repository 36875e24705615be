/** The streams of pipelines on a real node: changes, logs and telemetry of runs, and what happens when a run fails. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Peer } from '../dataplane/running.ts'
import { type RunningNode, runNode, settingsOf, temporaryDirectory, traffic } from './running-node.ts'

let node: RunningNode
beforeAll(async () => {
  node = await runNode(temporaryDirectory(), { 'telemetry-interval': '100ms' })
})
afterAll(() => node.node.close())

interface Sample {
  metricCollections: { path: string; metrics: Record<string, { uint64Value: string }> }[]
}

const countOf = ({ metricCollections }: Sample, path: string, metric: string): number =>
  Number(metricCollections.find((each) => each.path === path)?.metrics[metric]?.uint64Value)

const codeOf = async (promise: Promise<unknown>) => {
  try {
    await promise
  } catch (error) {
    return (error as { code: number }).code
  }
  return 0
}

describe('streamPipelines', () => {
  test('nothing at first, then one event per change, of a run one for each of its states', async () => {
    await node.create(traffic(), { name: 'earlier' })
    const events = await node.follow('/pipelines')
    const id = await node.create(traffic(), { name: 'later' })
    expect(await events.next()).toEqual({ create: { pipeline: await node.get(id) } })
    const runId = await node.start(id)
    for (const state of ['STARTING', 'RUNNING']) {
      expect(await events.next()).toMatchObject({
        update: { pipeline: { id, started: true, currentRun: { id: runId, state } } },
      })
    }
    await node.call('PUT', `/pipelines/${id}`, settingsOf(traffic(), { name: 'renamed', instructionsTimeout: 5 }))
    expect(await events.next()).toMatchObject({ update: { pipeline: { id, name: 'renamed' } } })
    await node.call('POST', `/pipelines/${id}/stop`)
    expect(await events.next()).toMatchObject({ update: { pipeline: { id, currentRun: { state: 'STOPPING' } } } })
    expect(await events.next()).toMatchObject({
      update: { pipeline: { id, started: false, currentRun: { state: 'ENDED', outcome: 'STOPPED' } } },
    })
    await node.call('DELETE', `/pipelines/${id}`)
    expect(await events.next()).toMatchObject({ delete: { pipeline: { id, name: 'renamed' } } })
    events.close()
  })

  test('every state of every run, in order and once, while operations wait for commands and for ends of runs', async () => {
    const lifecycle_handler = { pre_start: [{ cmd: 'sleep 0.2' }], pre_stop: [{ cmd: 'sleep 0.2' }] }
    const settings = (seed: number) => {
      const source = { throughput_traffic_source: { output: 'a', throughput_mbit: 1, payload_size: 200, seed } }
      const engine_config = { lifecycle_handler, pipeline: { source, sink: { traffic_sink: { input: 'a' } } } }
      return { name: `seed ${seed}`, jsonConfig: JSON.stringify({ engine_config }), instructionsTimeout: 5 }
    }
    const { id } = (await node.call('POST', '/pipelines', settings(1))).body.pipeline
    const events = await node.follow('/pipelines')
    const runs = [await node.start(id)]
    expect((await node.call('POST', `/pipelines/${id}/stop`)).status).toBe(200)
    runs.push(await node.start(id))
    const { body } = await node.call('PUT', `/pipelines/${id}`, { ...settings(2), forceRestart: true })
    runs.push(body.pipeline.currentRun.id)
    expect((await node.call('DELETE', `/pipelines/${id}`)).status).toBe(200)
    const told: string[] = []
    for (let isOver = false; !isOver; ) {
      const event = await events.next()
      const { name, started, currentRun } = (event.update ?? event.delete).pipeline
      const run = runs.indexOf(currentRun.id)
      isOver = event.delete !== undefined
      const how = currentRun.outcome === undefined ? '' : ` ${currentRun.outcome}`
      told.push(`${isOver ? 'deleted' : started ? 'started' : 'stopped'} run ${run} ${currentRun.state}${how}, ${name}`)
    }
    expect(told).toEqual([
      'started run 0 STARTING, seed 1',
      'started run 0 RUNNING, seed 1',
      'started run 0 STOPPING, seed 1',
      'stopped run 0 ENDED STOPPED, seed 1',
      'started run 1 STARTING, seed 1',
      'started run 1 RUNNING, seed 1',
      'started run 1 STOPPING, seed 1',
      'started run 1 ENDED STOPPED, seed 1',
      'started run 2 STARTING, seed 1',
      'started run 2 RUNNING, seed 2',
      'started run 2 STOPPING, seed 2',
      'stopped run 2 ENDED STOPPED, seed 2',
      'deleted run 2 ENDED STOPPED, seed 2',
    ])
    events.close()
  })

  test('every subscriber hears the same', async () => {
    const streams = await Promise.all([1, 2, 3].map(() => node.follow('/pipelines')))
    const id = await node.create(traffic())
    const heard = await Promise.all(streams.map((stream) => stream.next()))
    expect(heard.map(({ create }) => create.pipeline.id)).toEqual([id, id, id])
    for (const stream of streams) stream.close()
  })

  test('changes made at once: each one an event of its own, and of one pipeline in their order', async () => {
    const ids = await Promise.all(Array.from({ length: 20 }, () => node.create(traffic())))
    const events = await node.follow('/pipelines')
    const names = ['first', 'second', 'third']
    for (const name of names) {
      const settings = settingsOf(traffic(), { name, instructionsTimeout: 5 })
      const answers = await Promise.all(ids.map((id) => node.call('PUT', `/pipelines/${id}`, settings)))
      expect(answers.map(({ status }) => status)).toEqual(ids.map(() => 200))
    }
    const heard = new Map<string, string[]>(ids.map((id) => [id, []]))
    for (let event = 0; event < ids.length * names.length; event++) {
      const { id, name } = (await events.next()).update.pipeline
      heard.get(id)?.push(name)
    }
    expect([...heard.values()]).toEqual(ids.map(() => names))
    events.close()
  })
})

/** Bounces what it gets through a component that can be told to throw. */
const fragile = (peer: Peer) => ({
  front: { udp: { local_address: '127.0.0.1:0', remote_address: peer.address, output: 'x', input: 'y' } },
  trigger: { test_trigger: { input: 'x', output: 'y' } },
})

/** The port a run's socket is bound to, from the log. */
async function portOf(runId: string): Promise<number> {
  const log = await node.follow(`/pipeline-runs/${runId}/logs?options.lines=100`)
  for (;;) {
    for (const { message, fields } of (await log.next()).messages) {
      if (!message.startsWith('bound to')) continue
      log.close()
      return Number(/:(\d+)$/.exec(fields.address)?.[1])
    }
  }
}

describe('logs', () => {
  test('past lines first, then new ones, without gap or repetition; kept after the end', async () => {
    const peer = await Peer.open()
    const id = await node.create(fragile(peer), { defaultLoggingLevel: 'STATE' })
    const runId = await node.start(id)
    await portOf(runId)
    const past = await node.follow(`/pipeline-runs/${runId}/logs?options.lines=1000`)
    const seen = (await past.next()).messages
    const live = await node.follow(`/pipeline-runs/${runId}/logs`)
    await node.call('POST', `/pipelines/${id}/stop`)
    const last = 'ended: STOPPED'
    const heard: { message: string }[] = []
    while (heard.at(-1)?.message !== last) heard.push(...(await live.next()).messages)
    while (seen.at(-1).message !== last) seen.push(...(await past.next()).messages)
    const again = await node.follow(`/pipeline-runs/${runId}/logs?options.lines=1000`)
    const all = (await again.next()).messages
    expect(seen).toEqual(all)
    expect(heard).toEqual(all.slice(all.length - heard.length))
    expect(all.at(-1)).toMatchObject({ level: 'STATE', component: '', message: last, fields: {} })
    for (const stream of [past, live, again]) stream.close()
    peer.close()
  })

  test('past lines alone, also of a run that goes on: the stream ends', async () => {
    const id = await node.create(traffic(10))
    const runId = await node.start(id)
    for (const lines of ['1000', '0']) {
      const answer = await fetch(
        `${node.streams}/pipeline-runs/${runId}/logs?options.lines=${lines}&options.pastOnly=true`,
      )
      expect((await answer.text()).includes('"running"')).toBe(lines !== '0')
    }
    await node.call('POST', `/pipelines/${id}/stop`)
  })

  test('lines below the level are left out; the level can be changed while the run is on', async () => {
    const peer = await Peer.open()
    const id = await node.create(fragile(peer), { defaultLoggingLevel: 'FATAL' })
    const messagesOf = async (runId: string): Promise<string[]> => {
      const log = await node.follow(`/pipeline-runs/${runId}/logs?options.lines=1000`)
      const { messages } = await log.next()
      log.close()
      return messages.map(({ message }: { message: string }) => message)
    }
    const runId = await node.start(id)
    await node.call('POST', `/pipelines/${id}/stop`)
    await node.when(id, ({ started }) => !started)
    expect(await messagesOf(runId)).toEqual(['running', 'ended: STOPPED'])
    const loud = settingsOf(fragile(peer), { instructionsTimeout: 5, defaultLoggingLevel: 'INFO' })
    await node.call('PUT', `/pipelines/${id}`, loud)
    const next = await node.start(id)
    await portOf(next)
    expect((await messagesOf(next)).length).toBeGreaterThan(1)
    await node.call('POST', `/pipelines/${id}/stop`)
    peer.close()
  })

  test('of an unknown run: NOT_FOUND', async () => {
    expect(await codeOf(node.follow('/pipeline-runs/none/logs'))).toBe(5)
  })
})

describe('telemetry', () => {
  test('a sample at once, then more, ending with an error when the run stops', async () => {
    const id = await node.create(traffic(10))
    const runId = await node.start(id)
    const samples = await node.follow(`/pipeline-runs/${runId}/telemetry`)
    const first = await samples.next()
    expect(first.kpis).toEqual([])
    const paths = first.metricCollections.map(({ path }: { path: string }) => path)
    expect(paths).toEqual(expect.arrayContaining(['source', 'sink']))
    for (const { metrics } of first.metricCollections) {
      for (const metric of Object.values<Record<string, unknown>>(metrics)) {
        expect(['GAUGE', 'COUNTER']).toContain(metric.kind)
        expect(metric.description).not.toBe('')
        expect('doubleValue' in metric || 'uint64Value' in metric).toBe(true)
      }
    }
    const second = await samples.next()
    expect(Date.parse(second.timestamp)).toBeGreaterThan(Date.parse(first.timestamp))
    await node.call('POST', `/pipelines/${id}/stop`)
    const untilTheEnd = async () => {
      for (;;) await samples.next()
    }
    await expect(untilTheEnd()).rejects.toMatchObject({ code: 10, message: 'run ended' })
  })

  test('of a run that has ended: its last sample, then the end; the record of a run that is not the current one', async () => {
    const id = await node.create({
      source: { uniform_traffic_source: { output: 'a', total_packets: 7, interval: 1 } },
      sink: { traffic_sink: { input: 'a' } },
    })
    const runs: string[] = []
    for (let i = 0; i < 2; i++) {
      const runId = await node.start(id)
      runs.push(runId)
      const counted = (sample: Sample) => countOf(sample, 'sink', 'input_packets')
      const live = await node.follow(`/pipeline-runs/${runId}/telemetry`)
      let sample = await live.next()
      while (counted(sample) < 7) sample = await live.next()
      live.close()
      // Done before the stop or by it: either way the run is over.
      await node.call('POST', `/pipelines/${id}/stop`)
      await node.when(id, ({ currentRun }) => currentRun.state === 'ENDED')
    }
    for (const runId of runs) {
      const samples = await node.follow(`/pipeline-runs/${runId}/telemetry`)
      expect(countOf(await samples.next(), 'sink', 'input_packets')).toBe(7)
      await expect(samples.next()).rejects.toMatchObject({ code: 10, message: 'run ended' })
      const { body } = await node.call('GET', `/pipeline-runs/${runId}`)
      expect(body.run).toMatchObject({ id: runId, state: 'ENDED' })
      expect(['STOPPED', 'COMPLETED']).toContain(body.run.outcome)
      expect(body.pipeline.currentRun.id).toBe(runs[1])
    }
  })

  describe('as asked for', () => {
    const lossy = {
      source: { throughput_traffic_source: { output: 'a', throughput_mbit: 1, payload_size: 200 } },
      loss: { uniform_loss: { input: 'a', output: 'b', loss_prob: 0.5, seed: 1 } },
      sink: { traffic_sink: { input: 'b' } },
    }
    let id: string
    let runId: string
    beforeAll(async () => {
      id = await node.create(lossy)
      runId = await node.start(id)
    })
    afterAll(() => node.call('DELETE', `/pipelines/${id}`))

    const metricsOf = ({ metricCollections }: Sample) =>
      metricCollections.flatMap(({ path, metrics }) => Object.keys(metrics).map((name) => `${path}/${name}`)).sort()

    const firstWith = async (options: string): Promise<Sample> => {
      const samples = await node.follow(`/pipeline-runs/${runId}/telemetry?${options}`)
      const sample = await samples.next()
      samples.close()
      return sample
    }

    test('metrics by name, of all components; those without any are left out', async () => {
      expect(metricsOf(await firstWith('options.metrics=output_bytes&options.metrics=breaths'))).toEqual([
        '/engine/breaths',
        'loss/output_bytes',
        'source/output_bytes',
      ])
      expect(await firstWith('options.metrics=none')).toMatchObject({ metricCollections: [] })
    })

    test('metrics by what they say of packets, and those of ports by their unit', async () => {
      const sample = await firstWith('options.roles=INTENDED&options.roles=CONSUMED&options.portUnits=bytes')
      expect(metricsOf(sample)).toEqual([
        'loss/emulated_loss',
        'loss/input_bytes',
        'loss/output_bytes',
        'sink/input_bytes',
        'sink/packets',
        'source/output_bytes',
      ])
    })

    test('samples at an interval, rounded up to the node’s own', async () => {
      const times = async (options: string): Promise<number[]> => {
        const samples = await node.follow(`/pipeline-runs/${runId}/telemetry?${options}`)
        const seen: number[] = []
        while (seen.length < 5) seen.push(Date.parse((await samples.next()).timestamp))
        samples.close()
        // The first comes at once.
        return seen.slice(2).map((time, index) => time - (seen[index + 1] as number))
      }
      const [each, third] = await Promise.all([times('options.intervalMs=0'), times('options.intervalMs=201')])
      // The node samples every 100 ms: no timer is early.
      for (const step of third as number[]) expect(step).toBeGreaterThan(250)
      expect(Math.min(...(each as number[]))).toBeLessThan(250)
    })

    test('what is no option is refused with its place', async () => {
      for (const options of ['options.intervalMs=-1', 'options.intervalMs=1s', 'options.roles=LOST']) {
        const refused = node.follow(`/pipeline-runs/${runId}/telemetry?${options}`)
        await expect(refused).rejects.toMatchObject({ code: 3, message: expect.stringMatching(/options[./]/) })
      }
    })
  })

  test('of an unknown run: NOT_FOUND', async () => {
    expect(await codeOf(node.follow('/pipeline-runs/none/telemetry'))).toBe(5)
  })
})

test('samples are kept of the last runs of a pipeline, and as long as the process lives', async () => {
  const directory = temporaryDirectory()
  const kept = 3
  let own = await runNode(directory, { 'run-logs': String(kept) })
  const id = await own.create(traffic())
  const runs: string[] = []
  for (let i = 0; i <= kept; i++) {
    runs.push(await own.start(id))
    await own.call('POST', `/pipelines/${id}/stop`)
    await own.when(id, ({ currentRun }) => currentRun.state === 'ENDED')
  }
  const last = runs.at(-1)
  expect(await codeOf(own.follow(`/pipeline-runs/${runs[0]}/telemetry`))).toBe(5)
  for (const run of runs.slice(1)) await (await own.follow(`/pipeline-runs/${run}/telemetry`)).next()
  await own.node.close()
  own = await runNode(directory, { 'run-logs': String(kept) })
  await expect(own.follow(`/pipeline-runs/${last}/telemetry`)).rejects.toMatchObject({
    code: 10,
    message: expect.stringContaining('the node was restarted since'),
  })
  expect(await codeOf(own.follow(`/pipeline-runs/${runs[1]}/telemetry`))).toBe(10)
  expect(await codeOf(own.follow(`/pipeline-runs/${runs[0]}/telemetry`))).toBe(5)
  expect((await own.call('GET', `/pipeline-runs/${runs[0]}`)).body.run).toMatchObject({
    id: runs[0],
    outcome: 'STOPPED',
  })
  await own.node.close()
})

test('a run that throws ends FAILED with the cause; other runs and the API go on; its sockets are closed', async () => {
  const peer = await Peer.open()
  const other = await node.create(traffic())
  const otherRun = await node.start(other)
  const id = await node.create(fragile(peer))
  const runId = await node.start(id)
  const port = await portOf(runId)
  const samples = await node.follow(`/pipeline-runs/${runId}/telemetry`)
  await peer.send(port, 'fine')
  await peer.hears(1)
  await peer.send(port, '!')
  const failed = await node.when(id, ({ started }) => !started)
  expect(failed.currentRun).toMatchObject({ id: runId, state: 'ENDED', outcome: 'FAILED' })
  expect(failed.currentRun.error).toContain('told to throw')
  const untilTheEnd = async () => {
    for (;;) await samples.next()
  }
  await expect(untilTheEnd()).rejects.toMatchObject({ code: 10 })
  expect(await node.get(other)).toMatchObject({ started: true, currentRun: { id: otherRun, state: 'RUNNING' } })
  const successor = await node.create({
    a: { udp: { local_address: `127.0.0.1:${port}`, output: 'x' } },
    b: { traffic_sink: { input: 'x' } },
  })
  await node.start(successor)
  for (const each of [other, successor]) await node.call('POST', `/pipelines/${each}/stop`)
  peer.close()
})

test('a run that does not stop within its instructionsTimeout is killed', async () => {
  const peer = await Peer.open()
  const id = await node.create(fragile(peer), { instructionsTimeout: 1 })
  const runId = await node.start(id)
  const port = await portOf(runId)
  await peer.send(port, '?')
  expect((await node.call('POST', `/pipelines/${id}/stop`)).status).toBe(200)
  const killed = await node.when(id, ({ started }) => !started)
  expect(killed.currentRun).toMatchObject({ id: runId, outcome: 'FAILED' })
  expect(killed.currentRun.error).toContain('instructionsTimeout')
  peer.close()
})

test('a run that does not take a change over within its instructionsTimeout: 504, the settings stay, and it is ended', async () => {
  const peer = await Peer.open()
  const id = await node.create(fragile(peer), { instructionsTimeout: 1 })
  const runId = await node.start(id)
  await peer.send(await portOf(runId), '?')
  const before = await node.get(id)
  const { front, trigger } = fragile(peer)
  const marked = { front, trigger: { test_trigger: { ...trigger.test_trigger, mark: 66 } } }
  const { status, body } = await node.call('PUT', `/pipelines/${id}`, settingsOf(marked, { instructionsTimeout: 30 }))
  expect([status, body.code]).toEqual([504, 4])
  expect(body.message).toContain('within 1 s (instructionsTimeout)')
  expect(before.currentRun).toMatchObject({ id: runId, state: 'RUNNING' })
  const after = await node.when(id, ({ started }) => !started)
  expect(after).toEqual({ ...before, started: false, currentRun: after.currentRun })
  expect(after.currentRun).toMatchObject({
    id: runId,
    outcome: 'FAILED',
    error: 'the run did not take a change over within 1 s (instructionsTimeout) and was ended',
  })
  peer.close()
})

test('the restart policy follows a failure with a new run', async () => {
  const peer = await Peer.open()
  const id = await node.create(fragile(peer), { restartPolicy: { onFailure: { maxRestarts: 1 } } })
  const runId = await node.start(id)
  await peer.send(await portOf(runId), '!')
  const again = await node.when(id, ({ currentRun }) => currentRun.id !== runId && currentRun.state === 'RUNNING')
  expect(again.started).toBe(true)
  await node.call('POST', `/pipelines/${id}/stop`)
  await node.when(id, ({ started }) => !started)
  peer.close()
})
