/** `penstock impair`: a bad link between two real UDP endpoints. */
import type { ChildProcess } from 'node:child_process'
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { profileNames } from '../../src/node/impairment-profiles.ts'
import { until } from '../harness/waiting.ts'
import { penstock, scratch, start } from './cli.ts'
import { KEYS, PseudoTerminal } from './pseudo-terminal.ts'
import '../harness/slow.ts'

const directory = scratch()
const open: (() => void)[] = []
afterEach(() => {
  for (const close of open.splice(0)) close()
})
afterAll(() => directory.dispose())

async function socket(): Promise<Socket> {
  const made = createSocket({ type: 'udp4', recvBufferSize: 4 << 20 })
  open.push(() => made.close())
  made.bind(0, '127.0.0.1')
  await once(made, 'listening')
  return made
}

interface Counts {
  receivedPackets: number
  receivedBytes: number
  sentPackets: number
  lostPackets: number
  queueFullPackets: number
  droppedPackets: number
  heldPackets: number
  delayMs: number | null
}

interface Line {
  state: 'READY' | 'RUNNING' | 'ENDED'
  listen?: string
  listenHost?: string
  listenPort?: number
  forward?: string
  forwardPort?: number
  outcome?: string
  seconds: number
  up: Counts
  down: Counts
}

const accounted = ({ sentPackets, lostPackets, queueFullPackets, droppedPackets, heldPackets }: Counts) =>
  sentPackets + lostPackets + queueFullPackets + droppedPackets + heldPackets

/** The command between a client and a server that sends everything back. */
class LinkUnderTest {
  readonly lines: Line[] = []
  /** What the client has heard, and how long after it was sent, ms. */
  readonly heard = new Map<number, number>()
  /** In the order in which they came. */
  readonly order: number[] = []
  readonly client: Socket
  readonly child: ChildProcess
  readonly stderr: Promise<string>
  private readonly sentAt = new Map<number, number>()
  private port = 0

  private constructor(child: ChildProcess, client: Socket) {
    this.child = child
    this.client = client
    this.stderr = text(child.stderr!)
    open.push(() => child.kill('SIGKILL'))
    createInterface({ input: child.stdout! }).on('line', (line) => this.lines.push(JSON.parse(line)))
    client.on('message', (message) => {
      const tag = message.readUInt32BE(0)
      this.heard.set(tag, performance.now() - this.sentAt.get(tag)!)
      this.order.push(tag)
    })
  }

  static async start(...args: string[]): Promise<LinkUnderTest> {
    const server = await socket()
    server.on('message', (message, { port }) => server.send(message, port, '127.0.0.1'))
    const forward = `127.0.0.1:${server.address().port}`
    const child = start(['impair', '--listen', '127.0.0.1:0', '--forward', forward, '--json', ...args])
    const link = new LinkUnderTest(child, await socket())
    await until(() => link.lines.length > 0 || child.exitCode !== null, 'the first line')
    expect(link.lines[0]).toMatchObject({ listen: expect.stringMatching(/^127\.0\.0\.1:[1-9]\d*$/), forward })
    const { listenHost, listenPort, forwardPort } = link.lines[0]!
    expect([listenHost, forwardPort]).toEqual(['127.0.0.1', server.address().port])
    link.port = listenPort!
    return link
  }

  get listen(): number {
    return this.port
  }

  /** Sends datagrams numbered on from `from`; every 20 of them are one turn of the event loop. */
  async send(count: number, bytes = 100, from = 0): Promise<void> {
    const message = Buffer.alloc(bytes)
    for (let tag = from; tag < from + count; tag++) {
      const own = Buffer.from(message)
      own.writeUInt32BE(tag)
      this.sentAt.set(tag, performance.now())
      this.client.send(own, this.port, '127.0.0.1')
      if (tag % 20 === 19) await new Promise((resolve) => setTimeout(resolve, 1))
    }
  }

  /** Waits until a line says so. */
  async told(holds: (line: Line) => boolean, what: string): Promise<Line> {
    await until(
      () => this.lines.slice(1).some(holds),
      () => `${what}: ${JSON.stringify(this.lines.at(-1))}`,
    )
    return this.lines.slice(1).find(holds) as Line
  }

