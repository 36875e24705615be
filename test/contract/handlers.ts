/** Handlers for tests of the listeners: they answer by what is asked, and keep what they saw. */
import { ServiceError } from '../../src/contract/errors.ts'
import type { CallContext, Handlers, Sink } from '../../src/contract/handlers.ts'
import { SharedMessage } from '../../src/contract/shared-message.ts'
import type {
  AuthenticationByRequestAnswer,
  AuthenticationByRequestRequest,
  Node,
  Pipeline,
  StreamPipelinesEvent,
} from '../../src/contract/types.ts'

export const node: Node = {
  id: 'n1',
  name: 'Node "one"',
  metadata: {
    items: {
      region: { stringValue: 'eu' },
      key: { bytesValue: Uint8Array.of(1, 2, 255) },
      big: { intValue: -(2n ** 60n) },
    },
  },
  online: true,
  services: ['HUB_SERVER', 'PIPELINES'],
  lastSeen: new Date('2026-01-02T03:04:05.678Z'),
}

export function pipeline(id: string): Pipeline {
  return {
    id,
    name: 'name of it',
    jsonConfig: '{"version":1}',
    restartPolicy: { onFailure: { maxRestarts: 3 } },
    startupPolicy: { manual: {} },
    defaultLoggingLevel: 'INFO',
    instructionsTimeout: 30,
    performanceMode: false,
    started: false,
  }
}

/** What the handlers saw, and the sinks they hold. */
export class Seen {
  readonly requests: unknown[] = []
  readonly calls: CallContext[] = []
  readonly answers: AuthenticationByRequestAnswer[] = []
  readonly reports: unknown[] = []
  /** Sinks of open streams by operation and key of the request. */
  readonly sinks = new Map<string, Sink<never>>()

  note(request: unknown, call: CallContext): void {
    this.requests.push(request)
    this.calls.push(call)
  }

  sink<M>(key: string): Sink<M> {
    const sink = this.sinks.get(key)
    if (sink === undefined) throw new Error(`no stream ${key} is open`)
    return sink as unknown as Sink<M>
  }

  hold(key: string, sink: Sink<never>): void {
    this.sinks.set(key, sink)
    sink.onClose(() => {
      this.sinks.delete(key)
    })
  }
}

/** Calls of getNode that are answered when told to, or given up when their callers are gone. */
export class HeldCalls {
  /** What answers them, by id of the node. */
  readonly calls = new Map<string, () => void>()
  /** Why callers were gone. */
  readonly reasons: unknown[] = []

  readonly getNode: Handlers['getNode'] = (request, call) =>
    new Promise((resolve, reject) => {
      const leave = call.onAbort((reason) => {
        this.reasons.push(reason)
        reject(reason)
      })
      this.calls.set(request.nodeId, () => {
        leave()
        resolve({ node })
      })
    })

  finish(id: string): void {
    this.calls.get(id)?.()
  }
}

export function handlers(seen: Seen): Partial<Handlers> {
  return {
    getNodes: async (request, call) => {
      seen.note(request, call)
      return { nodes: [node] }
    },
    getNode: async (request, call) => {
      seen.note(request, call)
      if (request.nodeId === 'bug') throw new TypeError('secret detail of a bug')
      if (request.nodeId === 'never') {
        await new Promise((_resolve, reject) =>
          call.signal.addEventListener('abort', () => reject(new ServiceError('CANCELLED', 'gone'))),
        )
      }
      if (request.nodeId !== 'n1') throw new ServiceError('NOT_FOUND', `no node ${request.nodeId} on this hub`)
      return { node }
    },
    setNode: async (request, call) => {
      seen.note(request, call)
      return { node: { ...node, name: request.name, metadata: request.metadata } }
    },
    disconnect: async (request, call) => {
      seen.note(request, call)
      return {}
    },
    createPipeline: async (request, call) => {
      seen.note(request, call)
      if (request.name === '') {
        const problems = [
          { pointer: '/name', message: 'must not be empty' },
          { pointer: '/jsonConfig/version', message: 'must be 1' },
        ]
        throw new ServiceError('INVALID_ARGUMENT', 'two things are wrong', { problems })
      }
      return { pipeline: { ...pipeline('p1'), name: request.name, jsonConfig: request.jsonConfig } }
    },
    startPipeline: async (request, call) => {
      seen.note(request, call)
      return { runId: `run of ${request.id ?? request.name}` }
    },
    stopPipeline: async (request, call) => {
      seen.note(request, call)
      return {}
    },
    streamPipelines: async (request, call, sink) => {
      seen.note(request, call)
      if (request.nodeId === 'unknown') throw new ServiceError('NOT_FOUND', 'no such node')
      seen.hold(`pipelines ${request.nodeId}`, sink as Sink<never>)
    },
    openLogStream: async (request, call, sink) => {
      seen.note(request, call)
      for (let line = 0n; line < (request.options?.lines ?? 0n); line++) {
        sink.send({ messages: [{ level: 'INFO', component: 'a', message: `line ${line}`, fields: {} }] })
      }
      sink.end()
    },
    authenticationByRequests: async (call, sink) => {
      seen.note(undefined, call)
      seen.hold('authentication', sink as Sink<never>)
      return {
        message: (answer) => {
          if (answer.requestId === 404n) throw new ServiceError('NOT_FOUND', 'no such request')
          seen.answers.push(answer)
        },
      }
    },
  }
}

export function created(id: string): SharedMessage<StreamPipelinesEvent> {
  return new SharedMessage<StreamPipelinesEvent>({ create: { pipeline: pipeline(id) } })
}

export function asks(requestId: bigint): AuthenticationByRequestRequest {
  return { node, requestId }
}
