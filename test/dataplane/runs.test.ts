/** Runs in worker threads: how they start, end, fail, die and take changes, and what they leave behind. */
import { readdirSync, readFileSync } from 'node:fs'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { HostNames } from '../../src/dataplane/engine/host-names.ts'
import { RunOver } from '../../src/dataplane/engine/run.ts'
import { native } from '../../src/dataplane/native/native.ts'
import { until } from '../harness/waiting.ts'
import { configure, Peer, pinnedThread, sleeps, startRun, TestRun, testPool } from './running.ts'

/** Where the thread of a run cannot be told from the others by what it is pinned to. */
const oneCpu = native.affinity().length === 1

const pool = testPool()
const before = native.openDescriptors()
const runs: TestRun[] = []

async function start(...args: Parameters<typeof startRun> extends [unknown, ...infer R] ? R : never): Promise<TestRun> {
  const run = await startRun(pool, ...args)
  runs.push(run)
  return run
}

afterEach(async () => {
  for (const run of runs.splice(0)) await run.stop()
  expect(native.openDescriptors()).toBe(before)
})
afterAll(() => pool.close())

/** Something that sends, slowly. */
const feed = { feed: { uniform_traffic_source: { interval: 1000, output: 'a' } } }

/** Datagrams of front leave at back, through the test trigger. */
const forward = (to: Peer, trigger: Record<string, unknown> = {}) => ({
  front: { udp_local: { address: '127.0.0.1:0', output: 'a' } },
  trigger: { test_trigger: { input: 'a', output: 'b', ...trigger } },
  back: { udp: { remote_address: to.address, input: 'b' } },
})

async function withPeer(use: (peer: Peer) => Promise<void>): Promise<void> {
  const peer = await Peer.open()
  try {
    await use(peer)
  } finally {
    peer.close()
  }
}

/** That port is free: it can be bound. */
async function canBind(port: number): Promise<boolean> {
  const owner = native.ownerOpen()
  try {
    native.udpOpen(owner, { backend: 0, family: 4, mtu: 1500, local: { address: '127.0.0.1', port } })
    return true
  } catch {
    return false
  } finally {
    native.ownerRelease(owner)
  }
}

