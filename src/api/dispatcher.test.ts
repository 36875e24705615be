/** Where a call runs: here, elsewhere, or nowhere. */
import { expect, test } from 'vitest'
import { ServiceError } from '../contract/errors.ts'
import type { Handlers } from '../contract/handlers.ts'
import { loadOperations, type Operation } from '../contract/operations.ts'
import { Call } from './call.ts'
import { Dispatcher, type DispatcherOptions } from './dispatcher.ts'
import { HttpRoutes } from './http-routes.ts'

const call = new Call({ remoteAddress: '127.0.0.1', isLoopback: true }, 'internal')

function operation(name: string): Operation {
  const found = loadOperations().find((candidate) => candidate.name === name)
  if (found === undefined) throw new Error(`no operation ${name}`)
  return found
}

function dispatcher(options: Partial<DispatcherOptions>): Dispatcher {
  return new Dispatcher({ handlers: {}, report: () => undefined, ...options })
}

test('forward takes calls for other nodes, the rest runs here', async () => {
  const both = dispatcher({
    handlers: { startPipeline: async () => ({ runId: 'here' }) },
    forward: (_operation, request) =>
      (request as { nodeId: string }).nodeId === 'me' ? undefined : async () => ({ runId: 'there' }),
  })
  expect(await both.unary(operation('startPipeline'), { nodeId: 'me', id: 'p' }, call)).toEqual({ runId: 'here' })
  expect(await both.unary(operation('startPipeline'), { nodeId: 'other', id: 'p' }, call)).toEqual({ runId: 'there' })
})

test('authorize comes before any handler', async () => {
  let calls = 0
  const guarded = dispatcher({
    handlers: {
      disconnect: async () => {
        calls++
        return {}
      },
    },
    authorize: ({ name }) => {
      if (name === 'disconnect') throw new ServiceError('PERMISSION_DENIED', 'not for you')
    },
  })
  expect(() => guarded.unary(operation('disconnect'), {}, call)).toThrow(
    expect.objectContaining({ code: 'PERMISSION_DENIED' }),
  )
  expect(calls).toBe(0)
})

test('an operation without a handler is unimplemented, a handler without an operation a mistake', () => {
  expect(() => dispatcher({}).unary(operation('getNodes'), {}, call)).toThrow(
    expect.objectContaining({ code: 'UNIMPLEMENTED' }),
  )
  const stray = { getNodez: async () => ({}) } as unknown as Partial<Handlers>
  expect(() => dispatcher({ handlers: stray })).toThrow('getNodez')
})

test('a literal segment goes before a parameter, and back-tracking finds the rest', () => {
  const routes = new HttpRoutes(loadOperations())
  const names = (verb: string, path: string): unknown => {
    const match = routes.match(verb, path)
    return match.kind === 'route' ? [match.route.operation.name, match.path] : match.kind
  }
  expect(names('POST', '/v1/nodes/search')).toEqual(['getNodes', {}])
  expect(names('GET', '/v1/nodes/search')).toBe('method')
  expect(names('GET', '/v1/nodes/search/pipelines')).toEqual(['getPipelines', { node_id: 'search' }])
  expect(names('GET', '/v1/nodes/a%20b/pipelines/c')).toEqual(['getPipelineById', { node_id: 'a b', id: 'c' }])
  expect(names('GET', '/v1/nodes//pipelines')).toEqual(['getPipelines', { node_id: '' }])
  expect(names('GET', '/v1//nodes')).toBe('none')
  expect(names('GET', '/v1/nodes/%zz')).toBe('malformed')
})

test('the signal of a call that is over is aborted, whenever it is asked for', () => {
  const over = new Call({ remoteAddress: '', isLoopback: true }, 'internal')
  over.abort()
  expect(over.signal.aborted).toBe(true)
})
