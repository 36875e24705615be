/** Bare servers that answer with given bytes, for the API benches: uWebSockets.js for HTTP, @grpc/grpc-js for gRPC. */

import * as uWS from 'uWebSockets.js'
import { readFileSync } from 'node:fs'
import * as grpc from '@grpc/grpc-js'

/** What to serve, as JSON on standard input; bytes are base64. */
export interface BareAnswers {
  /** REST bodies by route pattern, with their headers. */
  rest?: Record<string, { headers: Record<string, string>; body: string }>
  /** An event stream: everyone who asks /events gets `event` N times at a POST /publish/N. */
  event?: string
  /** gRPC answers by path. */
  grpc?: Record<string, string>
}

function http({ rest = {}, event }: BareAnswers): Promise<number> {
  const app = uWS.App()
  for (const [pattern, { headers, body }] of Object.entries(rest)) {
    app.get(pattern, (response) => {
      response.cork(() => {
        response.writeStatus('200 OK')
        for (const [name, value] of Object.entries(headers)) response.writeHeader(name, value)
        response.end(body)
      })
    })
  }
  if (event !== undefined) {
    const bytes = Buffer.from(event, 'base64')
    const streams = new Set<uWS.HttpResponse>()
    app.get('/events', (response) => {
      response.onAborted(() => streams.delete(response))
      response.cork(() => {
        response.writeHeader('content-type', 'text/event-stream').writeHeader('cache-control', 'no-store')
        response.write(': ready\n\n')
      })
      streams.add(response)
    })
    app.post('/publish/:events', (response, request) => {
      response.onAborted(() => undefined)
      const events = Number(request.getParameter(0))
      // Not here, where the loop's only cork is this response's: every write would be three small sends.
      setImmediate(() => {
        for (let event = 0; event < events; event++) {
          for (const stream of streams) stream.cork(() => stream.write(bytes))
        }
        response.cork(() => response.end())
      })
    })
  }
  return new Promise((resolve) => {
    app.listen('127.0.0.1', 0, (socket) => resolve(uWS.us_socket_local_port(socket as uWS.us_listen_socket)))
  })
}

function rpc(answers: Record<string, string>): Promise<number> {
  const server = new grpc.Server()
  const pass = (bytes: Buffer): Buffer => bytes
  const definition: Record<string, grpc.MethodDefinition<Buffer, Buffer>> = {}
  const handlers: grpc.UntypedServiceImplementation = {}
  for (const [path, answer] of Object.entries(answers)) {
    const bytes = Buffer.from(answer, 'base64')
    const codec = {
      requestSerialize: pass,
      requestDeserialize: pass,
      responseSerialize: pass,
      responseDeserialize: pass,
    }
    definition[path] = { path, requestStream: false, responseStream: false, ...codec }
    handlers[path] = (_: unknown, callback: grpc.sendUnaryData<Buffer>) => callback(null, bytes)
  }
  server.addService(definition, handlers)
  return new Promise((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', grpc.ServerCredentials.createInsecure(), (error, port) => {
      if (error === null) resolve(port)
      else reject(error)
    })
  })
}

const answers = JSON.parse(readFileSync(0, 'utf8')) as BareAnswers
const port = answers.grpc === undefined ? await http(answers) : await rpc(answers.grpc)
console.log(`ready ${port}`)