describe('starting', () => {
  it('fails with the cause when a port is taken, and leaves nothing open', () =>
    withPeer(async (peer) => {
      const run = new TestRun(pool, {
        first: { udp_local: { address: '127.0.0.1:0', output: 'a' } },
        second: { udp_local: { address: peer.address, output: 'b' } },
        join: { flow_combiner: { inputs: ['a', 'b'], output: 'c' } },
        out: { udp_remote: { input: 'c' } },
      })
      const cause = `component "second" (udp_local): bind EADDRINUSE ${peer.address}: address already in use`
      await expect(run.handle.running).rejects.toThrow(cause)
      expect(await run.handle.ended).toEqual({ outcome: 'FAILED', error: expect.stringContaining(cause) })
      expect(native.openDescriptors()).toBe(before)
      expect(await canBind(run.port('first'))).toBe(true)
    }))

  it('looks host names up, says what they are, and takes a new one over with a live change', () =>
    withPeer(async (peer) => {
      const port = peer.address.split(':')[1] as string
      const pipeline = (host: string) => ({
        front: { udp_local: { address: '127.0.0.1:0', output: 'a' } },
        to: { peer_writer: { input: 'a', output: 'b', remote_address: `${host}:${port}` } },
        back: { udp: { local_address: '0.0.0.0:0', input: 'b' } },
      })
      const run = await start(pipeline('127.0.0.2'))
      await run.handle.reconfigure(configure(pipeline('localhost')))
      const told = run.log.find(({ component, fields }) => component === 'to' && fields.host === 'localhost')
      expect(told?.fields).toEqual({
        field: 'remote_address',
        host: 'localhost',
        address: expect.stringMatching(new RegExp(`^(127\\.0\\.0\\.1|\\[::1\\]):${port}$`)),
      })
      const straight = await start({
        front: { udp_local: { address: 'localhost:0', output: 'a' } },
        back: { udp: { local_address: '127.0.0.1:0', remote_address: `localhost:${port}`, input: 'a' } },
      })
      expect(
        straight.log.filter(({ fields }) => fields.host === 'localhost').map(({ component }) => component),
      ).toEqual(['front', 'back'])
      expect(straight.log.find(({ component, fields }) => component === 'back' && fields.host)?.message).toBe(
        `remote_address: localhost is 127.0.0.1:${port}`,
      )
      await peer.send(straight.port('front'), 'abc')
      await peer.hears(1)
    }))

  it('fails with the name that has no address', async () => {
    const run = new TestRun(pool, {
      out: { udp: { remote_address: 'no-such-host.invalid:5000', input: 'a' } },
      ...feed,
    })
    const cause = 'component "out" (udp): remote_address: no-such-host.invalid has no address: '
    await expect(run.handle.running).rejects.toThrow(cause)
    expect(await run.handle.ended).toEqual({ outcome: 'FAILED', error: expect.stringContaining(cause) })
    expect(native.openDescriptors()).toBe(before)
  })

  it('is over at once, without a thread, when it is stopped or killed while a name is asked for; others run, and take changes over', async () => {
    const silent = testPool({ hostNames: new HostNames(() => new Promise(() => {})) })
    const pipeline = { out: { udp: { remote_address: 'slow.example:5000', input: 'a' } }, ...feed }
    const [stopped, killed, closed] = [1, 2, 3].map(() => new TestRun(silent, pipeline)) as [TestRun, TestRun, TestRun]
    stopped.handle.stop()
    expect(await stopped.handle.ended).toEqual({ outcome: 'STOPPED' })
    await expect(stopped.handle.running).rejects.toThrow(RunOver)
    killed.handle.kill('enough')
    expect(await killed.handle.ended).toEqual({ outcome: 'FAILED', error: 'enough' })
    const writing = (remote_address: string) => ({
      ...feed,
      to: { peer_writer: { input: 'a', output: 'b', remote_address } },
      end: { traffic_sink: { input: 'b' } },
    })
    const others = new TestRun(silent, writing('127.0.0.1:5000'))
    await others.handle.running
    // A change of it, as well, is refused while there is time to ask the thread.
    const refused = others.handle.reconfigure(configure(writing('slow.example:5000')), 200)
    await expect(refused).rejects.toThrow('slow.example has no address: no answer within 0.1 s')
    await others.handle.reconfigure(configure(writing('127.0.0.1:5001')), 10_000)
    await silent.close()
    expect(await closed.handle.ended).toEqual({ outcome: 'STOPPED' })
    expect(native.openDescriptors()).toBe(before)
  })

  it('has a host name looked up when a change brings it, again where it was gone in between, and keeps the answer to one that stays', async () => {
    let asked = 0
    const lookup = async () => [{ address: `127.0.0.${++asked}`, family: 4 }]
    const moving = testPool({ hostNames: new HostNames(lookup) })
    const writing = (remote_address: string) => ({
      ...feed,
      to: { peer_writer: { input: 'a', output: 'b', remote_address } },
      end: { traffic_sink: { input: 'b' } },
    })
    const run = await startRun(moving, writing('peer.example:1'))
    const change = async (address: string) => await run.handle.reconfigure(configure(writing(address)))
    await change('peer.example:2')
    await change('127.0.0.9:3')
    // It is taken back.
    await change('peer.example:4')
    await change('127.0.0.9:5')
    run.handle.keepChange()
    await change('peer.example:6')
    run.handle.keepChange()
    await change('peer.example:7')
    const told = () => run.log.flatMap(({ fields: { host, address } }) => (host === undefined ? [] : [address]))
    await until(() => told().length === 5)
    expect(told()).toEqual(['127.0.0.1:1', '127.0.0.1:2', '127.0.0.1:4', '127.0.0.2:6', '127.0.0.2:7'])
    await run.stop()
    await moving.close()
  })

  it('fails with the cause when a component throws, and the thread serves the next run', () =>
    withPeer(async (peer) => {
      const run = new TestRun(pool, forward(peer, { throw_at_start: true }))
      await expect(run.handle.running).rejects.toThrow('component "trigger" (test_trigger): refused to start')
      expect((await run.handle.ended).outcome).toBe('FAILED')
      const next = await start(forward(peer))
      await peer.send(next.port('front'), 'abc')
      await peer.hears(1)
    }))

  it('refuses a CPU thread that does not exist', () =>
    withPeer(async (peer) => {
      const config = configure(forward(peer))
      const options = { runId: 'x', config, performanceMode: false, level: 'INFO' as const }
      expect(() => pool.start({ ...options, cpu: Math.max(...pool.cpus) + 1 }, () => {})).toThrow(RangeError)
      expect(() => pool.start({ ...options, cpu: -1 }, () => {})).toThrow(RangeError)
      expect(() => pool.start({ ...options, cpu: 0.5 }, () => {})).toThrow(RangeError)
    }))
})

