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
