/** `penstock pipelines tap --write` where writing fails, waits or is given up: full disks, FIFOs and their readers. */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, constants, createReadStream, existsSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { MAX_WAITING_BYTES } from '../../src/cli/waiting-packets.ts'
import { packageRoot } from '../../src/package-root.ts'
import { type RunningNode, runNode, temporaryDirectory, traffic } from '../api/running-node.ts'
import { until } from '../harness/waiting.ts'
import { penstock, plainEnvironment, scratch, start } from './cli.ts'
import '../harness/slow.ts'

const hasPrlimit = spawnSync('prlimit', ['--version']).status === 0
if (!hasPrlimit) console.warn('SKIPPED: a file that may not grow needs prlimit')

const directory = scratch()
let node: RunningNode
let env: Record<string, string>

beforeAll(async () => {
  node = await runNode(temporaryDirectory())
  env = { PENSTOCK_URL: `http://${node.node.http}` }
  await node.start(await node.create(traffic(), { name: 'running' }))
})
afterAll(async () => {
  for (const child of children) child.kill('SIGKILL')
  await node.node.close()
  directory.dispose()
})

const tap = (...args: string[]) => ['pipelines', 'tap', 'running', 'source', ...args]

function fifo(name: string): string {
  const path = join(directory.path, name)
  execFileSync('mkfifo', [path])
  return path
}

/** How many packets a capture has; fails unless its last block is whole. */
function packetsIn(capture: Buffer): number {
  let packets = 0
  let at = 0
  for (; at + 8 <= capture.length; at += capture.readUInt32LE(at + 4)) if (capture.readUInt32LE(at) === 6) packets++
  expect(at).toBe(capture.length)
  return packets
}

const children: ChildProcess[] = []

/** A command that is on, what it has said on stderr so far, and its end. */
function followed(child: ChildProcess) {
  children.push(child)
  let stderr = ''
  child.stderr?.on('data', (said) => {
    stderr += said
  })
  let isClosed = false
  child.once('close', () => {
    isClosed = true
  })
  return {
    waits: () => until(() => stderr.includes('waiting for a reader'), 'it waits for a reader'),
    async end() {
      await until(() => isClosed, 'it ends')
      return { code: child.exitCode, stderr }
    },
  }
}

/** How much a process has read, or written, in bytes. */
const transferred = ({ pid }: ChildProcess, what: 'rchar' | 'wchar'): number =>
  Number(new RegExp(`^${what}: (\\d+)`, 'm').exec(readFileSync(`/proc/${pid}/io`, 'utf8'))?.[1])

/** Waits until a command has read more of its stream, as base64 and more, than it keeps for its reader and what lies in sockets. */
async function readsOn(child: ChildProcess): Promise<void> {
  const before = transferred(child, 'rchar')
  await until(() => transferred(child, 'rchar') > before + 3 * MAX_WAITING_BYTES, 'it reads the stream')
}

const captured = (stderr: string) => Number(/^(\d+) packets captured/m.exec(stderr)?.[1])
const dropped = (stderr: string) => Number(/, (\d+) dropped for want of room$/m.exec(stderr)?.[1] ?? 0)

describe('what takes no more', () => {
  test('a full device', async () => {
    const { code, stderr } = await penstock(tap('-w', '/dev/full', '-c', '50'), { env })
    expect(code).toBe(1)
    expect(stderr.split('\n')).toEqual([
      '0 packets captured',
      expect.stringMatching(/^penstock: cannot write \/dev\/full: ENOSPC: no space left on device/),
      '',
    ])
  })

  test.skipIf(!hasPrlimit)('a file that may not grow has the packets that are counted, each whole', async () => {
    const file = join(directory.path, 'limited.pcapng')
    const onStart = ({ pid }: ChildProcess) => {
      execFileSync('prlimit', ['--pid', String(pid), '--fsize=10001'])
    }
    const { code, stderr } = await penstock(tap('-w', file, '-c', '100000'), { env, onStart })
    expect(code).toBe(1)
    expect(stderr).toContain(`penstock: cannot write ${file}: EFBIG`)
    expect(captured(stderr)).toBeGreaterThan(1)
    expect(packetsIn(readFileSync(file))).toBe(captured(stderr))
  })
})

