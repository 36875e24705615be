/** The file of the store before LMDB has it: whatever is wrong with it is said, and a file that is in order is taken. */
import { copyFileSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { open } from 'lmdb'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { checkDatabaseFile, reading, StoreDamaged } from './database-file.ts'
import type { PipelineRecord } from './pipelines.ts'
import { Store } from './store.ts'

const PAGE = 4096
/** Where the id of the machine's start lies in each meta. */
const BOOT = [0, PAGE / 2, PAGE].map((meta) => meta + 160)

let directory: string
/** A file with records on pages of their own, and of what was one. */
let good: Buffer
let path: string

const pipeline = (id: string, bytes: number): PipelineRecord => ({
  id,
  createdAt: 1,
  settings: {
    name: id,
    jsonConfig: 'y'.repeat(bytes),
    restartPolicy: { never: {} },
    startupPolicy: { manual: {} },
    defaultLoggingLevel: 'WARN',
    nodeReferenceId: 'n',
    instructionsTimeout: 10,
    cpuPin: 0,
    performanceMode: false,
  },
})

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'penstock-database-'))
  path = join(directory, 'penstock.lmdb')
  const store = new Store(directory)
  for (let i = 0; i < 40; i++) await store.pipelines.put(pipeline(`p${i}`, i * 300))
  await store.pipelines.remove(['p3', 'p39'])
  await store.close()
  good = readFileSync(path)
})
afterAll(() => rmSync(directory, { recursive: true }))

/** The file with something else in a place of it. */
function changed(change: (file: Buffer) => Buffer | undefined): void {
  const copy = Buffer.from(good)
  writeFileSync(path, change(copy) ?? copy)
}

/** `change` is told where each page with records begins, and where its first record does. */
const inEachLeaf =
  (change: (file: Buffer, page: number, record: number) => void) =>
  (file: Buffer): undefined => {
    for (let page = 2 * PAGE; page < file.length; page += PAGE) {
      const isLeaf = (file.readUInt16LE(page + 18) & 0xff) === 2
      if (isLeaf) change(file, page, page + 24 + file.readUInt16LE(page + 24))
    }
  }

describe('what is no database', () => {
  const noise = (bytes: number) => Buffer.from(Uint8Array.from({ length: bytes }, (_, i) => (i * 167 + 13) % 251))
  test.each([
    ['a line of text', () => Buffer.from('hello\n'), 'is damaged: it is cut off: it ends after 6 bytes'],
    ['other bytes', () => noise(10 * PAGE), 'is damaged: it is no database of LMDB'],
    ['zeros', () => Buffer.alloc(good.length), 'is damaged: it is no database of LMDB'],
    ['one of another version', (file: Buffer) => void file.writeUInt32LE(1, 28), 'with data version 1, not 2'],
    ['one with impossible pages', (file: Buffer) => void file.writeUInt32LE(4095, 48), 'its pages have 4095 bytes'],
    ['one without its second meta', (file: Buffer) => void file.fill(0, PAGE, 2 * PAGE), 'it is no database of LMDB'],
    ['zeros behind its metas', (file: Buffer) => void file.fill(0, 2 * PAGE), 'is not what leads to it says'],
    [
      'noise behind its metas',
      (file: Buffer) => void noise(good.length).copy(file, 2 * PAGE),
      'is not what leads to it',
    ],
    [
      'records that do not begin in their pages',
      inEachLeaf((file, page) => void file.writeUInt16LE(0xfff0, page + 24)),
      'is not what leads to it says',
    ],
    [
      'records that do not end in their pages',
      inEachLeaf((file, _, record) => {
        const isRecord = file.readUInt16LE(record + 4) === 0
        if (isRecord) file.writeUInt32LE(1 << 20, record)
      }),
      'is not what leads to it says',
    ],
  ])('%s', (_, change, what) => {
    changed(change)
    expect(() => new Store(directory)).toThrow(StoreDamaged)
    expect(() => new Store(directory)).toThrow(what)
    expect(() => new Store(directory)).toThrow(
      /^\S+penstock\.lmdb is damaged: .*; restore the data directory from a backup/,
    )
  })
})

