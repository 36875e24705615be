/**
 * Looks through the file of the store before LMDB maps it: a page that is cut off or is none would end this process with a signal, or with a message that
 * names no file. Knows the layout of lmdb-js 3 (data version 2, dependencies/lmdb/libraries/liblmdb/mdb.c) on a machine of 64 bits, lowest byte first.
 */
import { closeSync, fstatSync, openSync, readFileSync, readSync } from 'node:fs'
import { constants } from 'node:os'
import type { RootDatabase } from 'lmdb'
import { NotStored } from '../contract/errors.ts'
import { messageOf } from '../text/error-message.ts'

/** The file of the store cannot be read; the message says which, what is wrong with it and what to do. */
export class StoreDamaged extends Error {
  override readonly name = 'StoreDamaged'

  constructor(path: string, what: string, options?: ErrorOptions) {
    super(
      `${path} is damaged: ${what}; restore the data directory from a backup (docs/service.md), or move this file away: the node then starts under ` +
        'its id without pipelines and tokens, and on no hub',
      options,
    )
  }
}

/** What the system says of a disk that takes no more, or fails. */
const { EIO, EFBIG, ENOSPC, EROFS, EDQUOT } = constants.errno
const OF_DISKS: ReadonlySet<number> = new Set([EIO, EFBIG, ENOSPC, EROFS, EDQUOT])

/**
 * What `read` reads of a database, or of one below it. Throws StoreDamaged where LMDB says that the file is not in order or a record in it is none, an Error
 * that names the file where the system refuses something (LMDB has a number over 0 as `code` then), NotStored as it is.
 */
export function reading<T>(of: RootDatabase | string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (error instanceof NotStored) throw error
    const { code } = error as { code?: unknown }
    const path = typeof of === 'string' ? of : (of as unknown as { path: string }).path
    if (typeof code === 'number' && code > 0) {
      const hint = OF_DISKS.has(code) ? ': is its disk full, or failing (dmesg)?' : ''
      throw new Error(`${path} cannot be read and written (${messageOf(error)})${hint}`, { cause: error })
    }
    throw new StoreDamaged(path, messageOf(error), { cause: error })
  }
}

/** What is wrong with the page that was read. */
class Fault extends Error {}

const magic = 0xbeefc0de
const version = 2
const header = 24
const node = 8
/** Places in a page's header. */
const pageAt = { number: 0, flags: 18, lower: 20, upper: 22, pages: 20 }
const kinds = { branch: 0x01, leaf: 0x02, overflow: 0x04, meta: 0x08 }
/** Places in a meta, from the start of its page's header. */
const metaAt = {
  magic: 24,
  version: 28,
  pageSize: 48,
  flags: 52,
  freeRoot: 88,
  mainRoot: 136,
  lastPage: 144,
  transaction: 152,
  boot: 160,
  end: 168,
}
/** On a meta that may be ahead of what is on disk. */
const overlappingSync = 0x1000
const nodeKinds = { big: 0x01, sub: 0x02 }
/** What a leaf holds of a database below it, bytes, and the place of its root in that. */
const database = { bytes: 48, root: 40 }
/** Where the value of a node lies on pages of its own: the first one, a transaction, their number. */
const overflow = { bytes: 24, pages: 16 }
const noPage = (1n << 64n) - 1n

/**
 * Throws StoreDamaged where the file at `path` is no database that LMDB can open and read: each page that is reachable from where LMDB would begin is
 * there and is what leads to it says. The last pages may be missing where they are free. What the records say is not looked at. Without a file, or with an
 * empty one, there is nothing to look at. Nobody may write to the file meanwhile.
 *
 * Returns whether the newest state may be ahead of what has reached the disk, as of a writer with lmdb's overlappingSync when the machine went down: lmdb
 * goes by an earlier one then, but only where it is opened with overlappingSync.
 */
export function checkDatabaseFile(path: string): boolean {
  let file: number
  try {
    file = openSync(path, 'r')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
    throw error
  }
  try {
    const { size } = fstatSync(file)
    return size > 0 && checkPages(file, size)
  } catch (error) {
    if (error instanceof Fault) throw new StoreDamaged(path, error.message)
    throw error
  } finally {
    closeSync(file)
  }
}

interface Meta {
  readonly flags: number
  readonly roots: readonly bigint[]
  readonly lastPage: number
  readonly transaction: bigint
  readonly boot: bigint
}

/** A page to look at; `pages`: one of so many that hold a value. */
interface Expected {
  readonly number: number
  readonly pages?: number
}

