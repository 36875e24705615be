/** The log of a run: in memory, in its files, and read while it grows. */
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { until } from '../../test/harness/waiting.ts'
import type { LogLine } from '../dataplane/engine/run.ts'
import { RunLog } from './run-log.ts'
import { RunLogs } from './run-logs.ts'

const line = (message: string): LogLine => ({
  timestamp: 1.5,
  level: 'INFO',
  component: 'a',
  message,
  fields: { x: 1 },
})
const lines = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => line(`${from + i}`))
const numbers = (of: readonly LogLine[]) => of.map(({ message }) => Number(message))
const range = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i)

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'penstock-log-'))
})
afterEach(() => rmSync(directory, { recursive: true }))

const options = (more: { bytes?: number; capacity?: number } = {}) => ({
  path: join(directory, 'run.jsonl'),
  bytes: 1 << 20,
  onLost: (count: number, error: Error) => {
    throw new Error(`${count} lines are lost`, { cause: error })
  },
  ...more,
})

/** Every line from `from` on, as whoever follows the log reads it. */
async function readFrom(log: RunLog, from: number): Promise<LogLine[]> {
  const read: LogLine[] = []
  for (let at = from; ; ) {
    const rest = log.inMemory(at)
    if (rest !== undefined) return [...read, ...rest]
    const { lines, next } = await log.stored(at)
    read.push(...lines)
    at = next
  }
}

test('the last lines are in memory, oldest first, over any number of wraps; those before come from the file', async () => {
  const log = new RunLog(options({ capacity: 4 }))
  for (let at = 0; at < 11; at++) {
    log.append(lines(at, at + 1))
    expect(numbers(log.inMemory(Math.max(0, at - 3)) ?? [])).toEqual(range(Math.max(0, at - 3), at + 1))
    if (at >= 4) expect(log.inMemory(at - 4)).toBeUndefined()
  }
  expect(log.inMemory(11)).toEqual([])
  expect(await readFrom(log, 0)).toEqual(lines(0, 11).map((each) => expect.objectContaining(each)))
  log.append(lines(11, 40))
  expect(numbers(await readFrom(log, 7))).toEqual(range(7, 40))
})

test('a reader that comes while lines pour in gets each once, in order, whatever is put aside meanwhile', async () => {
  const log = new RunLog(options({ capacity: 50, bytes: 400_000 }))
  let written = 0
  const total = 3_000
  const writing = (async () => {
    while (written < total) {
      log.append(lines(written, written + 10))
      written += 10
      await new Promise((resolve) => setImmediate(resolve))
    }
  })()
  for (let round = 0; round < 20; round++) {
    const from = Math.max(0, written - 700)
    const seen: LogLine[] = []
    for (let at = from; ; ) {
      const rest = log.inMemory(at)
      if (rest !== undefined) {
        seen.push(...rest)
        break
      }
      const { lines, next } = await log.stored(at)
      seen.push(...lines)
      at = next
    }
    const leave = log.follow((more) => seen.push(...more))
    for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve))
    leave()
    expect(numbers(seen)).toEqual(range(from, from + seen.length))
    expect(from + seen.length).toBeGreaterThanOrEqual(written - 10)
  }
  await writing
  await log.written()
  expect(numbers(await readFrom(log, total - 1_000))).toEqual(range(total - 1_000, total))
})

test('a reader gets its turn however fast lines come', async () => {
  const log = new RunLog(options({ capacity: 50, bytes: 64 << 20 }))
  let isRead = false
  let written = 0
  const writing = (async () => {
    while (!isRead) {
      log.append(lines(written, ++written))
      await new Promise((resolve) => setImmediate(resolve))
    }
  })()
  await until(() => written > 100)
  const { lines: read } = await log.stored(0)
  isRead = true
  await writing
  expect(numbers(read)).toEqual(range(0, read.length))
  await log.remove()
  expect(readdirSync(directory)).toEqual([])
})

test.each([
  [40, 1],
  [100, 1],
  [100, 50],
  [180, 1],
])(
  'no more is kept on disk than asked for, of whole lines, and the newest of them: %d at once, %d times',
  async (count, times) => {
    const log = new RunLog(options({ capacity: 10, bytes: 64 << 10 }))
    const total = 1_080
    for (let at = 0; at < total; at += count) {
      log.append(lines(at, Math.min(at + count, total)))
      if ((at / count) % times === times - 1) await log.written()
    }
    await log.written()
    const names = readdirSync(directory).sort()
    expect(names).toEqual(['run.jsonl', 'run.jsonl.1', 'run.jsonl.2', 'run.jsonl.3'])
    const sizes = names.map((name) => readFileSync(join(directory, name)).length)
    for (const size of sizes) expect(size).toBeLessThanOrEqual(16 << 10)
    for (const size of sizes.slice(1)) expect(size).toBeGreaterThan(16_200)
    const kept = numbers(await readFrom(log, 0))
    expect(kept).toEqual(range(total - kept.length, total))
  },
)

