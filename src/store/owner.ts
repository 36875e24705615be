/** Who holds the data directory: one process at a time, found dead or alive by its process id and start time. */
import { readFileSync } from 'node:fs'
import type { Database, RootDatabase } from 'lmdb'

interface Owner {
  pid: number
  /** Start of the process in clock ticks since boot (proc(5), stat field 22), so that a reused pid is not taken for it. */
  started: string
  boot: string
}

/** Another process, or another node of this one, works in the data directory. */
export class DirectoryInUse extends Error {
  override readonly name = 'DirectoryInUse'
}

export class OwnerCollection {
  readonly #root: RootDatabase
  readonly #records: Database<Owner, string>

  constructor(root: RootDatabase) {
    this.#root = root
    this.#records = root.openDB<Owner, string>({ name: 'owner', encoding: 'msgpack' })
  }

  /** Takes the directory for this process; LMDB's writer lock makes look and take one step. Throws DirectoryInUse. */
  claim(directory: string): void {
    this.#root.transactionSync(() => {
      const owner = this.#records.get('owner')
      if (owner !== undefined && isAlive(owner)) {
        throw new DirectoryInUse(
          `the data directory ${directory} is in use by process ${owner.pid}: stop that node or give this one another dataDirectory`,
        )
      }
      this.#records.putSync('owner', { pid: process.pid, started: startOf(process.pid), boot: bootId() })
    })
  }

  release(): void {
    this.#records.removeSync('owner')
  }
}

function isAlive(owner: Owner): boolean {
  if (owner.boot !== bootId()) return false
  try {
    process.kill(owner.pid, 0)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false
  }
  return startOf(owner.pid) === owner.started
}

function startOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    // A killed process whose parent has not waited for it yet is a zombie: it holds nothing any more.
    return fields[0] === 'Z' || fields[0] === 'X' ? '' : (fields[19] ?? '')
  } catch {
    return ''
  }
}

function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()
  } catch {
    return ''
  }
}