  /** Ctrl-C; the summary. */
  async end(): Promise<Line> {
    const closed = once(this.child, 'close')
    this.child.kill('SIGINT')
    expect((await closed)[0]).toBe(0)
    const states = this.lines.map(({ state }) => state)
    expect(states).toEqual(['READY', ...states.slice(1, -1).map(() => 'RUNNING'), 'ENDED'])
    return this.lines.at(-1) as Line
  }
}

describe('between a client and a server', () => {
  it('loses and delays both ways as it was told, the same for the same seed', async () => {
    const COUNT = 2000
    const run = async (seed: string) => {
      const link = await LinkUnderTest.start('--loss', '20%', '--delay', '30ms', '--seed', seed)
      await link.send(COUNT)
      await link.told(
        ({ up, down }) =>
          up.receivedPackets === COUNT && down.receivedPackets > 0 && up.heldPackets + down.heldPackets === 0,
        'all through',
      )
      await until(() => link.heard.size === link.lines.at(-1)!.down.sentPackets, 'all heard')
      const summary = await link.end()
      expect(summary.outcome).toBe('STOPPED')
      const { up, down } = summary
      for (const counts of [up, down]) {
        expect(accounted(counts)).toBe(counts.receivedPackets)
        expect(counts.queueFullPackets + counts.droppedPackets).toBe(0)
        // Nothing leaves early.
        expect(counts.delayMs).toBeGreaterThanOrEqual(30)
      }
      expect(up.receivedBytes).toBe(COUNT * 100)
      expect(down.receivedPackets).toBe(up.sentPackets)
      expect(link.heard.size).toBe(down.sentPackets)
      const times = [...link.heard.values()]
      expect(Math.min(...times)).toBeGreaterThanOrEqual(60)
      const mean = times.reduce((sum, each) => sum + each, 0) / times.length
      // What a client waits, the two are part of; those that came back are not all that reached the server.
      expect(up.delayMs! + down.delayMs!).toBeLessThan(mean + 20)
      expect(link.order).toEqual([...link.order].sort((a, b) => a - b))
      return [up.lostPackets, down.lostPackets, [...link.heard.keys()].join()]
    }
    const first = await run('7')
    // 99.99 % of a binomial distribution: 3.9 standard deviations of 17.9 packets.
    expect(Math.abs((first[0] as number) - 0.2 * COUNT)).toBeLessThan(70)
    expect(await run('7')).toEqual(first)
    expect(await run('8')).not.toEqual(first)
  })

  it('lets packets overtake each other where that is asked for, one way where that is', async () => {
    const link = await LinkUnderTest.start('--delay', '40ms', '--jitter', '40ms', '--reorder', '--direction', 'down')
    await link.send(200)
    await until(() => link.heard.size === 200, 'all heard')
    expect(link.order).not.toEqual([...link.order].sort((a, b) => a - b))
    const { up, down } = await link.end()
    // Below the mean of the other way, by far.
    expect(up.delayMs).toBeLessThan(down.delayMs! / 2)
    expect([up.sentPackets, down.sentPackets]).toEqual([200, 200])
  })

  it('queues what exceeds the rate, and drops what exceeds the queue', async () => {
    const link = await LinkUnderTest.start('--rate', '100k', '--queue', '10')
    await link.send(20, 1000)
    const { up } = await link.told((line) => line.up.sentPackets === 11 && line.down.sentPackets === 11, 'eleven')
    expect(up).toMatchObject({ receivedPackets: 20, queueFullPackets: 9, lostPackets: 0 })
    // 80 ms each, one after the other.
    expect(Math.max(...link.heard.values())).toBeGreaterThanOrEqual(11 * 80)
    const summary = await link.end()
    expect(accounted(summary.up)).toBe(20)
  })

  it('drops what is longer than --mtu, both ways, counts that and says so once for each', async () => {
    const link = await LinkUnderTest.start('--delay', '5ms')
    await link.send(10)
    await link.send(10, 1472, 10)
    await link.send(10, 1473, 20)
    await link.send(10, 60_000, 30)
    await link.told(({ up, down }) => up.droppedPackets === 20 && down.sentPackets === 20, 'half of them')
    const { up, down } = await link.end()
    expect(up).toMatchObject({ receivedPackets: 40, receivedBytes: 15_720, sentPackets: 20, lostPackets: 0 })
    expect(down).toMatchObject({ receivedPackets: 20, sentPackets: 20, droppedPackets: 0 })
    expect(await link.stderr).toBe(
      'WARN datagrams that come to --listen are longer than 1472 bytes and dropped: --mtu BYTES carries longer ones\n',
    )
  })

  it('carries longer ones with a longer --mtu', async () => {
    const link = await LinkUnderTest.start('--delay', '5ms', '--mtu', '60000')
    await link.send(10, 60_000)
    await link.send(1, 60_001, 10)
    await link.told(({ up, down }) => up.droppedPackets === 1 && down.sentPackets === 10, 'ten')
    expect((await link.end()).up).toMatchObject({ receivedPackets: 11, sentPackets: 10 })
    expect(await link.stderr).toContain('longer than 60000 bytes')
  })

  it('counts what finds no packet slot, and says so once', async () => {
    // Long packets make few slots: some 16,000.
    const link = await LinkUnderTest.start('--delay', '600s', '--mtu', '65507')
    let sent = 0
    await until(async () => {
      await link.send(1000, 100, sent)
      sent += 1000
      return link.lines.at(-1)!.up?.droppedPackets > 0
    }, 'the slots are used up')
    const { up } = await link.end()
    expect(up.droppedPackets).toBeGreaterThan(0)
    expect(accounted(up)).toBe(up.receivedPackets)
    expect(up.sentPackets).toBe(0)
    // All but what the kernel had no room for.
    expect(up.receivedPackets).toBeGreaterThan(16_000)
    expect(await link.stderr).toMatch(
      /^WARN datagrams come to --listen while all 16\d{3} packet slots are in use and are dropped: a shorter --delay/m,
    )
  })

  it('serves the first client, and says so of others', async () => {
    const link = await LinkUnderTest.start('--profile', 'transatlantic', '--loss', '0')
    await link.send(1)
    await until(() => link.heard.size === 1)
    const other = await socket()
    other.send('who', link.listen, '127.0.0.1')
    await link.told(({ seconds }) => seconds >= 2, 'two seconds')
    // Whatever it was held up for, it tells each second once.
    link.child.kill('SIGSTOP')
    await new Promise((resolve) => setTimeout(resolve, 2500))
    link.child.kill('SIGCONT')
    await link.told(({ seconds }) => seconds >= 4, 'what follows')
    const summary = await link.end()
    const seconds = link.lines.slice(1, -1).map((line) => line.seconds)
    expect(seconds).toEqual([...new Set(seconds)])
    expect(summary.up).toMatchObject({ receivedPackets: 1, sentPackets: 1 })
    expect(await link.stderr).toContain(`WARN ignores datagrams from 127.0.0.1:${other.address().port}`)
    expect(link.heard.get(0)).toBeGreaterThanOrEqual(70)
  })

  it('ends after --duration, with lines for people where no JSON is asked for', async () => {
    const args = ['impair', '-l', '127.0.0.1:0', '-f', '127.0.0.1:9', '-p', 'lte', '-d', '1200ms']
    const { code, stdout } = await penstock(args)
    expect(code).toBe(0)
    expect(stdout).toMatch(/^127\.0\.0\.1:\d+ → 127\.0\.0\.1:9: 6 Mbit\/s, 35 ± 10 ms, 0\.1 % loss$/m)
    expect(stdout).toMatch(/^1 s {2}up 0 pkt\/s .* delay - {2}\| {2}down 0 pkt\/s .* delay -$/m)
    expect(stdout).toMatch(/stopped after 1\.\d+ s\s*$/)
  })

  it('shows a table that is redrawn on a terminal', async () => {
    const terminal = new PseudoTerminal(['impair', '-l', '127.0.0.1:0', '-f', '127.0.0.1:9', '--loss', '1%'], {})
    open.push(() => terminal.process.kill('SIGKILL'))
    await terminal.see(/QUEUE FULL +DROPPED +DELAY[\s\S]*^up +0 [\s\S]*^down +0 /m)
    terminal.type(KEYS.interrupt)
    await terminal.see(/stopped after/)
  })

  it('says what is wrong where it cannot listen', async () => {
    const taken = await socket()
    const listen = `127.0.0.1:${taken.address().port}`
    const { code, stderr } = await penstock(['impair', '-l', listen, '-f', '127.0.0.1:9', '--loss', '1%'])
    expect(code).toBe(1)
    expect(stderr).toMatch(/the link did not start: .*address already in use/i)
  })
})

