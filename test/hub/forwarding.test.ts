/** Calls from any node to any node: hub to member, member to hub, member to member through the hub; and what goes wrong on the way. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { SimulatedClock } from 'xstate'
import type { Clock } from '../../src/contract/clock.ts'
import { ServiceError } from '../../src/contract/errors.ts'
import type { CallContext, Handlers, Sink } from '../../src/contract/handlers.ts'
import type { LogStreamMessages, StreamPipelinesEvent } from '../../src/contract/types.ts'
import type { LinkSession, LinkStatus } from '../../src/link/link.ts'
import { localCall, type Member, type MemberOptions, Network } from '../harness/hub.ts'
import { CollectingSink } from '../harness/sink.ts'
import { settle, until } from '../harness/waiting.ts'

const HUB = 'http://hub'
let network: Network
beforeEach(() => {
  network = new Network()
})
afterEach(() => network.close())

/** What the handlers of a node saw. */
class Far {
  readonly calls: CallContext[] = []
  readonly pipelines: Sink<StreamPipelinesEvent>[] = []
  readonly logs: Sink<LogStreamMessages>[] = []
  readonly handlers: Partial<Handlers> = {
    getPipelines: async ({ nodeId }, call) => {
      this.calls.push(call)
      if (nodeId === '') throw new Error('never')
      return { pipelines: [] }
    },
    getPipelineById: async (_request, call) => {
      this.calls.push(call)
      throw new ServiceError('NOT_FOUND', 'word for word', { problems: [{ pointer: '/id', message: 'what is wrong' }] })
    },
    getPipelineByName: async () => {
      throw new Error('a secret of the far node')
    },
    startPipeline: (_request, call) => this.#never(call),
    stopPipeline: (_request, call) => this.#never(call),
    updatePipeline: (_request, call) => this.#never(call),
    streamPipelines: async (_request, _call, sink) => {
      this.pipelines.push(sink)
    },
    openLogStream: async ({ runId }, call, sink) => {
      if (runId === 'unknown') throw new ServiceError('NOT_FOUND', 'no such run')
      if (runId === 'never') await this.#never(call)
      this.logs.push(sink)
    },
  }

  #never(call: CallContext): Promise<never> {
    this.calls.push(call)
    return new Promise(() => {})
  }
}

interface Nodes {
  hub: Member
  a: Member
  b: Member
  far: { hub: Far; a: Far; b: Far }
}

async function nodes(options: { a?: MemberOptions; hub?: MemberOptions } = {}): Promise<Nodes> {
  const far = { hub: new Far(), a: new Far(), b: new Far() }
  const hub = await network.hub(HUB, { ...options.hub, handlers: far.hub.handlers })
  const a = network.node({ ...options.a, handlers: far.a.handlers })
  const b = network.node({ handlers: far.b.handlers })
  await a.join(HUB)
  await b.join(HUB)
  return { hub, a, b, far }
}

const ways = [
  ['hub', 'a'],
  ['a', 'hub'],
  ['a', 'b'],
] as const