describe('ending', () => {
  it('by a throw in the loop: FAILED with the cause, sockets closed, other runs go on', () =>
    withPeer(async (peer) => {
      const [bad, good] = [await start(forward(peer)), await start(forward(peer))]
      await peer.send(bad.port('front'), '!')
      expect(await bad.handle.ended).toEqual({
        outcome: 'FAILED',
        error: 'the run threw: component "trigger" (test_trigger): told to throw',
      })
      expect(bad.log.some(({ level, message }) => level === 'ERROR' && message.includes('told to throw'))).toBe(true)
      expect(bad.log.find(({ level }) => level === 'ERROR')?.component).toBe('trigger')
      expect(await canBind(bad.port('front'))).toBe(true)
      await peer.send(good.port('front'), 'abc')
      await peer.hears(1)
    }))

  it('by a component that cannot stop: FAILED, naming it', () =>
    withPeer(async (peer) => {
      const run = await start(forward(peer, { throw_at_stop: true }))
      run.handle.stop()
      const error = 'stopping failed: component "trigger" (test_trigger): refused to stop'
      expect(await run.handle.ended).toEqual({ outcome: 'FAILED', error })
      expect(run.log.find(({ level }) => level === 'ERROR')).toMatchObject({ component: 'trigger' })
      expect(await canBind(run.port('front'))).toBe(true)
    }))

  it('by a component: COMPLETED, or FAILED with its error', () =>
    withPeer(async (peer) => {
      const [done, failed] = [await start(forward(peer)), await start(forward(peer))]
      await peer.send(done.port('front'), '.')
      await peer.send(failed.port('front'), '-')
      expect(await done.handle.ended).toEqual({ outcome: 'COMPLETED' })
      expect(await failed.handle.ended).toEqual({
        outcome: 'FAILED',
        error: 'component "trigger" (test_trigger): told to end',
      })
    }))

  it.each([
    ['VERIFY_FAIL', 'the run threw: component "bomb" (bomb): verification failed, as poison VERIFY_FAIL asks for'],
    ['ASSERT_FAIL', 'the run threw: component "bomb" (bomb): assertion failed, as poison ASSERT_FAIL asks for'],
    ['THROW_EXCEPTION', 'the run threw: component "bomb" (bomb): thrown, as poison THROW_EXCEPTION asks for'],
    ['LOG_FATAL', 'component "bomb" (bomb): ends the run, as poison LOG_FATAL asks for'],
  ])('by a bomb, poison %s: FAILED with the cause, sockets closed, other runs go on', (poison, error) =>
    withPeer(async (peer) => {
      const bomb = (kind: string) => ({ ...forward(peer), bomb: { bomb: { delay: 1, poison: kind } } })
      const [bad, good] = [await start(bomb(poison)), await start(bomb('NONE'))]
      expect(await bad.handle.ended).toEqual({ outcome: 'FAILED', error })
      const level = poison === 'LOG_FATAL' ? 'FATAL' : 'ERROR'
      expect(bad.log.filter(({ component }) => component === 'bomb').map((line) => line.level)).toEqual([level])
      expect(await canBind(bad.port('front'))).toBe(true)
      await until(() => good.log.some(({ component }) => component === 'bomb'), 'the other bomb went off')
      await peer.send(good.port('front'), 'abc')
      await peer.hears(1)
    }),
  )

  it('by a FATAL line, which is told however many lines came before', () =>
    withPeer(async (peer) => {
      const run = await start(forward(peer))
      await peer.send(run.port('front'), '*')
      expect(await run.handle.ended).toEqual({
        outcome: 'FAILED',
        error: 'component "trigger" (test_trigger): told to end with a FATAL line',
      })
      const lines = run.log.filter(({ component }) => component === 'trigger')
      expect(lines.filter(({ level }) => level === 'FATAL')).toHaveLength(1)
      expect(lines.length).toBeGreaterThan(400)
    }))

  it('by a stop, told as other lines of the run itself whatever was logged; what was left out is counted, though nothing follows', () =>
    withPeer(async (peer) => {
      const run = await start(forward(peer))
      const told = () => {
        const lines = run.log.filter(({ component }) => component === 'trigger').length
        return run.log.reduce((sum, { fields }) => sum + Number(fields.dropped ?? 0), lines)
      }
      await peer.send(run.port('front'), '#')
      await until(() => told() === 100_000)
      expect(run.log.some(({ fields }) => fields.dropped !== undefined)).toBe(true)
      await peer.send(run.port('front'), '#')
      await peer.hears(2)
      await run.stop()
      expect(told()).toBe(200_000)
      expect(run.log.at(-1)?.message).toBe('ended: STOPPED')
    }))

  it('by the death of its thread: FAILED with the cause, what it held is closed, other runs go on', () =>
    withPeer(async (peer) => {
      const [dying, good] = [await start(forward(peer)), await start(forward(peer))]
      const port = dying.port('front')
      await peer.send(port, '%')
      expect(await dying.handle.ended).toEqual({ outcome: 'FAILED', error: expect.stringContaining('thread died') })
      expect(await canBind(port)).toBe(true)
      await peer.send(good.port('front'), 'abc')
      await peer.hears(1)
      const next = await start(forward(peer))
      await peer.send(next.port('front'), 'def')
      await peer.hears(2)
    }))

  it('before it gets a thread: a run that waits for one can be stopped or killed', () =>
    withPeer(async (peer) => {
      const small = testPool({ maximum: 1 })
      const first = await startRun(small, forward(peer))
      // They wait since its thread is about to be free.
      first.handle.stop()
      const killed = new TestRun(small, forward(peer))
      killed.handle.kill('not wanted any more')
      const stopped = new TestRun(small, forward(peer))
      stopped.handle.stop()
      expect(await killed.handle.ended).toEqual({ outcome: 'FAILED', error: 'not wanted any more' })
      await first.handle.ended
      expect(await stopped.handle.ended).toEqual({ outcome: 'STOPPED' })
      await small.close()
    }))

  it('by force while it sleeps', () =>
    withPeer(async (peer) => {
      const run = await start(forward(peer))
      run.handle.kill('not wanted any more')
      expect(await run.handle.ended).toEqual({ outcome: 'FAILED', error: 'not wanted any more' })
      expect(await canBind(run.port('front'))).toBe(true)
    }))

  it('by force: a thread that never comes back is killed, what it held is closed', () =>
    withPeer(async (peer) => {
      const [stuck, good] = [await start(forward(peer)), await start(forward(peer))]
      const port = stuck.port('front')
      await peer.send(port, '?')
      await until(() => receiveQueue(port) === 0, 'the datagram was taken')
      stuck.handle.stop()
      stuck.handle.kill('did not stop in time')
      expect(await stuck.handle.ended).toEqual({ outcome: 'FAILED', error: 'did not stop in time' })
      expect(await canBind(port)).toBe(true)
      await peer.send(good.port('front'), 'abc')
      await peer.hears(1)
    }))

  it('by command, also twice, also before it runs, also in performance mode', () =>
    withPeer(async (peer) => {
      const run = new TestRun(pool, forward(peer))
      run.handle.stop()
      run.handle.stop()
      expect(await run.handle.ended).toEqual({ outcome: 'STOPPED' })
      run.handle.stop()
      run.handle.kill('too late')
      const spinning = await start(forward(peer), { performanceMode: true })
      await spinning.stop()
      expect(await spinning.handle.ended).toEqual({ outcome: 'STOPPED' })
    }))

  it('many runs, one after the other, leave nothing behind', () =>
    withPeer(async (peer) => {
      for (let i = 0; i < 20; i++) {
        const run = await start(forward(peer))
        await peer.send(run.port('front'), `run ${i}`)
        await peer.hears(i + 1)
        await run.stop()
      }
      expect(native.openDescriptors()).toBe(before)
    }))

  it('logs what happened, in order', () =>
    withPeer(async (peer) => {
      const run = await start(forward(peer))
      await run.stop()
      expect(run.log.map(({ component, message }) => [component, message.split(' ')[0]])).toEqual([
        ['front', 'bound'],
        ['back', 'bound'],
        ['', 'running'],
        ['', 'ended:'],
      ])
    }))
})

