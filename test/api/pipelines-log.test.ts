/** The node's log has a line for each start, end, failure, restart and giving up of every pipeline, with fields. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { linesOf, logged } from './log-lines.ts'
import { runNode, settingsOf, temporaryDirectory, traffic } from './running-node.ts'

const listening = (port: number) => ({
  a: { udp: { local_address: `127.0.0.1:${port}`, output: 'x' } },
  b: { traffic_sink: { input: 'x' } },
})

/** A UDP port that somebody else has. */
async function takenPort(): Promise<{ port: number; free(): Promise<void> }> {
  const socket = createSocket('udp4').bind(0, '127.0.0.1')
  await once(socket, 'listening')
  return { port: socket.address().port, free: () => new Promise((resolve) => socket.close(() => resolve())) }
}

test('start and end', async () => {
  const node = await runNode(temporaryDirectory())
  const id = await node.create(traffic(), { name: 'flow', cpuPin: 0 })
  const run = await node.start(id)
  await node.call('POST', `/pipelines/${id}/stop`)
  await logged(node, { msg: 'pipeline ended' })
  expect(linesOf(node, { pipeline: id })).toEqual([
    { level: 'info', time: expect.any(String), pipeline: id, name: 'flow', run, cpu: 0, msg: 'pipeline started' },
    {
      level: 'info',
      time: expect.any(String),
      pipeline: id,
      name: 'flow',
      run,
      outcome: 'STOPPED',
      msg: 'pipeline ended',
    },
  ])
  await node.node.close()
})

test('lines of a run log, and of a file of its log filters, that the disk does not take: which file, how many, why', async () => {
  const directory = temporaryDirectory()
  const node = await runNode(directory)
  // A directory cannot be made where a file is.
  writeFileSync(join(directory, 'logs'), '')
  writeFileSync(join(directory, 'file'), '')
  const file = join(directory, 'file', 'run.log')
  const filters = [{ level: 'STATE', actions: { actions: ['file', 'log'] }, file, mode: 'APPEND' }]
  const jsonConfig = JSON.stringify({ engine_config: { pipeline: traffic(), log_filters: filters } })
  const id = await node.create(traffic(), { name: 'flow', jsonConfig })
  const run = await node.start(id)
  const lost = { level: 'error', time: expect.any(String), run, lines: expect.any(Number) }
  const msg = expect.stringContaining('log lines of a run are lost: make room on the disk of that file')
  const error = expect.stringContaining('ENOTDIR')
  expect(await logged(node, { file: join(directory, 'logs', `${run}.jsonl`) })).toEqual([
    { ...lost, file: join(directory, 'logs', `${run}.jsonl`), error, msg },
  ])
  expect(await logged(node, { file })).toEqual([{ ...lost, pipeline: id, name: 'flow', file, error, msg }])
  await node.node.close()
})

test('an auto pipeline that fails as the node starts, its restarts, and the giving up', async () => {
  const directory = temporaryDirectory()
  const { port, free } = await takenPort()
  let node = await runNode(directory)
  const startupPolicy = { auto: {} }
  const silent = await node.create(listening(port), { name: 'once', startupPolicy })
  const restarted = await node.create(listening(port), {
    name: 'twice',
    startupPolicy,
    restartPolicy: { onFailure: { maxRestarts: 1 } },
  })
  await node.node.close()
  node = await runNode(directory)
  const [failed] = await logged(node, { pipeline: silent, msg: 'pipeline failed' })
  expect(failed).toMatchObject({ level: 'error', name: 'once', outcome: 'FAILED', run: expect.any(String) })
  expect(failed?.error).toContain(`${port}`)
  await logged(node, { pipeline: restarted, level: 'error', restarts: 1 })
  const about = { pipeline: restarted, name: 'twice' }
  expect(linesOf(node, { pipeline: restarted })).toMatchObject([
    { ...about, level: 'error', msg: 'pipeline failed', outcome: 'FAILED', error: failed?.error },
    { ...about, level: 'warn', msg: 'pipeline will be started again', attempt: 1, most: 1, delay_ms: 1000 },
    { ...about, level: 'error', msg: 'pipeline failed' },
    { ...about, level: 'error', error: failed?.error, restarts: 1 },
  ])
  expect(linesOf(node, { pipeline: silent })).toHaveLength(1)
  await free()
  await node.node.close()
})

test('a failed start that somebody asked for', async () => {
  const { port, free } = await takenPort()
  const node = await runNode(temporaryDirectory())
  const asked = await node.create(listening(port), { name: 'asked' })
  expect((await node.call('POST', `/pipelines/${asked}/start`)).status).toBe(409)
  expect(await logged(node, { pipeline: asked })).toMatchObject([
    { level: 'error', msg: 'pipeline failed', name: 'asked' },
  ])
  await free()
  await node.node.close()
})

test('what a configuration holds is never in the log', async () => {
  const directory = temporaryDirectory()
  const first = await runNode(directory)
  const key = '000102030405060708090a0b0c0d0e0f'
  const pipeline = {
    source: { throughput_traffic_source: { output: 'a', throughput_mbit: 1, payload_size: 200 } },
    lock: { ssl_encrypt: { input: 'a', output: 'b', aes_128_gcm_sha_256: { key } } },
    sink: { traffic_sink: { input: 'b' } },
  }
  const { body } = await first.call('POST', '/pipelines', settingsOf(pipeline, { name: 'sealed' }))
  await first.start(body.pipeline.id)
  await first.node.close()
  expect(first.logged.join('')).toContain('pipeline started')
  expect(first.logged.join('')).not.toContain(key)
})