describe('a FIFO', () => {
  test.each(['SIGINT', 'SIGTERM'] as const)('without a reader is waited for, until %s', async (signal) => {
    const child = start(tap('-w', fifo(signal)), env)
    const { waits, end } = followed(child)
    await waits()
    child.kill(signal)
    expect(await end()).toEqual({
      code: 0,
      stderr: expect.stringMatching(/^waiting for a reader of .*\n0 packets captured\n$/),
    })
  })

  test('gets all packets once it has a reader', async () => {
    const path = fifo('read')
    const child = start(tap('-w', path, '-c', '2000'), env)
    const { waits, end } = followed(child)
    await waits()
    const came = await buffer(createReadStream(path))
    expect((await end()).code).toBe(0)
    expect(packetsIn(came)).toBe(2000)
  })

  test('ends the capture when its reader goes away', async () => {
    const path = fifo('left')
    const child = start(tap('-w', path), env)
    const { waits, end } = followed(child)
    await waits()
    const reader = createReadStream(path)
    await once(reader, 'data')
    reader.destroy()
    const { code, stderr } = await end()
    expect(code).toBe(0)
    expect(stderr).toMatch(/^waiting for .*\n\d+ packets captured.*\n$/)
  })

  test.each(['a FIFO', 'standard output'])('%s that nobody reads does not keep it from ending', async (what) => {
    const path = fifo(what)
    const unread = openSync(path, constants.O_RDWR | constants.O_NONBLOCK)
    const isOutput = what === 'standard output'
    const launcher = join(packageRoot(), 'bin/penstock.js')
    const child = spawn(process.execPath, [launcher, ...tap('-w', isOutput ? '-' : path)], {
      stdio: ['ignore', isOutput ? unread : 'pipe', 'pipe'],
      env: { ...plainEnvironment(), ...env },
    })
    try {
      const { end } = followed(child)
      let written = 0
      let since = 0
      await until(() => {
        const now = transferred(child, 'wchar')
        if (now !== written) since = performance.now()
        written = now
        return written > 50_000 && performance.now() - since > 500
      }, 'the pipe is full')
      child.kill('SIGTERM')
      const { code, stderr } = await end()
      expect(code).toBe(0)
      expect(captured(stderr)).toBeGreaterThan(100)
    } finally {
      closeSync(unread)
    }
  })
})

describe('the stream is read although nobody reads the capture, which gets what was kept', () => {
  let pipeline: string

  beforeEach(async () => {
    const source = { throughput_traffic_source: { output: 'a', throughput_mbit: 60, payload_size: 1400 } }
    pipeline = await node.create({ source, sink: { traffic_sink: { input: 'a' } } }, { name: 'fast' })
    await node.start(pipeline)
  })
  afterEach(async () => {
    await node.call('DELETE', `/pipelines/${pipeline}`)
  })

  /** Reads `capture` once the command has read on without it; then ends the run, after which all of it comes. */
  async function readLate(
    child: ChildProcess,
    { end }: ReturnType<typeof followed>,
    capture: () => Readable,
  ): Promise<{ came: Buffer; stderr: string }> {
    await readsOn(child)
    const pieces: Buffer[] = []
    let length = 0
    const reader = capture()
    reader.on('data', (bytes: Buffer) => {
      length += bytes.length
      pieces.push(bytes)
    })
    const isRead = once(reader, 'close')
    await until(() => length > MAX_WAITING_BYTES / 2, 'what waited comes')
    await node.call('POST', `/pipelines/${pipeline}/stop`)
    const { code, stderr } = await end()
    await isRead
    expect(code).toBe(0)
    return { came: Buffer.concat(pieces), stderr }
  }

  test('a FIFO', async () => {
    const path = fifo('late')
    const child = start(['pipelines', 'tap', pipeline, 'source', '-w', path], env)
    const command = followed(child)
    await command.waits()
    const { came, stderr } = await readLate(child, command, () => createReadStream(path))
    expect(packetsIn(came)).toBe(captured(stderr))
    expect(dropped(stderr)).toBeGreaterThan(100)
  })

  test.each([
    ['pcapng', ['-w', '-'], packetsIn],
    ['lines', ['-o', 'json'], (output: Buffer) => output.toString().trimEnd().split('\n').length],
  ])('standard output: %s', async (_, args, count) => {
    const child = start(['pipelines', 'tap', pipeline, 'source', ...args], env)
    const command = followed(child)
    // Its modules are read by then.
    await until(() => transferred(child, 'wchar') > 50_000, 'the capture has begun')
    const { came, stderr } = await readLate(child, command, () => child.stdout as Readable)
    expect(count(came)).toBe(captured(stderr))
    expect(dropped(stderr)).toBeGreaterThan(100)
  })
})

test.each([
  ['for people', [], (_: string, stderr: string) => captured(stderr)],
  ['as JSON', ['-o', 'json'], (stdout: string) => JSON.parse(stdout).captured],
])(
  'a stream that fails: the last line says %s how many packets the capture has, and then why',
  async (what, args, told) => {
    const other = await runNode(temporaryDirectory())
    await other.start(await other.create(traffic(), { name: 'running' }))
    const file = join(directory.path, `failed ${what}.pcapng`)
    const child = start(tap('-w', file, ...args), { PENSTOCK_URL: `http://${other.node.http}` })
    let stdout = ''
    child.stdout?.on('data', (text) => {
      stdout += text
    })
    const { end } = followed(child)
    await until(() => existsSync(file) && readFileSync(file).length > 10_000, 'packets are written')
    await other.node.close()
    const { code, stderr } = await end()
    expect(code).toBe(1)
    expect(stderr).toMatch(/^(\d+ packets captured\n)?penstock: .+\n$/)
    expect(told(stdout, stderr)).toBe(packetsIn(readFileSync(file)))
  },
)
