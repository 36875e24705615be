import type { Client, CreatePipelineRequest, Pipeline } from '@penstock/client'
import { expect, it } from 'vitest'
import { Application } from './apply.ts'

const COUNT = 200

it('compares each pipeline with those of its name alone, of however many are created', async () => {
  const made: Pipeline[] = []
  let compared = 0
  const client = {
    createPipeline: async ({ name, jsonConfig }: CreatePipelineRequest) => {
      const pipeline = {
        id: `id ${made.length}`,
        name,
        started: false,
        restartPolicy: { mode: 'NEVER' },
        get jsonConfig() {
          compared++
          return jsonConfig
        },
      } as unknown as Pipeline
      made.push(pipeline)
      return { pipeline }
    },
    getPipelines: async () => ({ pipelines: made }),
  } as unknown as Client
  const wanted = Array.from({ length: COUNT }, (_, i) => ({
    settings: { name: `p${i}`, restartPolicy: { mode: 'NEVER' }, jsonConfig: '{}' },
    placed: () => [],
    file: 'many.yaml',
  })) as unknown as Parameters<Application['run']>[0]
  const signal = new AbortController().signal
  const application = new Application(client, 'n', [], { remove: [], signal, report: () => {} })
  await application.run(wanted)
  expect(application.applied.map(({ id, result }) => [id, result])).toEqual(made.map(({ id }) => [id, 'created']))
  expect(compared).toBe(COUNT)
})

it('waits for the one that others leave of what they have created at the same time', async () => {
  const settings = { name: 'p', restartPolicy: { mode: 'NEVER' }, jsonConfig: '{}' }
  const [first, second] = ['first', 'second'].map((id) => ({
    ...settings,
    id,
    started: false,
  })) as unknown as Pipeline[]
  const lists = [[first, second], [first]]
  const client = { getPipelines: async () => ({ pipelines: lists.shift() }) } as unknown as Client
  const wanted = [{ settings, placed: () => [], file: 'p.yaml' }] as unknown as Parameters<Application['run']>[0]
  const signal = new AbortController().signal
  const before = [first, second] as Pipeline[]
  const application = new Application(client, 'n', before, { remove: [], signal, report: () => {} })
  await application.run(wanted)
  expect(application.applied).toMatchObject([{ id: 'first', result: 'unchanged' }])
  expect(lists).toEqual([])
  // Others than the file asks for are nobody's but who made them.
  const odd = [first, { ...second, jsonConfig: '{"version":1}' }] as Pipeline[]
  const refused = new Application(client, 'n', odd, { remove: [], signal, report: () => {} })
  await refused.run(wanted)
  expect(refused.applied).toMatchObject([{ result: 'refused', error: expect.stringContaining('2 pipelines') }])
})
