/** `penstock pipelines tap`: real packets on their way through a run, as another maker's program reads them. */
import { execFileSync, spawnSync } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type RunningNode, runNode, temporaryDirectory, traffic } from '../api/running-node.ts'
import { until } from '../harness/waiting.ts'
import { penstock, scratch, start } from './cli.ts'
import '../harness/slow.ts'

const hasTshark = spawnSync('tshark', ['--version']).status === 0
if (!hasTshark) console.warn('SKIPPED: reading captures with tshark needs tshark')

const directory = scratch()
const sender = createSocket('udp4')
let node: RunningNode
let id: string
let runId: string
let port: number
let env: Record<string, string>

const pipeline = {
  front: { udp: { local_address: '127.0.0.1:0', output: 'came' } },
  loss: { uniform_loss: { input: 'came', output: 'left', loss_prob: 0 } },
  sink: { traffic_sink: { input: 'left' } },
}

beforeAll(async () => {
  node = await runNode(temporaryDirectory())
  env = { PENSTOCK_URL: `http://${node.node.http}` }
  id = await node.create(pipeline, { name: 'captured' })
  runId = await node.start(id)
  const log = await node.follow(`/pipeline-runs/${runId}/logs?options.lines=100`)
  for (let found = 0; found === 0; ) {
    for (const { message, fields } of (await log.next()).messages) {
      if (message.startsWith('bound to')) found = Number(/:(\d+)$/.exec(fields.address)?.[1])
    }
    port = found
  }
  log.close()
})
afterAll(async () => {
  sender.close()
  await node.node.close()
  directory.dispose()
})

/** An IPv4 datagram with an ICMP echo request, sequence number `n`, in it. */
function ping(n: number): Buffer {
  const sum = (bytes: Buffer) => {
    let total = 0
    for (let i = 0; i < bytes.length; i += 2) total += bytes.readUInt16BE(i)
    while (total > 0xffff) total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff
  }
  const packet = Buffer.alloc(60)
  packet.writeUInt16BE(0x4500, 0)
  packet.writeUInt16BE(60, 2)
  packet.writeUInt16BE(0x4001, 8)
  packet.set([192, 0, 2, 1, 192, 0, 2, 2], 12)
  packet.writeUInt16BE(sum(packet.subarray(0, 20)), 10)
  packet.writeUInt16BE(0x0800, 20)
  packet.writeUInt16BE(n, 26)
  packet.writeUInt16BE(sum(packet.subarray(20)), 22)
  return packet
}

const send = (packet: Buffer) => new Promise<void>((resolve) => sender.send(packet, port, '127.0.0.1', () => resolve()))