test('wherever it is cut off, and whichever page is lost, it is refused or is whole: never does it end the process', async () => {
  let refused = 0
  const tried: (() => void)[] = []
  for (let page = 0; page < good.length / PAGE; page++) {
    tried.push(() => changed((file) => file.subarray(0, page * PAGE || 1)))
    tried.push(() => changed((file) => file.subarray(0, page * PAGE + 100)))
    tried.push(() => changed((file) => void file.fill(0, page * PAGE, (page + 1) * PAGE)))
    tried.push(() => changed((file) => void file.fill(0xff, page * PAGE, (page + 1) * PAGE)))
  }
  for (const damage of tried) {
    damage()
    try {
      const store = new Store(directory)
      expect(store.pipelines.all()).toHaveLength(38)
      await store.close()
    } catch (error) {
      expect(error).toBeInstanceOf(StoreDamaged)
      refused++
    }
  }
  expect(refused).toBeGreaterThan(100)
})

test('a record that is none: the file and what was read are named', async () => {
  writeFileSync(path, good)
  const root = open({ path, noSubdir: true, maxDbs: 16 })
  // A text that claims to go on behind the end of the record.
  await root.openDB({ name: 'pipelines', encoding: 'binary' }).put('p4', Buffer.of(0xda, 0xff, 0xff, 0x61))
  await root.close()
  expect(() => new Store(directory).pipelines.all()).toThrow(
    /penstock\.lmdb is damaged: .*; restore the data directory/,
  )
})

test.each([
  [
    5,
    'Input/output error',
    /a\.lmdb cannot be read and written \(Input.*\): is its disk full, or failing \(dmesg\)\?$/,
  ],
  [12, 'Cannot allocate memory', /a\.lmdb cannot be read and written \(Cannot allocate memory\)$/],
])(
  'what the system refuses is said with the file, and of the disk where that is why: error %i',
  (code, message, told) => {
    const refused = () => {
      throw Object.assign(new Error(message), { code })
    }
    expect(() => reading('a.lmdb', refused)).toThrow(told)
  },
)

describe('what is in order', () => {
  test('no file, an empty one, a whole one, and one of which nothing but free pages is missing', async () => {
    checkDatabaseFile(join(directory, 'none'))
    writeFileSync(join(directory, 'empty'), '')
    checkDatabaseFile(join(directory, 'empty'))
    writeFileSync(path, good)
    checkDatabaseFile(path)
    rmSync(path)
    rmSync(`${path}-lock`)
    const store = new Store(directory)
    // Its pages are given out and free again before any of them is written.
    await Promise.all([store.pipelines.put(pipeline('a', 200_000)), store.pipelines.remove('a')])
    const last = Math.max(...[0, PAGE].map((meta) => Number(readFileSync(path).readBigUInt64LE(meta + 144))))
    expect(statSync(path).size).toBeLessThan(last * PAGE)
    checkDatabaseFile(path)
    await store.close()
    await new Store(directory).close()
  })

  test('after another start of the machine, what was certain to be on disk', async () => {
    changed((file) => {
      for (const at of BOOT) file.writeBigInt64LE(5n, at)
      return file
    })
    copyFileSync(path, join(directory, 'copy'))
    checkDatabaseFile(join(directory, 'copy'))
    const store = new Store(directory)
    expect(store.pipelines.all().length).toBeGreaterThan(30)
    await store.close()
    truncateSync(path, 3 * PAGE)
    expect(() => checkDatabaseFile(path)).toThrow('it is cut off')
  })

  test('after another start of the machine, of a store that was ahead of its disk, what was certain to be there', async () => {
    const SYNCED = PAGE / 2
    const ids = (store: Store) => store.pipelines.all().map(({ id }) => id)
    writeFileSync(path, good)
    // As stores were written before.
    const root = open({ path, noSubdir: true, maxDbs: 16, overlappingSync: true })
    const pipelines = root.openDB({ name: 'pipelines' })
    await pipelines.put('p1', pipeline('certain', 1))
    await root.flushed
    const synced = readFileSync(path).subarray(SYNCED, SYNCED + 200)
    await pipelines.put('p2', pipeline('lost', 1))
    await root.close()
    expect(checkDatabaseFile(path)).toBe(false)
    const lost = readFileSync(path)
    synced.copy(lost, SYNCED)
    for (const at of BOOT) lost.writeBigInt64LE(5n, at)
    writeFileSync(path, lost)
    expect(checkDatabaseFile(path)).toBe(true)
    let store = new Store(directory)
    expect(ids(store)).toContain('certain')
    expect(ids(store)).not.toContain('lost')
    await store.pipelines.put(pipeline('later', 1))
    await store.close()
    expect(checkDatabaseFile(path)).toBe(false)
    store = new Store(directory)
    expect(ids(store)).toEqual(expect.arrayContaining(['certain', 'p2', 'later']))
    await store.close()
  })
})