function checkPages(file: number, size: number): boolean {
  const bytesAt = (at: number, bytes: number): Buffer => {
    const buffer = Buffer.alloc(bytes)
    if (at + bytes > size || readSync(file, buffer, 0, bytes, at) < bytes) {
      throw new Fault(`it is cut off: it ends after ${size} bytes, and ${bytes} bytes at ${at} belong to it`)
    }
    return buffer
  }
  const pageSize = pageSizeOf(bytesAt(0, metaAt.end))
  checkMeta(bytesAt(pageSize, metaAt.end))
  const [first, second, synced] = [0, pageSize, pageSize / 2].map((at) => metaOf(bytesAt(at, metaAt.end))) as [
    Meta,
    Meta,
    Meta,
  ]
  const { roots, lastPage, transaction } = chosen(chosen(first, second), synced)
  const waiting: Expected[] = roots.filter((root) => root !== noPage).map((root) => ({ number: Number(root) }))
  const seen = new Set<number>()
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { number, pages } = next
    if (number < 2 || number + (pages ?? 1) - 1 > lastPage)
      throw new Fault(`it leads to a page ${number}, which it cannot have`)
    if (seen.has(number)) throw new Fault(`its page ${number} is used twice`)
    seen.add(number)
    const at = number * pageSize
    if (pages !== undefined) {
      // The end of the value, so that a file that is cut off is seen.
      bytesAt(at + pages * pageSize - 1, 1)
      const page = bytesAt(at, header)
      if (!isPage(page, number, kinds.overflow) || page.readUInt32LE(pageAt.pages) !== pages) throw isNot(number)
      continue
    }
    const page = bytesAt(at, pageSize)
    if (isPage(page, number, kinds.leaf)) {
      for (const offset of nodesOf(page, number)) waiting.push(...belowLeaf(page, offset, number))
    } else if (isPage(page, number, kinds.branch)) {
      for (const offset of nodesOf(page, number)) waiting.push({ number: page.readUIntLE(offset, 6) })
    } else throw isNot(number)
  }
  return first.transaction > transaction || second.transaction > transaction
}

function pageSizeOf(page: Buffer): number {
  checkMeta(page)
  const size = page.readUInt32LE(metaAt.pageSize)
  if (size < 512 || size > 65_536 || (size & (size - 1)) !== 0) throw new Fault(`its pages have ${size} bytes`)
  return size
}

function checkMeta(page: Buffer): void {
  if ((page.readUInt16LE(pageAt.flags) & kinds.meta) === 0 || page.readUInt32LE(metaAt.magic) !== magic) {
    throw new Fault('it is no database of LMDB')
  }
  const found = page.readUInt32LE(metaAt.version) & 0xffff
  if (found !== version) throw new Fault(`it is a database of LMDB with data version ${found}, not ${version}`)
}

function metaOf(page: Buffer): Meta {
  return {
    flags: page.readUInt16LE(metaAt.flags),
    roots: [page.readBigUInt64LE(metaAt.freeRoot), page.readBigUInt64LE(metaAt.mainRoot)],
    lastPage: Number(page.readBigUInt64LE(metaAt.lastPage)),
    transaction: page.readBigUInt64LE(metaAt.transaction),
    boot: page.readBigInt64LE(metaAt.boot),
  }
}

/** Which of two metas LMDB goes by (mdb_pick_meta): the newer one, but after another start of the machine only if it is certain to have reached the disk. */
function chosen(a: Meta, b: Meta): Meta {
  if (b.transaction === 0n) return a
  const latest = a.transaction >= b.transaction ? a : b
  const isOfThisStart = latest.boot !== 0n && latest.boot === bootId()
  if (isOfThisStart || (latest.flags & overlappingSync) === 0) return latest
  return a.transaction > b.transaction ? b : a
}

/** The first part of the id that Linux gives each start of the machine, as LMDB has it. */
function bootId(): bigint {
  try {
    return BigInt(`0x${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').split('-', 1)[0]}`)
  } catch {
    return 0n
  }
}

function isPage(page: Buffer, number: number, kind: number): boolean {
  return page.readBigUInt64LE(pageAt.number) === BigInt(number) && (page.readUInt16LE(pageAt.flags) & 0xff) === kind
}

function isNot(number: number): Fault {
  return new Fault(`its page ${number} is not what leads to it says`)
}

/** Where the nodes of a page begin, from its start. */
function* nodesOf(page: Buffer, number: number): Generator<number> {
  const lower = page.readUInt16LE(pageAt.lower)
  const upper = page.readUInt16LE(pageAt.upper)
  const room = page.length - header
  if (lower % 2 !== 0 || lower > upper || upper > room) throw isNot(number)
  for (let i = 0; i < lower; i += 2) {
    const offset = page.readUInt16LE(header + i)
    if (offset < upper || offset + node > room) throw isNot(number)
    const keyEnd = header + offset + node + page.readUInt16LE(header + offset + 6)
    if (keyEnd > page.length) throw isNot(number)
    yield header + offset
  }
}

/** The pages that a node of a leaf leads to. */
function belowLeaf(page: Buffer, offset: number, number: number): Expected[] {
  const flags = page.readUInt16LE(offset + 4)
  const bytes = page.readUInt32LE(offset)
  const value = offset + node + page.readUInt16LE(offset + 6)
  const here = (flags & nodeKinds.big) === 0 ? bytes : overflow.bytes
  if (value + here > page.length) throw isNot(number)
  if ((flags & nodeKinds.big) !== 0) {
    const pages = Number(page.readBigUInt64LE(value + overflow.pages))
    if (pages * page.length < bytes + header) throw isNot(number)
    return [{ number: Number(page.readBigUInt64LE(value)), pages }]
  }
  if ((flags & nodeKinds.sub) === 0) return []
  if (bytes !== database.bytes) throw isNot(number)
  const root = page.readBigUInt64LE(value + database.root)
  return root === noPage ? [] : [{ number: Number(root) }]
}
