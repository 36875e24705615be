/** The API client against a real HTTP server, and the event stream parser against every way a stream can be cut. */
import { once } from 'node:events'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import { ApiClient, parseEvents } from '../../src/cli/client.ts'
import { table } from '../../src/cli/terminal.ts'
import { setVariables } from '../../src/cli/variables.ts'

let server: Server | undefined
afterEach(() => server?.close())

async function serve(listener: RequestListener): Promise<ApiClient> {
  server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return new ApiClient(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`, { token: 'secret' })
}

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = []
  for await (const item of items) all.push(item)
  return all
}

describe('parseEvents', () => {
  const stream = ': ready\r\n\r\ndata: {"a":1}\n\n: keep-alive\n\nevent: error\rdata: 1\rdata:2é\r\rdata: cut off'
  const expected = [
    { event: 'message', data: '{"a":1}' },
    { event: 'error', data: '1\n2é' },
  ]

  it('gives the same events wherever the bytes are cut', async () => {
    const bytes = new TextEncoder().encode(stream)
    for (let size = 1; size <= bytes.length; size++) {
      async function* chunks() {
        for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
      }
      expect(await collect(parseEvents(chunks())), `chunks of ${size}`).toEqual(expected)
    }
  })
})

describe('ApiClient', () => {
  it('sends what it is given, escaped, with the token', async () => {
    const client = await serve((request, response) => {
      expect(request.headers.authorization).toBe('Bearer secret')
      response.end(JSON.stringify({ pipeline: { id: request.url, name: request.method } }))
    })
    expect(await client.getPipelineByName('n', 'a/b ?')).toEqual({
      id: '/v1/nodes/n/pipelines-by-name/a%2Fb%20%3F',
      name: 'GET',
    })
  })

  it('throws what the node answers', async () => {
    const client = await serve((_, response) => {
      response.writeHead(409).end(JSON.stringify({ code: 10, message: 'port taken', details: [] }))
    })
    await expect(client.startPipeline('n', 'p')).rejects.toMatchObject({ code: 'ABORTED', message: 'port taken' })
  })

  it('says so when what answers is no node', async () => {
    const client = await serve((_, response) => response.end('<html>'))
    await expect(client.getLocalNodeId()).rejects.toThrow('unexpected answer: 200 OK')
  })

  it('ends a stream with the error that its last event tells', async () => {
    const client = await serve((_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.end(': ready\n\ndata: {"n":1}\n\nevent: error\ndata: {"code":10,"message":"run ended"}\n\n')
    })
    const seen: unknown[] = []
    const reading = (async () => {
      for await (const event of client.stream('/x', new AbortController().signal)) seen.push(event)
    })()
    await expect(reading).rejects.toMatchObject({ code: 'ABORTED', message: 'run ended' })
    expect(seen).toEqual([{ n: 1 }])
  })

  it('ends a stream quietly when it is aborted', async () => {
    const client = await serve((_, response) => {
      response.writeHead(200)
      response.write('data: 1\n\n')
    })
    const controller = new AbortController()
    const seen: unknown[] = []
    for await (const event of client.stream('/x', controller.signal)) {
      seen.push(event)
      controller.abort()
    }
    expect(seen).toEqual([1])
  })
})

describe('setVariables', () => {
  const config = JSON.stringify({
    engineConfig: { pipeline: { 'a/b': { uniformLoss: { lossProb: 0.1, seed: 1 } }, text: { name: '7' } } },
    variables: [
      { id: 'loss', paths: ['/engine_config/pipeline/a~1b/uniform_loss/loss_prob'] },
      { id: 'all', paths: ['/engine_config/pipeline/a~1b/uniform_loss/seed', '/engine_config/pipeline/text/name'] },
      { id: 'lost', paths: ['/engine_config/pipeline/nowhere/x'] },
      { id: 'empty' },
    ],
  })
  const written = (...assignments: string[]) => JSON.parse(setVariables(config, assignments)).engineConfig.pipeline

  it('writes to every path, in the casing of the configuration, keeping text text', () => {
    expect(written('loss=0.5')['a/b'].uniformLoss).toEqual({ lossProb: 0.5, seed: 1 })
    expect(written('all=9')).toMatchObject({ 'a/b': { uniformLoss: { seed: 9 } }, text: { name: '9' } })
  })

  it.each([
    ['los=1', 'Did you mean "loss"?'],
    ['loss', 'write it variable=value'],
    ['lost=1', 'does not exist in the configuration'],
    ['empty=1', 'points to nothing'],
  ])('refuses %s', (assignment, message) => {
    expect(() => setVariables(config, [assignment])).toThrow(message)
  })
})

describe('table', () => {
  it('keeps to the width: wraps what may wrap, cuts what may not', () => {
    const columns = [{ title: 'KEY' }, { title: 'TEXT', wrap: true }]
    const rows = [['a', 'one two three four five six seven eight nine ten']]
    for (const width of [40, 30, 20]) {
      const lines = table(columns, rows, width).split('\n')
      expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(width)
    }
    expect(table([{ title: 'N', align: 'right' }], [['1'], ['22']])).toBe(' N\n 1\n22')
    expect(table([{ title: 'KEY' }], [['abcdefghijkl']], 9)).toBe('KEY\nabcdefgh…')
  })
})