/** Bytes that wait in the receive queue of the UDP socket bound to `port`. */
function receiveQueue(port: number): number {
  const hex = port.toString(16).toUpperCase().padStart(4, '0')
  const line = readFileSync('/proc/net/udp', 'utf8')
    .split('\n')
    .find((row) => row.includes(`0100007F:${hex} `))
  return Number.parseInt(/ [0-9A-F]{8}:([0-9A-F]{8}) /.exec(line ?? '')?.[1] ?? '1', 16)
}

describe('while running', () => {
  it('live fields change at once, without losing a packet', () =>
    withPeer(async (peer) => {
      const run = await start(forward(peer, { mark: 65 }))
      await peer.send(run.port('front'), 'one_')
      await peer.hears(1)
      for (const mark of [66, 67]) {
        const next = configure(forward(peer, { mark }))
        await run.handle.reconfigure(next)
      }
      await peer.send(run.port('front'), 'two_')
      await peer.hears(2)
      expect(peer.heard.map(({ text }) => text)).toEqual(['oneA', 'twoC'])
      await run.stop()
      await expect(run.handle.reconfigure(configure(forward(peer)))).rejects.toBeInstanceOf(RunOver)
    }))

  /** Datagrams of front leave at back, marked twice. */
  const markedTwice = (to: Peer, first: number, second: number) => ({
    front: { udp_local: { address: '127.0.0.1:0', output: 'a' } },
    first: { test_trigger: { input: 'a', output: 'b', mark: first } },
    second: { test_trigger: { input: 'b', output: 'c', mark: second } },
    back: { udp: { remote_address: to.address, input: 'c' } },
  })

  it('a change that one component refuses is taken over by none', () =>
    withPeer(async (peer) => {
      const run = await start(markedTwice(peer, 65, 66))
      const refused = run.handle.reconfigure(configure(markedTwice(peer, 67, 254)))
      await expect(refused).rejects.toThrow('component "second" (test_trigger): mark 254 is not taken')
      await peer.send(run.port('front'), 'one_')
      await peer.hears(1)
      await run.handle.reconfigure(configure(markedTwice(peer, 65, 68)))
      await peer.send(run.port('front'), 'two_')
      await peer.hears(2)
      expect(peer.heard.map(({ text }) => text)).toEqual(['oneB', 'twoD'])
    }))

  it('a component that cannot be given back what it had ends its run', () =>
    withPeer(async (peer) => {
      const run = await start(markedTwice(peer, 65, 66))
      const refused = run.handle.reconfigure(configure(markedTwice(peer, 67, 255)))
      await expect(refused).rejects.toThrow('mark 255 is not taken')
      expect(await run.handle.ended).toEqual({
        outcome: 'FAILED',
        error:
          'a change was refused, and what was before cannot be had back: component "second" (test_trigger): mark 66 is not taken',
      })
    }))

  it('a change that meets the end of its run is refused, not forgotten', () =>
    withPeer(async (peer) => {
      const run = await start(forward(peer))
      await peer.send(run.port('front'), '?')
      await until(() => receiveQueue(run.port('front')) === 0, 'the datagram was taken')
      const change = run.handle.reconfigure(configure(forward(peer, { mark: 1 })))
      run.handle.kill('stuck')
      await expect(change).rejects.toEqual(new RunOver('stuck'))
      await expect(change).rejects.toBeInstanceOf(RunOver)
    }))

  it('two runs pass packets to each other', () =>
    withPeer(async (peer) => {
      const second = await start(forward(peer))
      const first = await start({
        front: { udp_local: { address: '127.0.0.1:0', output: 'a' } },
        back: { udp: { remote_address: `127.0.0.1:${second.port('front')}`, input: 'a' } },
      })
      await peer.send(first.port('front'), ...Array.from({ length: 100 }, (_, i) => `packet ${i}_`))
      await peer.hears(100)
      await first.stop()
      expect(first.metrics().back.sent_packets).toBe(100)
    }))

  it.each(pool.cpus.slice(0, 2))('is pinned to CPU thread %i', (cpu) =>
    withPeer(async (peer) => {
      const cpus = native.affinity()
      const pinned = (): number => threadsOn(String(cpu))
      expect(cpus.length === 1 ? 0 : pinned()).toBe(0)
      const run = await start(forward(peer), { cpu, performanceMode: true })
      if (cpus.length > 1) expect(pinned()).toBe(1)
      await peer.send(run.port('front'), 'abc')
      await peer.hears(1)
      await run.stop()
      if (cpus.length > 1) expect(pinned()).toBe(0)
    }),
  )

  it.skipIf(oneCpu)('has its CPU thread alone in performance mode, until it ends or is killed', () =>
    withPeer(async (peer) => {
      const cpu = pool.cpus[0] as number
      const all = threadsWith(cpu)
      const sleeping = await start(forward(peer), { cpu })
      expect(threadsWith(cpu)).toBeGreaterThan(1)
      await sleeping.stop()
      const spinning = await start(forward(peer), { cpu, performanceMode: true })
      expect(threadsWith(cpu)).toBe(1)
      await spinning.stop()
      await until(() => threadsWith(cpu) >= all, 'the other threads are back')
      const killed = await start(forward(peer), { cpu, performanceMode: true })
      expect(threadsWith(cpu)).toBe(1)
      killed.handle.kill('enough')
      await until(() => threadsWith(cpu) >= all - 1, 'the other threads are back')
    }),
  )

  it.skipIf(oneCpu)('leaves the other threads all CPU threads where each has a run in performance mode', () =>
    withPeer(async (peer) => {
      const all = threadsWith(pool.cpus[0] as number)
      const runs = []
      for (const cpu of pool.cpus) runs.push(await start(forward(peer), { cpu, performanceMode: true }))
      expect(threadsWith(pool.cpus[0] as number)).toBeGreaterThan(1)
      for (const run of runs) await run.stop()
      await until(() => threadsWith(pool.cpus[0] as number) >= all, 'the other threads are back')
    }),
  )

  it.skipIf(oneCpu)('sleeps while nothing happens, and never in performance mode', () =>
    withPeer(async (peer) => {
      const cpu = native.affinity()[0] as number
      const idle = await start(forward(peer), { cpu })
      await until(() => sleeps(pinnedThread()), 'an idle run sleeps')
      await idle.stop()
      const spinning = await start(forward(peer), { cpu, performanceMode: true })
      const thread = pinnedThread()
      const from = thread.spent()
      await until(() => thread.spent() > from + 100e6, 'a tenth of a second of CPU time')
      await spinning.stop()
    }),
  )

  it('a source that asks for more than the CPU gives makes no other timer late', async () => {
    const run = await start({
      source: { throughput_traffic_source: { output: 'a', throughput_mbit: 400_000, payload_size: 64 } },
      sink: { traffic_sink: { input: 'a' } },
      ticker: { test_ticker: {} },
    })
    await until(() => run.metrics().source.skipped_ms > 0, 'the source is behind its schedule')
    const { ticks } = run.metrics().ticker
    await until(() => run.metrics().ticker.ticks > ticks + 100, 'a hundred ticks')
    expect(run.metrics().ticker.passed_over).toBe(0)
  })

  it.skipIf(oneCpu)('sleeps again after a wake-up whose command it has already seen', () =>
    withPeer(async (peer) => {
      const run = await start(forward(peer), { cpu: native.affinity()[0] as number })
      await run.handle.reconfigure(configure(forward(peer, { mark: 1 })))
      // The main thread sets the command word, then signals: a run that is awake may have obeyed in between.
      native.eventSignal((run.handle as unknown as { event: number }).event)
      await until(() => sleeps(pinnedThread()), 'it sleeps')
      await run.stop()
    }),
  )
})

