/** Hubs, nodes and sessions for tests of the link. */
import { SimulatedClock } from 'xstate'
import type { HubOptions } from './handshake-hub.ts'
import type { NodeHandshakeOptions } from './handshake-node.ts'
import { newIdentity } from './identity.ts'
import type { Admission, HubPolicy, LinkEvent, LinkSession, LinkStatus, LinkStream, NodeRecord } from './link.ts'
import { MemoryTransport } from './pair.ts'
import { Session, type SessionOptions } from './session.ts'

export const record: NodeRecord = {
  name: 'north',
  metadata: {
    items: {
      region: { stringValue: 'eu' },
      serial: { bytesValue: new Uint8Array([1, 2, 3]) },
      rank: { intValue: -(2n ** 62n) - 1n },
      load: { doubleValue: 0.25 },
      spare: { boolValue: false },
    },
  },
  services: ['PIPELINES'],
}

export const admitted: Admission = { admitted: true }

/** A hub that lets everyone in, and what has happened at it. */
export class TestHub {
  readonly identity = newIdentity()
  readonly clock = new SimulatedClock()
  readonly events: LinkEvent[] = []
  readonly sessions: { session: LinkSession; record: NodeRecord }[] = []
  readonly policy: HubPolicy
  /** Called with every session. */
  onSession: (session: LinkSession) => void = () => {}

  constructor(policy: Partial<HubPolicy> = {}) {
    this.policy = {
      admit: () => admitted,
      join: async () => admitted,
      established: (session, record) => {
        this.sessions.push({ session, record })
        this.onSession(session)
      },
      ...policy,
    }
  }

  get options(): HubOptions {
    const { identity, policy, clock } = this
    return { identity, policy, clock, report: (event) => this.events.push(event) }
  }

  node(options: Partial<NodeHandshakeOptions> = {}): NodeHandshakeOptions {
    const { clock } = this
    return {
      identity: newIdentity(),
      record,
      intent: 'CONNECT',
      clock,
      report: (event) => this.events.push(event),
      ...options,
    }
  }
}

/** Two ends of a session without a handshake, and everything either of them reported; `more`: of both. */
export function sessionPair(schedule?: (transport: MemoryTransport) => void, more: Partial<SessionOptions> = {}) {
  const clock = new SimulatedClock()
  const events: LinkEvent[] = []
  const [hubTransport, nodeTransport] = MemoryTransport.pair(schedule)
  const common = {
    clock,
    heartbeat: 0,
    signRemoval: () => new Uint8Array(64).fill(7),
    verifyRemoval: (signature: Uint8Array) => signature.every((byte) => byte === 7),
    report: (event: LinkEvent) => {
      events.push(event)
    },
    ...more,
  } satisfies Partial<SessionOptions>
  const hub = new Session({ ...common, side: 'hub', localId: 'hub', peerId: 'node', transport: hubTransport })
  const node = new Session({ ...common, side: 'node', localId: 'node', peerId: 'hub', transport: nodeTransport })
  return { hub, node, hubTransport, nodeTransport, clock, events }
}

/** What a stream told its holder, as text. */
export class Recorder {
  readonly messages: Uint8Array[] = []
  readonly log: string[] = []
  status: LinkStatus | undefined
  readonly over: Promise<void>

  constructor(stream: LinkStream) {
    this.over = new Promise((resolve) => {
      stream.handlers = {
        message: (bytes) => {
          this.messages.push(bytes)
          this.log.push('message')
        },
        halfClose: () => this.log.push('halfClose'),
        cancel: () => {
          this.log.push('cancel')
          resolve()
        },
        end: (status) => {
          this.log.push(`end ${status.code}`)
          this.status = status
          resolve()
        },
        drain: () => this.log.push('drain'),
      }
    })
  }

  get text(): string[] {
    return this.messages.map((bytes) => Buffer.from(bytes).toString())
  }
}