/** Runs `tap` while packets are sent until it has ended. */
async function tapped(args: string[], packet: (n: number) => Buffer) {
  let isOver = false
  const running = penstock(['pipelines', 'tap', 'captured', ...args], { env }).finally(() => {
    isOver = true
  })
  for (let n = 0; !isOver; n++) {
    await send(packet(n & 0xffff))
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
  return await running
}

describe('a line for each packet', () => {
  test('what leaves a component, at most so many', async () => {
    const { code, stdout, stderr } = await tapped(['loss', '--count', '5', '-s', '8'], () => Buffer.from('0123456789'))
    expect([code, stderr]).toEqual([0, '5 packets captured\n'])
    const lines = stdout.trim().split('\n')
    expect(lines).toHaveLength(5)
    for (const line of lines) expect(line).toMatch(/^\d\d:\d\d:\d\d\.\d{6}Z {2}left {2}10 B {2}3031 3233 3435 3637$/)
  })

  test('as JSON; of a component without outputs what comes to it', async () => {
    const { stdout } = await tapped(['sink', '-c', '2', '-o', 'json'], () => Buffer.from('abc'))
    for (const line of stdout.trim().split('\n')) {
      const { time, ...packet } = JSON.parse(line)
      expect(Math.abs(Number(BigInt(time) / 1_000_000n) - Date.now())).toBeLessThan(60_000)
      expect(packet).toEqual({ link: 'left', length: 3, data: Buffer.from('abc').toString('base64') })
    }
  })
})

test('a name of several lines and its packet are a line', async () => {
  const output = 'ü\tñ\n\u001b[31mred'
  const source = { uniform_traffic_source: { output, total_packets: 0, interval: 1 } }
  const own = await node.create({ source, sink: { traffic_sink: { input: output } } }, { name: 'lines' })
  await node.start(own)
  const { code, stdout } = await penstock(['pipelines', 'tap', own, 'source', '-c', '3'], { env })
  expect(code).toBe(0)
  const lines = stdout.trim().split('\n')
  expect(lines).toHaveLength(3)
  for (const line of lines) expect(line).toMatch(/^\S+ {2}ü\\u0009ñ\\u000a\\u001b\[31mred {2}\d+ B {2}/)
})

describe.skipIf(!hasTshark)('pcapng, read by tshark', () => {
  const read = (file: string, ...fields: string[]) =>
    execFileSync('tshark', ['-r', file, '-T', 'fields', ...fields.flatMap((field) => ['-e', field])], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    })
      .trim()
      .split('\n')
      .map((line) => line.split('\t'))

  test('IP datagrams are IP datagrams, whole, at their times', async () => {
    const file = join(directory.path, 'ip.pcapng')
    const begun = Date.now() / 1000
    const { code } = await tapped(['loss', '--input', '--count', '50', '--write', file], ping)
    expect(code).toBe(0)
    const rows = read(
      file,
      'frame.time_epoch',
      'frame.len',
      'ip.src',
      'icmp.type',
      'icmp.seq',
      'icmp.checksum.status',
      'frame.interface_name',
    )
    expect(rows).toHaveLength(50)
    const first = Number(rows[0]?.[4])
    let last = begun - 1
    rows.forEach(([time, ...row], i) => {
      expect(row).toEqual(['60', '192.0.2.1', '8', String(first + i), '1', 'came'])
      expect(Number(time)).toBeGreaterThanOrEqual(last)
      last = Number(time)
    })
    expect(last).toBeLessThan(Date.now() / 1000 + 1)
  })

  test('what is no IP, cut short, on standard output', async () => {
    const { stdout } = await tapped(['front', '-c', '3', '-s', '4', '-w', '-', '--link-type', 'user'], () =>
      Buffer.alloc(100, 7),
    )
    expect(stdout.length).toBeGreaterThan(100)
    const file = join(directory.path, 'cut.pcapng')
    await tapped(['front', '-c', '3', '-s', '4', '-w', file], () => Buffer.alloc(100, 7))
    expect(read(file, 'frame.len', 'frame.cap_len', 'frame.encap_type')).toEqual(
      Array(3).fill(['100', '4', expect.any(String)]),
    )
  })
})

test('Ctrl-C ends it, the file whole; the end of the run does too', async () => {
  for (const end of ['SIGINT', 'run']) {
    const own = await node.create(traffic(), { name: `ends by ${end}` })
    const run = await node.start(own)
    const file = join(directory.path, `${end}.pcapng`)
    const child = start(['pipelines', 'tap', own, 'source', '--run', run, '-w', file, '-o', 'json'], env)
    let printed = ''
    child.stdout?.on('data', (chunk) => {
      printed += chunk
    })
    const gone = new Promise<number | null>((resolve) => child.on('close', resolve))
    await until(() => existsSync(file) && readFileSync(file).length > 10_000, 'packets are written')
    if (end === 'SIGINT') child.kill('SIGINT')
    else await node.call('POST', `/pipelines/${own}/stop`)
    expect(await gone).toBe(0)
    const { captured, dropped } = JSON.parse(printed)
    expect(captured).toBeGreaterThan(10)
    expect(dropped).toBe(0)
    if (hasTshark) {
      const out = execFileSync('tshark', ['-r', file], {
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'ignore'],
        maxBuffer: 1 << 28,
      })
      expect(out.trim().split('\n')).toHaveLength(captured)
    }
  }
})

test.each([
  [['captured', 'lss'], 'no component "lss". Did you mean "loss"?'],
  [['captured', 'front', '--input'], 'component "front" has no inputs'],
  [['captured', 'front', '--run', 'none'], 'no pipeline has a run none'],
  [['captured', 'front', '-w', '/nowhere/x.pcapng'], 'cannot write /nowhere/x.pcapng'],
  [['captured', 'front', '-c', '0'], '0'],
])('what cannot be is refused: %j', async (args, message) => {
  const { code, stderr } = await penstock(['pipelines', 'tap', ...args], { env })
  expect(code).not.toBe(0)
  expect(stderr).toContain(message)
})

test('of a run that is over nothing is captured', async () => {
  const over = await node.create(traffic(), { name: 'over' })
  const run = await node.start(over)
  await node.call('POST', `/pipelines/${over}/stop`)
  await node.when(over, ({ started }) => !started)
  const { code, stderr } = await penstock(['pipelines', 'tap', 'over', 'source', '--run', run], { env })
  expect(code).not.toBe(0)
  expect(stderr).toContain('packets are captured while a run is')
})
