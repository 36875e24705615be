/** `$schema` of a configuration, and the schema itself, wherever configurations are read and written: the API and the command line. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { pipelineConfigSchema } from '../../src/node/config-schema.ts'
import { type RunningNode, runNode, temporaryDirectory } from '../api/running-node.ts'
import { penstock } from '../cli/cli.ts'

const pipeline = {
  source: { uniform_traffic_source: { output: 'a', total_packets: 10, interval: 1 } },
  sink: { traffic_sink: { input: 'a' } },
}
const jsonConfig = JSON.stringify({ $schema: './pipeline-config.schema.json', engine_config: { pipeline } })

describe('the API', () => {
  let node: RunningNode
  beforeAll(async () => {
    node = await runNode(temporaryDirectory())
  })
  afterAll(() => node.node.close())

  test('validate, create, update: it is kept as it was given, and a run need not know of another one', async () => {
    const verdict = await node.call('POST', '/pipelines:validate', { name: 'x', jsonConfig })
    expect(verdict.body).toEqual({ valid: true, problems: [], warnings: [] })
    const { body } = await node.call('POST', '/pipelines', { name: 'x', jsonConfig })
    expect(body.pipeline.jsonConfig).toBe(jsonConfig)
    const other = JSON.stringify({ $schema: 'https://example.org/other.json', engine_config: { pipeline } })
    const settings = { name: 'x', jsonConfig: other, instructionsTimeout: 30 }
    const at = `/pipelines/${body.pipeline.id}`
    await node.start(body.pipeline.id)
    const plan = await node.call('POST', `${at}/explain-update`, { ...settings, defaultLoggingLevel: 'INFO' })
    expect(plan.body.restart).toEqual([])
    const updated = await node.call('PUT', at, settings)
    expect([updated.status, updated.body.pipeline.jsonConfig]).toEqual([200, other])
  })
})

describe('the command line', () => {
  const file = join(temporaryDirectory(), 'config.json')
  beforeAll(() => writeFileSync(file, jsonConfig))

  test.each([
    ['validate', file],
    ['simulate', file, '--duration', '1s'],
    ['run', file],
  ])('%s takes it', async (...args) => {
    const { code, stderr } = await penstock(args)
    expect([code, stderr.includes('$schema')]).toEqual([0, false])
  })

  test('schema prints the schema', async () => {
    const { code, stdout } = await penstock(['schema'])
    expect([code, JSON.parse(stdout)]).toEqual([0, JSON.parse(JSON.stringify(pipelineConfigSchema()))])
  })
})