describe.each(ways)('from %s to %s', (from, to) => {
  test('a unary call is answered there, by who it is for', async () => {
    const all = await nodes()
    const nodeId = all[to].id
    expect(await all[from].call('getPipelines', { nodeId })).toEqual({ pipelines: [] })
    expect(all.far[to].calls).toMatchObject([{ transport: 'link', identity: all[from].id, isLoopback: false }])
    expect(all.far[from].calls).toEqual([])
  })

  test('a failure arrives word for word, a defect without its words', async () => {
    const all = await nodes()
    const nodeId = all[to].id
    await expect(all[from].call('getPipelineById', { nodeId, id: 'x' })).rejects.toMatchObject({
      code: 'NOT_FOUND',
      message: 'word for word',
      problems: [{ pointer: '/id', message: 'what is wrong' }],
    })
    await expect(all[from].call('getPipelineByName', { nodeId, name: 'x' })).rejects.toMatchObject({
      code: 'INTERNAL',
      message: expect.not.stringContaining('secret'),
    })
    expect(all[to].reported).toHaveLength(1)
  })

  test('a stream: ready without a message, messages in order, its end', async () => {
    const all = await nodes()
    const sink = await all[from].follow('streamPipelines', { nodeId: all[to].id })
    expect(sink.messages).toEqual([])
    const [far] = all.far[to].pipelines
    for (const runId of ['1', '2', '3']) far?.send({ delete: { pipeline: { id: runId } as never } })
    for (const id of ['1', '2', '3']) expect(await sink.next()).toMatchObject({ delete: { pipeline: { id } } })
    far?.end(new ServiceError('ABORTED', 'run ended'))
    await until(() => sink.closed)
    expect(sink.error).toMatchObject({ code: 'ABORTED', message: 'run ended' })
    const second = await all[from].follow('streamPipelines', { nodeId: all[to].id })
    all.far[to].pipelines[1]?.end()
    await until(() => second.closed)
    expect(second.error).toBeUndefined()
  })

  test('a stream that cannot be established fails before it is ready', async () => {
    const all = await nodes()
    const sink = new CollectingSink<LogStreamMessages>()
    const request = { nodeId: all[to].id, runId: 'unknown' }
    await expect(all[from].follow('openLogStream', request, sink)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    expect(sink.isReady).toBe(false)
  })

  test('whoever cancels here stops it there', async () => {
    const all = await nodes()
    const call = localCall()
    const starting = all[from].call('startPipeline', { nodeId: all[to].id, id: 'x' }, call)
    starting.catch(() => {})
    await until(() => all.far[to].calls.length === 1)
    call.abort()
    await expect(starting).rejects.toMatchObject({ code: 'CANCELLED' })
    await until(() => all.far[to].calls[0]?.signal.aborted === true)
    const sink = await all[from].follow('streamPipelines', { nodeId: all[to].id })
    sink.end()
    await until(() => all.far[to].pipelines[0]?.closed === true)
  })

  test('a reader that does not read makes the writer wait, whatever it would write', async () => {
    const all = await nodes()
    const stuck = new CollectingSink<LogStreamMessages>({ stuck: true })
    await all[from].follow('openLogStream', { nodeId: all[to].id, runId: 'r' }, stuck)
    const far = all.far[to].logs[0] as Sink<LogStreamMessages>
    const line = { messages: [{ level: 'INFO' as const, component: 'c', message: 'x'.repeat(1_000), fields: {} }] }
    let sent = 0
    let turnsFull = 0
    while (turnsFull < 50) {
      if (far.writable) {
        far.send(line as never)
        sent++
        turnsFull = 0
      } else turnsFull++
      expect(sent).toBeLessThan(5_000)
      await settle(1)
    }
    const held = stuck.messages.length
    expect(held).toBeLessThan(600)
    // One window at most between two neighbours.
    expect(sent - held).toBeLessThan(1_200)
    let drained = false
    far.onDrain(() => {
      drained = true
    })
    while (stuck.messages.length < sent) {
      stuck.drain()
      await settle(1)
    }
    expect(drained).toBe(true)
    expect(stuck.messages).toHaveLength(sent)
  })

  test('a stream ends with an error when the node it comes from loses its link', async () => {
    const all = await nodes()
    const sink = await all[from].follow('streamPipelines', { nodeId: all[to].id })
    const unanswered = all[from].call('stopPipeline', { nodeId: all[to].id, id: 'x' })
    unanswered.catch(() => {})
    await until(() => all.far[to].calls.length === 1)
    const loser = to === 'hub' ? all.a : all[to]
    loser.part.membership?.session?.close('SHUTDOWN', 'pulled')
    await until(() => sink.closed)
    expect(sink.error).toMatchObject({ code: 'UNAVAILABLE' })
    await expect(unanswered).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    await until(() => all.far[to].pipelines[0]?.closed === true)
  })
})

describe('node_id', () => {
  test.each(['hub', 'a'] as const)('not on this hub, asked at %s: NOT_FOUND', async (at) => {
    const all = await nodes()
    await expect(all[at].call('getPipelines', { nodeId: 'stranger' })).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await expect(all[at].follow('streamPipelines', { nodeId: 'stranger' })).rejects.toMatchObject({ code: 'NOT_FOUND' })
  })

  test.each(['hub', 'a'] as const)('longer than any, asked at %s: NOT_FOUND, and the link stays', async (at) => {
    const all = await nodes()
    const sink = await all.a.follow('streamPipelines', { nodeId: all.b.id })
    const nodeId = 'x'.repeat(129)
    await expect(all[at].call('getPipelines', { nodeId })).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await expect(all[at].call('getNode', { nodeId })).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    expect(await all.a.call('getPipelines', { nodeId: all.b.id })).toEqual({ pipelines: [] })
    expect(sink.closed).toBe(false)
  })

  test.each(['hub', 'a'] as const)('getNode: node cannot be reached, asked at %s: UNAVAILABLE', async (at) => {
    const all = await nodes()
    const { id } = all.b
    await all.b.close()
    await until(async () => {
      const error = await all[at].call('getNode', { nodeId: id }).then(
        () => undefined,
        (failure: { code: string }) => failure.code,
      )
      return error === 'UNAVAILABLE'
    })
    await expect(all[at].follow('streamPipelines', { nodeId: id })).rejects.toMatchObject({ code: 'UNAVAILABLE' })
  })

  test('another node asked for while on no hub: FAILED_PRECONDITION', async () => {
    const alone = network.node()
    await expect(alone.call('getPipelines', { nodeId: 'other' })).rejects.toMatchObject({ code: 'FAILED_PRECONDITION' })
    await expect(alone.call('getNode', { nodeId: alone.id })).resolves.toMatchObject({ node: { id: alone.id } })
  })

  test('empty: INVALID_ARGUMENT, not the hub', async () => {
    const all = await nodes()
    for (const at of [all.hub, all.a]) {
      await expect(at.call('getPipelines', { nodeId: '' })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
    }
    expect(all.far.hub.calls).toEqual([])
  })
})

test.each([
  ['stopPipeline', 30_000],
  ['startPipeline', 15_000],
  ['openLogStream', 30_000],
] as const)('%s answered too late (%i ms): DEADLINE_EXCEEDED, and given up there', async (name, patience) => {
  const clock = new SimulatedClock()
  const all = await nodes({ a: { clock: clock as Clock } })
  const calling =
    name === 'openLogStream'
      ? all.a.follow(name, { nodeId: all.b.id, runId: 'never' })
      : all.a.call(name, { nodeId: all.b.id, id: 'x' })
  let outcome: unknown
  calling.catch((error: unknown) => {
    outcome = error
  })
  await until(() => all.far.b.calls.length === 1)
  const pass = passTime(clock)
  await pass(patience - 1)
  expect(outcome).toBeUndefined()
  await pass(1)
  await until(() => outcome !== undefined)
  expect(outcome).toMatchObject({ code: 'DEADLINE_EXCEEDED' })
  await until(() => all.far.b.calls[0]?.signal.aborted === true)
})

const passTime = (clock: SimulatedClock) => async (milliseconds: number) => {
  // In steps, so that heartbeats are answered.
  for (let left = milliseconds; left > 0; left -= 1_000) {
    clock.increment(Math.min(left, 1_000))
    await settle(1)
  }
}

test('an update may take its instructionsTimeout and 15 s more', async () => {
  const clock = new SimulatedClock()
  const all = await nodes({ a: { clock: clock as Clock } })
  const pass = passTime(clock)
  const settings = { name: 'p', jsonConfig: '{}', defaultLoggingLevel: 'INFO', forceRestart: true } as const
  const updating = all.a.call('updatePipeline', { nodeId: all.b.id, id: 'x', instructionsTimeout: 60, ...settings })
  let outcome: unknown
  updating.catch((error: unknown) => {
    outcome = error
  })
  await until(() => all.far.b.calls.length === 1)
  await pass(75_000 - 1)
  expect(outcome).toBeUndefined()
  await pass(1)
  await until(() => outcome !== undefined)
  expect(outcome).toMatchObject({ code: 'DEADLINE_EXCEEDED' })
})

test.each(['a', 'hub'] as const)(
  'the deadline travels with the call: %s ends what its caller no longer waits for',
  async (to) => {
    const clock = new SimulatedClock()
    // The caller's clock stands still, as that of a machine that was suspended.
    const all = await nodes(to === 'a' ? { a: { clock: clock as Clock } } : { hub: { clock: clock as Clock } })
    const calling = all.b.call('startPipeline', { nodeId: all[to].id, id: 'x' })
    calling.catch(() => {})
    await until(() => all.far[to].calls.length === 1)
    const pass = passTime(clock)
    await pass(15_000 - 1)
    expect(all.far[to].calls[0]?.signal.aborted).toBe(false)
    await pass(1)
    expect(all.far[to].calls[0]?.signal.reason).toMatchObject({ code: 'DEADLINE_EXCEEDED' })
    await expect(calling).rejects.toMatchObject({ code: 'DEADLINE_EXCEEDED' })
  },
)

test('values of an enum that only the later version of the far node knows are passed on, as numbers', async () => {
  const hub = await network.hub(HUB)
  const pipeline = { id: 'p', currentRun: { id: 'r', state: 99, startedAt: new Date(0) } } as never
  const later = network.node({
    handlers: {
      getPipelineById: async () => ({ pipeline }),
      streamPipelines: async (_request, _call, sink) => {
        sink.send({ create: { pipeline } })
      },
    },
  })
  await later.join(HUB)
  const nodeId = later.id
  const known = { id: 'p', currentRun: { state: 99 } }
  expect(await hub.call('getPipelineById', { nodeId, id: 'p' })).toMatchObject({ pipeline: known })
  const sink = await hub.follow('streamPipelines', { nodeId })
  expect(await sink.next()).toMatchObject({ create: { pipeline: known } })
})

describe('what a peer may not do', () => {
  /** Opens a raw call on a session and tells how it ended. */
  const attempt = (session: LinkSession, operation: string, target: string, request: Uint8Array) =>
    new Promise<LinkStatus>((resolve) => {
      session.open(operation, target, request).handlers = { end: resolve }
    })
  /** GetPipelinesRequest { node_id }. */
  const naming = (id: string) => Uint8Array.from([10, id.length, ...Buffer.from(id)])

  test('operations of the node itself, calls for another node in disguise, what does not exist, bytes that are none', async () => {
    const all = await nodes()
    const up = all.a.part.membership?.session as LinkSession
    const down = all.hub.sessions[0] as LinkSession
    for (const [session, member] of [
      [up, all.hub],
      [down, all.a],
    ] as const) {
      for (const operation of ['disconnect', 'authenticateByRequest', 'getLocalNodeId', 'createToken', 'getTokens']) {
        expect(await attempt(session, operation, '', new Uint8Array(0))).toMatchObject({ code: 'PERMISSION_DENIED' })
      }
      expect(await attempt(session, 'getPipelines', member.id, naming(all.b.id))).toMatchObject({ code: 'NOT_FOUND' })
      expect(await attempt(session, 'noSuchThing', '', new Uint8Array(0))).toMatchObject({ code: 'UNIMPLEMENTED' })
      expect(await attempt(session, 'getPipelines', '', Uint8Array.of(10, 200))).toMatchObject({
        code: 'INVALID_ARGUMENT',
      })
      expect(await attempt(session, 'authenticationByRequests', '', new Uint8Array(0))).toMatchObject({
        code: 'UNIMPLEMENTED',
      })
    }
    expect([...all.far.hub.calls, ...all.far.a.calls, ...all.far.b.calls]).toEqual([])
    expect(await attempt(down, 'getNodes', '', new Uint8Array(0))).toMatchObject({ code: 'FAILED_PRECONDITION' })
    expect(all.a.state).toBe('CONNECTED')
  })

  test('naming another origin: a member is who its key says', async () => {
    const all = await nodes()
    const up = all.a.part.membership?.session as LinkSession
    const ended = new Promise<LinkStatus>((resolve) => {
      const stream = up.open('getPipelines', all.b.id, naming(all.b.id), { origin: all.hub.id })
      stream.handlers = { end: resolve }
    })
    await ended
    for (const call of all.far.b.calls) expect(call.identity).toBe(all.a.id)
  })
})