/** The CPU threads that each thread of this process may run on, as the kernel writes them. */
function allowedLists(): string[] {
  return readdirSync('/proc/self/task').map((task) => {
    const status = readFileSync(`/proc/self/task/${task}/status`, 'utf8')
    return /^Cpus_allowed_list:\s*(.*)$/m.exec(status)?.[1] as string
  })
}

/** Threads of this process that may run on the CPUs of `list` only. */
function threadsOn(list: string): number {
  return allowedLists().filter((own) => own === list).length
}

/** Threads of this process that may run on a CPU thread, beside others. */
function threadsWith(cpu: number): number {
  const has = (list: string) =>
    list.split(',').some((part) => {
      const [from, to = from] = part.split('-').map(Number)
      return (from as number) <= cpu && cpu <= (to as number)
    })
  return allowedLists().filter(has).length
}

describe('memory', () => {
  it('of a hundred thousand packets is given back when the run ends', async () => {
    const rss = () => process.memoryUsage.rss() / 1e6
    const idle = rss()
    const run = await start({
      hoard: { test_hoard: { count: 100_000, output: 'a' } },
      out: { udp_remote: { input: 'a' } },
    })
    await until(() => run.metrics().hoard.held_packets === 100_000, 'all are held')
    // Every byte of them was written: they are in memory.
    const held = rss() - idle
    await run.stop()
    expect(run.metrics().hoard).toMatchObject({ held_packets: 0, dropped_packets: 100_000 })
    await until(
      () => rss() - idle < held / 4,
      () => `${rss() - idle} MB are left of ${held}`,
    )
  })
})