describe('usage', () => {
  const ENDS = ['-l', '127.0.0.1:7000', '-f', '127.0.0.1:8000']
  it.each([
    [['-p', 'lte'], '--listen ADDRESS'],
    [ENDS, 'say what the link is like'],
    [[...ENDS, '-p', 'wifi-bussy'], 'there is no profile "wifi-bussy". Did you mean "wifi-busy"?'],
    [[...ENDS, '--jitter', '5ms'], '--jitter needs --delay'],
    [[...ENDS, '--queue', '5'], '--queue needs --rate'],
    [[...ENDS, '-p', 'leo-satellite', '--jitter', '5ms'], '--jitter needs --delay'],
    [[...ENDS, '--loss', '5'], 'A loss is written 5% or 0.05'],
    [[...ENDS, '--loss', '101%'], 'from 0 to 100 %'],
    [[...ENDS, '--delay', '1.5ms'], 'in whole milliseconds'],
    [[...ENDS, '--rate', '10'], 'A rate is written 500k, 10M or 1G'],
    [[...ENDS, '--rate', '10M/s'], 'A rate is written 500k, 10M or 1G'],
    [[...ENDS, '--delay', '9ms', '--slot', '5ms'], 'there is no --slot: packets are not gathered in slots'],
    [[...ENDS, '--rate', '0M'], 'from 1k to 1000G'],
    [[...ENDS, '--loss', '1%', '--mtu', '65536'], 'from 68 to 65535'],
    [[...ENDS, '--burst', '4'], '--burst needs --loss'],
    [[...ENDS, '-p', 'adsl', '--burst', '4'], '--burst needs --loss'],
    [[...ENDS, '--loss', '81%', '--burst', '4'], '--burst 4 can lose 80 % at most'],
    [[...ENDS, '--loss', '1%', '--burst', '0.5'], 'A burst is a number of packets from 1'],
    [[...ENDS, '--reorder'], '--reorder needs --delay'],
    [[...ENDS, '--delay', '5ms', '--reorder'], '--reorder needs --jitter'],
    [[...ENDS, '-p', 'lte', '--direction', 'up'], '--direction up says which way'],
    // As it is written for tc-netem(8), toxiproxy and UDPspeeder.
    [[...ENDS, '--delay', '100ms', '10ms', '25%'], 'what is 10ms for? an option takes one value'],
    [[...ENDS, '--rate', '10mbps'], 'A rate is written 500k, 10M or 1G'],
    [[...ENDS, '--latency', '40ms'], 'there is no --latency: it is --delay here'],
    [['-l', '127.0.0.1:7000', '-r', '127.0.0.1:8000'], 'there is no --remote: it is --forward here'],
    [['-l', 'here', '-f', '127.0.0.1:8000', '--loss', '1%'], '--listen: must be an address and port'],
    [['-l', '127.0.0.1:7000', '-f', '127.0.0.1:0', '--loss', '1%'], '--forward: a peer has a port'],
    [['-l', '127.0.0.1:7000', '-f', '127.0.0.1:7000', '--loss', '1%'], 'it would feed itself'],
  ])('%j exits 2: %s', async (args, message) => {
    const { code, stdout, stderr } = await penstock(['impair', ...args])
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toContain(message)
  })

  it('lists the profiles as a table and as JSON', async () => {
    const { stdout } = await penstock(['impair', '--list'])
    for (const name of profileNames()) expect(stdout).toMatch(new RegExp(`^${name} `, 'm'))
    expect(JSON.parse((await penstock(['impair', '--list', '-o', 'json'])).stdout)).toHaveLength(profileNames().length)
  })

  it('lists whole links in 80 columns', async () => {
    const { stdout } = await penstock(['impair', '--list'], { env: { COLUMNS: '80' } })
    expect(stdout.split('\n').filter((line) => [...line].length > 80)).toEqual([])
    expect(stdout).not.toContain('…')
    const satellite = stdout.slice(stdout.indexOf('leo-satellite'), stdout.indexOf('lte '))
    for (const part of ['17 Mbit/s', '178 Mbit/s', '35 ms', '40 ms', '15000 ms', '0.2 %'])
      expect(satellite).toContain(part)
  })

  it('one way alone, loses in bursts and reorders, with the units of tc(8)', async () => {
    const link = ['--direction', 'down', '--loss', '5%', '--burst', '4', '--delay', '1sec', '--jitter', '20msec']
    const { code, stdout } = await penstock(['impair', ...ENDS, ...link, '--reorder', '--rate', '10Mbit/s', '--print'])
    expect(code).toBe(0)
    const { pipeline } = JSON.parse(stdout).engine_config
    expect(Object.keys(pipeline)).toEqual([
      ...['clients', 'server', 'up observer', 'down 1', 'down 2', 'down 3', 'down observer'],
    ])
    expect(pipeline['down 1'].bandwidth_limit_constant).toMatchObject({ bandwidth_limit_mbit: 10 })
    expect(pipeline['down 2'].delay_jitter).toMatchObject({ delay: 1000, jitter: 20 })
    const { loss_gilbert_elliot: chain } = pipeline['down 3']
    const { good_to_bad_probability: to, bad_to_good_probability: back } = chain
    expect(chain).toMatchObject({ good_loss_probability: 0, bad_loss_probability: 1 })
    expect([to / (to + back), 1 / back]).toEqual([expect.closeTo(0.05, 12), 4])
    const shown = await penstock(['help', 'impair'])
    expect(shown.stdout).not.toContain('--latency')
  })

  it('prints a configuration that validate takes', async () => {
    const args = ['impair', ...ENDS, '-p', 'lte', '--loss', '5%', '--jitter', '3ms', '--rate', '2.5M', '--seed', '1']
    const { code, stdout } = await penstock([...args, '--print'])
    expect(code).toBe(0)
    const { pipeline } = JSON.parse(stdout).engine_config
    expect(Object.keys(pipeline)).toEqual([
      'clients',
      'server',
      ...['up', 'down'].flatMap((each) => [1, 2, 3, 'observer'].map((i) => `${each} ${i}`)),
    ])
    // What is not overridden stays the profile's.
    expect(pipeline['up 1'].bandwidth_limit_constant).toMatchObject({ bandwidth_limit_mbit: 2.5, max_queue_size: 200 })
    expect(pipeline['up 2'].delay_constant).toMatchObject({ delay: 35, jitter: 3 })
    expect(pipeline['down 3'].loss_constant).toMatchObject({ loss_probability: 0.05 })
    expect(await penstock(['validate', '-'], { input: stdout })).toMatchObject({ code: 0, stderr: '' })
  })
})

