/** Calls a node from wherever it was started: takes one JSON command a line, answers each with one JSON line. */
import { request } from 'node:http'
import { connect } from 'node:net'
import { createInterface } from 'node:readline'
import * as grpc from '@grpc/grpc-js'
import { WebSocket } from 'ws'

/** Open streams by the id of the command that opened them: what came so far, and whether they are over. */
const streams = new Map()
const clients = new Map()

const pass = (bytes) => bytes

/** The text that came by now on a stream that stays open counts as its body; it can be read on with `read`. */
function http({ id, method = 'GET', url, headers = {}, body, stream = false }) {
  return new Promise((resolve) => {
    const call = request(url, { method, headers, agent: false }, (response) => {
      response.setEncoding('utf8')
      const state = keep(id)
      response.on('data', (text) => state.push(text))
      response.on('close', () => state.end())
      if (stream && response.statusCode === 200) resolve({ status: 200 })
      else response.on('end', () => resolve({ status: response.statusCode, body: state.text }))
    })
    call.on('error', (error) => resolve({ error: error.message }))
    call.end(body)
  })
}

function websocket({ id, url, headers = {}, protocol }) {
  return new Promise((resolve) => {
    const socket = new WebSocket(url, protocol ?? [], { headers })
    const state = keep(id)
    socket.on('open', () => resolve({ status: 101 }))
    socket.on('message', (data) => state.push(`${data}\n`))
    socket.on('close', (code) => {
      state.push(`close ${code}\n`)
      state.end()
    })
    socket.on('unexpected-response', (_, response) => {
      resolve({ status: response.statusCode })
      response.destroy()
    })
    socket.on('error', (error) => resolve({ error: error.message }))
  })
}

/** An empty request message is all that access needs to look at. */
function rpc({ id, address, path, token, stream = false }) {
  return new Promise((resolve) => {
    if (!clients.has(address)) clients.set(address, new grpc.Client(address, grpc.credentials.createInsecure()))
    const metadata = new grpc.Metadata()
    if (token !== undefined) metadata.set('authorization', `Bearer ${token}`)
    const call = clients.get(address).makeBidiStreamRequest(path, pass, pass, metadata)
    const state = keep(id)
    call.on('metadata', () => {
      if (stream) resolve({ open: true })
    })
    call.on('data', () => state.push('message\n'))
    call.on('error', () => {})
    call.on('status', ({ code, details }) => {
      state.push(`status ${code}\n`)
      state.end()
      resolve({ code, details })
    })
    call.write(Buffer.alloc(0))
    call.end()
  })
}

/** Sends the head of a request and the beginning of its body; `finish` sends the rest. */
function held({ id, host, port, head, begin }) {
  return new Promise((resolve) => {
    const state = keep(id)
    state.socket = connect(port, host, () => {
      state.socket.write(`${head.join('\r\n')}\r\n\r\n${begin}`, () => resolve({ open: true }))
    })
    state.socket.on('data', (text) => state.push(String(text)))
    state.socket.on('close', () => state.end())
    state.socket.on('error', (error) => resolve({ error: error.message }))
  })
}

async function finish({ stream, rest }) {
  streams.get(stream).socket.write(rest)
  return {}
}

function keep(id) {
  const state = {
    text: '',
    over: false,
    waiting: [],
    push(text) {
      state.text += text
      for (const wake of state.waiting.splice(0)) wake()
    },
    end() {
      state.over = true
      for (const wake of state.waiting.splice(0)) wake()
    },
  }
  streams.set(id, state)
  return state
}

/** Everything a stream said, once it holds `until` or is over. */
async function read({ stream, until }) {
  const state = streams.get(stream)
  while (!state.text.includes(until) && !state.over) await new Promise((resolve) => state.waiting.push(resolve))
  return { text: state.text, over: state.over }
}

const kinds = { http, websocket, rpc, held, finish, read }

for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line)
  kinds[command.kind](command).then((answer) => {
    process.stdout.write(`${JSON.stringify({ id: command.id, ...answer })}\n`)
  })
}
process.exit()