test('a long log is read in pieces, from any line, also behind a line that is none', async () => {
  const path = join(directory, 'run.jsonl')
  const text = (from: number, to: number) =>
    lines(from, to)
      .map((each, i) => `${JSON.stringify({ n: from + i, ...each })}\n`)
      .join('')
  writeFileSync(`${path}.1`, text(0, 20_000))
  writeFileSync(path, `{"n":20000,"time\n${text(20_000, 20_100)}`)
  const log = RunLog.stored(options())
  await log.opened
  expect(log.next).toBe(20_100)
  for (const from of [0, 1, 7_777, 19_999, 20_000]) {
    const { lines: some, next } = await log.stored(from)
    expect(numbers(some)).toEqual(range(from, next))
    expect(some.length).toBeLessThan(6_500)
  }
  expect(numbers(await readFrom(log, 15_000))).toEqual(range(15_000, 20_100))
})

test('a log that an earlier process has left is read and goes on behind its last whole line', async () => {
  const before = new RunLog(options())
  before.append(lines(0, 5))
  await before.written()
  const path = join(directory, 'run.jsonl')
  writeFileSync(path, `${readFileSync(path, 'utf8')}{"n":5,"times`)
  const log = RunLog.stored(options())
  await log.opened
  expect(log.next).toBe(5)
  expect(numbers(await readFrom(log, 2))).toEqual([2, 3, 4])
  log.append(lines(5, 7))
  await log.settle()
  expect(log.inMemory(5)).toBeUndefined()
  expect(numbers(await readFrom(log, 0))).toEqual(range(0, 7))
  const again = RunLog.stored(options())
  await again.opened
  expect(again.next).toBe(7)
  await again.remove()
  expect(readdirSync(directory)).toEqual([])
})

test('a log whose last lines are followed by what is none goes on behind them, wherever they lie', async () => {
  const path = join(directory, 'run.jsonl')
  const text = lines(0, 3_000)
    .map((each, n) => `${JSON.stringify({ n, ...each })}\n`)
    .join('')
  // What a power failure may leave of lines that were not on the disk yet; the last line is cut by where a piece of 256 KiB begins.
  for (const bytes of [100_000, (256 << 10) - 50, (256 << 10) + 50, 1_000_000]) {
    writeFileSync(path, text + '\0'.repeat(bytes))
    const log = RunLog.stored(options({ bytes: 8 << 20 }))
    await log.opened
    expect(log.next).toBe(3_000)
    log.append(lines(3_000, 3_001))
    await log.settle()
    expect(numbers(await readFrom(log, 0))).toEqual(range(0, 3_001))
  }
})

test('what the disk does not take stays in memory, and is told once', async () => {
  const told: string[] = []
  writeFileSync(join(directory, 'file'), '')
  const log = new RunLog({
    path: join(directory, 'file', 'run.jsonl'),
    bytes: 1 << 20,
    onLost: (count, error) => told.push(`${count} ${(error as NodeJS.ErrnoException).code}`),
  })
  log.append(lines(0, 3))
  await log.written()
  log.append(lines(3, 4))
  await log.settle()
  expect(told).toEqual(['3 ENOTDIR'])
  expect(numbers(log.inMemory(0) ?? [])).toEqual([0, 1, 2, 3])
})

test('what the disk did not take for a while is had from memory, in its place', async () => {
  const path = join(directory, 'run.jsonl')
  let lost = 0
  const log = new RunLog({ ...options({ capacity: 50 }), onLost: (count) => (lost += count) })
  log.append(lines(0, 40))
  await log.written()
  renameSync(path, `${path}.away`)
  mkdirSync(path)
  log.append(lines(40, 60))
  await log.written()
  rmdirSync(path)
  renameSync(`${path}.away`, path)
  log.append(lines(60, 70))
  await log.written()
  expect(lost).toBe(20)
  expect(numbers(await readFrom(log, 0))).toEqual(range(0, 70))
})

test('of logs that are not kept those are removed that can be, whichever cannot', async () => {
  for (const name of ['a', 'b', 'c', 'd']) writeFileSync(join(directory, `${name}.jsonl`), '')
  mkdirSync(join(directory, 'aa.jsonl'))
  mkdirSync(join(directory, 'bb.jsonl'))
  const logs = new RunLogs({ directory, runs: 1, bytes: 1, onLost: () => {} })
  await expect(logs.removeOthers(new Set(['c']))).rejects.toThrow('aa.jsonl')
  expect(readdirSync(directory).sort()).toEqual(['aa.jsonl', 'bb.jsonl', 'c.jsonl'])
})