describe('a profile of your own', () => {
  const profile = { name: 'mine', description: 'a link', source: 'a measurement', up: [], down: [] as object[] }

  it('is taken by its path', async () => {
    const file = directory.file('mine.json', { ...profile, down: [{ delay_fixed: { delay: 50 } }] })
    const link = await LinkUnderTest.start('--profile', file)
    await link.send(3)
    await until(() => link.heard.size === 3)
    expect(Math.min(...link.heard.values())).toBeGreaterThanOrEqual(50)
    const { up, down } = await link.end()
    expect([up.sentPackets, down.sentPackets]).toEqual([3, 3])
  })

  it.each([
    [
      { ...profile, down: [{ loss_constant: { loss_probability: 5 } }] },
      '/down/0/loss_constant/loss_probability: 5 is above the maximum',
    ],
    [{ ...profile, down: [{ los_constant: {} }] }, 'Did you mean "loss_constant"?'],
    [
      { ...profile, up: [{ udp: { local_address: '127.0.0.1:1' } }] },
      '/up/0/udp: udp emulates no loss, delay or bandwidth',
    ],
    [{ ...profile, up: [{ delay_fixed: { delay: 1, input: 'x' } }] }, '/up/0/delay_fixed/input: leave it out'],
    [{ ...profile, up: [{}] }, '/up/0: must have one member'],
    [{ ...profile, upp: [] }, '/upp: unknown field "upp". Did you mean "up"?'],
    [{ ...profile, source: '' }, '/source: is needed'],
    [{ ...profile, down: 3 }, '/down: is needed: a list of emulation components'],
    [[], '/: must be an object with the fields name'],
    ['{"up": [', 'malformed JSON'],
  ])('%# is refused with the place: %j', async (content, message) => {
    const file = directory.file('bad.json', content)
    const { code, stderr } = await penstock(['impair', '-l', '127.0.0.1:0', '-f', '127.0.0.1:9', '-p', file, '--print'])
    expect(code).toBe(1)
    expect(stderr).toContain(message)
    expect(stderr).toMatch(/bad\.json:\d+:\d+: /)
  })
})
