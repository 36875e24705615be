/**
 * What uWebSockets.js gets wrong, as docs/limits.md tells it. A test that fails here after an update of the library is good news: the page,
 * and what works around the fault, can go.
 */
import { once } from 'node:events'
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Access } from '../../src/api/access.ts'
import { Dispatcher } from '../../src/api/dispatcher.ts'
import { HttpListener } from '../../src/api/http.ts'
import { handlers, Seen } from '../contract/handlers.ts'

const seen = new Seen()
const dispatcher = new Dispatcher({ handlers: handlers(seen), report: (error) => seen.reports.push(error) })
let listener: HttpListener
let port: number

beforeAll(async () => {
  listener = new HttpListener({ dispatcher, access: new Access(), address: '127.0.0.1', port: 0 })
  ;({ port } = await listener.start())
})

afterAll(() => listener.stop())

/** Sends pieces, each in a packet of its own; what came back by the time `isOver` says so or the other side has closed. */
async function talk(
  pieces: readonly string[],
  isOver: (received: string) => boolean,
): Promise<{ received: string; isClosed: boolean }> {
  const socket = connect(port, '127.0.0.1')
  socket.setNoDelay(true)
  let received = ''
  const over = new Promise<boolean>((resolve) => {
    socket.on('data', (bytes) => {
      received += bytes
      if (isOver(received)) resolve(false)
    })
    socket.on('error', () => undefined)
    socket.on('close', () => resolve(true))
  })
  await once(socket, 'connect')
  for (const [index, piece] of pieces.entries()) {
    // The packet before has been read once another connection behind it was answered.
    if (index > 0) await (await fetch(`http://127.0.0.1:${port}/v1/nodes`)).arrayBuffer()
    socket.write(piece)
  }
  const isClosed = await over
  socket.destroy()
  return { received, isClosed }
}

const statuses = (text: string) => [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status))
const count = (number: number) => (text: string) => statuses(text).length >= number
const request = (line: string, fields: readonly string[] = [], body = '') =>
  [line, 'host: localhost', ...fields, '', body].join('\r\n')
const ok = request('GET /v1/nodes HTTP/1.1')

describe('requests', () => {
  test('one that comes while another of its connection waits for its answer ends the connection, both unanswered', async () => {
    const { received, isClosed } = await talk([request('GET /v1/nodes/never HTTP/1.1') + ok], count(1))
    expect([received, isClosed]).toEqual(['', true])
    // Those answered at once are answered in turn.
    expect(statuses((await talk([ok + ok + ok], count(3))).received)).toEqual([200, 200, 200])
  })

  test('whose first packet ends after the path is refused as HTTP/1.0', async () => {
    const at = ok.indexOf('HTTP/1.1')
    for (const cut of [at, at + 1, at + 5, at + 8, at + 9]) {
      const { received, isClosed } = await talk([ok.slice(0, cut), ok.slice(cut)], () => false)
      expect([cut, statuses(received), isClosed]).toEqual([cut, [505], true])
    }
    for (const cut of [1, 4 + '/v1'.length, at + 10, ok.length - 1]) {
      expect([cut, statuses((await talk([ok.slice(0, cut), ok.slice(cut)], count(1))).received)]).toEqual([cut, [200]])
    }
  })

  test('of HTTP/1.0, and for * or a whole URL, are not served', async () => {
    for (const line of ['GET /v1/nodes HTTP/1.0', 'OPTIONS * HTTP/1.1', 'GET http://localhost/v1/nodes HTTP/1.1']) {
      expect([line, statuses((await talk([request(line)], () => false)).received)]).toEqual([line, [505]])
    }
  })
})

test('a request without any header field, or whose fields are malformed, is never answered', async () => {
  const malformed = ['x : y', 'x', 'x: a\r\n b', 'x: a\rb'].map((field) => request('GET /v1/nodes HTTP/1.1', [field]))
  const silent = ['GET /v1/nodes HTTP/1.1\r\n\r\n', `\r\n${ok}`, ...malformed]
  // Closed by the library's timeout of ten seconds for requests that do not come in.
  const answers = await Promise.all(silent.map((text) => talk([text], () => false)))
  expect(answers).toEqual(silent.map(() => ({ received: '', isClosed: true })))
  expect(statuses((await talk(['GET /v1/nodes HTTP/1.1\r\naccept: */*\r\n\r\n'], count(1))).received)).toEqual([400])
})

describe('bodies', () => {
  const post = 'POST /v1/hub-client/disconnect HTTP/1.1'
  const chunked = ['transfer-encoding: chunked']

  test('in chunks are read, but with a chunk extension never end, and with trailers end the connection', async () => {
    expect(statuses((await talk([request(post, chunked, '2\r\n{}\r\n0\r\n\r\n')], count(1))).received)).toEqual([200])
    seen.requests.length = 0
    const extended = await talk([request(post, chunked, '2;a=b\r\n{}\r\n0\r\n\r\n')], () => false)
    // Closed by the library's timeout of ten seconds for requests that do not come in.
    expect([extended, seen.requests]).toEqual([{ received: '', isClosed: true }, []])
    const trailed = await talk([request(post, chunked, '2\r\n{}\r\n0\r\nx: y\r\n\r\n')], () => false)
    expect([statuses(trailed.received).at(-1), trailed.isClosed]).toEqual([505, true])
  })

  test('that announce a body are asked for it before they are looked at', async () => {
    const fields = ['expect: 100-continue', 'content-length: 5000000']
    const { received } = await talk([request(post, fields)], count(2))
    expect(statuses(received)).toEqual([100, 413])
  })

  test.each([
    ['two lengths count as the first', ['content-length: 2', 'content-length: 5'], '{}', 200],
    ['any encoding counts as chunked', ['transfer-encoding: gzip'], '2\r\n{}\r\n0\r\n\r\n', 200],
    ['as does one that says there is none', ['transfer-encoding: identity'], '2\r\n{}\r\n0\r\n\r\n', 200],
    ['an empty length is none', ['content-length: '], '', 200],
    ['but a length and an encoding are refused', ['content-length: 2', ...chunked], '{}', 400],
    ['as is a length that is no number', ['content-length: 0x2'], '{}', 400],
    ['or a list of them', ['content-length: 2, 2'], '{}', 400],
  ])('%s', async (_, fields, body, status) => {
    expect(statuses((await talk([request(post, fields, body)], count(1))).received)).toEqual([status])
  })
})
