/** A real node for tests of its API: own data directory, free ports, test components; and a client of its REST API. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadConfig } from '../../src/node/config.ts'
import { createLog } from '../../src/node/log.ts'
import { type StartedNode, startNode } from '../../src/node/node.ts'
import { registry, testPool } from '../dataplane/running.ts'

/** A directory that lasts as long as the test file. */
export function temporaryDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'penstock-test-'))
  process.on('exit', () => rmSync(directory, { recursive: true, force: true }))
  return directory
}

/** Starts a node in this process. What it logs is kept, not printed. */
export async function runNode(dataDirectory: string, flags: Record<string, string> = {}): Promise<RunningNode> {
  const { config } = loadConfig({
    flags: { 'data-dir': dataDirectory, http: '127.0.0.1:0', grpc: '127.0.0.1:0', ...flags },
  })
  const lines: string[] = []
  const log = createLog({ level: 'info', format: 'json', destination: { write: (line) => void lines.push(line) } })
  return new RunningNode(await startNode(config, { log, pool: testPool(), registry }), lines)
}

export interface Answer {
  status: number
  // biome-ignore lint/suspicious/noExplicitAny: JSON as it came over the wire
  body: any
}

export class RunningNode {
  readonly node: StartedNode
  readonly logged: readonly string[]
  constructor(node: StartedNode, logged: readonly string[]) {
    this.node = node
    this.logged = logged
  }

  get url(): string {
    return `http://${this.node.http}/v1/nodes/${this.node.id}`
  }

  get streams(): string {
    return `http://${this.node.http}/v1/streams/nodes/${this.node.id}`
  }

  /** Calls below /v1/nodes/{node_id}, or any path that begins with http. */
  async call(method: string, path: string, body?: unknown): Promise<Answer> {
    const response = await fetch(path.startsWith('http') ? path : `${this.url}${path}`, {
      method,
      ...(body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
    })
    return { status: response.status, body: await response.json() }
  }

  /** Creates a pipeline; returns its id. */
  async create(pipeline: unknown, settings: Record<string, unknown> = {}): Promise<string> {
    const { status, body } = await this.call('POST', '/pipelines', settingsOf(pipeline, settings))
    if (status !== 200) throw new Error(`create answered ${status}: ${body.message}`)
    return body.pipeline.id
  }

  /** Starts a pipeline; returns its run's id. */
  async start(id: string): Promise<string> {
    const { status, body } = await this.call('POST', `/pipelines/${id}/start`)
    if (status !== 200) throw new Error(`start answered ${status}: ${body.message}`)
    return body.runId
  }

  async get(id: string) {
    return (await this.call('GET', `/pipelines/${id}`)).body.pipeline
  }

  /** Follows a stream below /v1/streams/nodes/{node_id} once it is ready. */
  async follow(path: string): Promise<EventStream> {
    const stream = new EventStream()
    await stream.open(`${this.streams}${path}`)
    return stream
  }

  /** Waits until the pipeline is as `condition` says, told by its stream of changes. */
  async when(id: string, condition: (pipeline: Answer['body']) => boolean): Promise<Answer['body']> {
    const events = await this.follow('/pipelines')
    try {
      for (let pipeline = await this.get(id); ; ) {
        if (condition(pipeline)) return pipeline
        const { update } = await events.next()
        if (update?.pipeline.id === id) pipeline = update.pipeline
      }
    } finally {
      events.close()
    }
  }
}

/** Create settings of a pipeline of these components. */
export function settingsOf(pipeline: unknown, settings: Record<string, unknown> = {}): Record<string, unknown> {
  return { name: 'test', jsonConfig: JSON.stringify({ engine_config: { pipeline } }), ...settings }
}

/** A pipeline that sends `mbit` into a sink. */
export const traffic = (mbit = 1) => ({
  source: { throughput_traffic_source: { output: 'a', throughput_mbit: mbit, payload_size: 200 } },
  sink: { traffic_sink: { input: 'a' } },
})

/** Server-sent events, one by one. */
export class EventStream {
  readonly #abort = new AbortController()
  #text = ''
  #reader: ReadableStreamDefaultReader<Uint8Array> | undefined

  async open(url: string): Promise<void> {
    const response = await fetch(url, { signal: this.#abort.signal })
    if (response.status !== 200) {
      const { code, message } = (await response.json()) as { code: number; message: string }
      throw Object.assign(new Error(message), { code, status: response.status })
    }
    this.#reader = response.body?.getReader() as ReadableStreamDefaultReader<Uint8Array>
    const first = await this.#block()
    if (first !== ': ready') throw new Error(`the stream began with ${first}`)
  }

  /** The next message; throws the error of an error event, with its `code`, and at the end of the stream. */
  async next(): Promise<Answer['body']> {
    for (;;) {
      const block = await this.#block()
      if (block.startsWith(':')) continue
      const data = JSON.parse(block.slice(block.indexOf('data:') + 5))
      if (block.startsWith('event: error')) throw Object.assign(new Error(data.message), { code: data.code })
      return data
    }
  }

  close(): void {
    this.#abort.abort()
  }

  async #block(): Promise<string> {
    for (;;) {
      const end = this.#text.indexOf('\n\n')
      if (end >= 0) {
        const block = this.#text.slice(0, end)
        this.#text = this.#text.slice(end + 2)
        return block.trim()
      }
      const { value, done } = await (this.#reader as ReadableStreamDefaultReader<Uint8Array>).read()
      if (done) throw new Error('the stream ended')
      this.#text += Buffer.from(value).toString('utf8')
    }
  }
}
