/** The file descriptors of the process: how many are open, how many it may have open, and whether few enough are left that strangers are to get none. */
import { closeSync, openSync, readdirSync, readFileSync, statSync } from 'node:fs'

/** Descriptors that are kept from newcomers on the listeners, for runs, files and commands: so many, */
const RESERVED_DESCRIPTORS = 64
/** or this share of all, where that is fewer. */
const RESERVED_SHARE = 0.125
/** Connections that each port has nevertheless, as long as there are descriptors: runs may have taken the rest, and somebody has to stop them. */
export const MIN_CONNECTIONS = 8
/** No more than this share of the time is spent on readings: they take 10 µs, but older kernels have each descriptor listed. */
const READING_SHARE = 0.02

export class OpenDescriptors {
  /** How many the process may have open (RLIMIT_NOFILE, soft); Infinity where that is unknown. */
  readonly limit: number
  readonly #reserve: number
  readonly #read: () => number
  readonly #open: () => number
  #count = 0
  #due = Number.NEGATIVE_INFINITY

  /** `read`: how many are open; throws where none is left to find out with. `open` opens one. */
  constructor(limit = readLimit(), read = readCount, open = () => openSync('/dev/null', 'r')) {
    this.#open = open
    this.limit = limit
    this.#reserve = Math.min(RESERVED_DESCRIPTORS, Math.floor(limit * RESERVED_SHARE))
    this.#read = read
  }

  /** How many are open: as read lately, and since then as told. */
  get count(): number {
    const now = performance.now()
    if (now < this.#due) return this.#count
    try {
      this.#count = this.#read()
    } catch {
      // Where /proc is there, the only cause; elsewhere nothing is known.
      this.#count = Number.isFinite(this.limit) ? this.limit : 0
    }
    this.#due = now + (performance.now() - now) / READING_SHARE
    return this.#count
  }

  /** So many were opened, or closed: a burst between two readings counts at once. */
  changed(by: number): void {
    this.#count += by
  }

  /** How many are left. */
  get left(): number {
    return Math.max(0, this.limit - this.count)
  }

  /** What is left is not for newcomers. */
  get areShort(): boolean {
    return this.left < this.#reserve
  }

  /** The same for one of the few that are let in all the same: the last is kept. */
  get areGone(): boolean {
    return this.left <= 1
  }

  /** Whether the machine opens no more files for this process (ENFILE, fs.file-max), which no count of its own tells: tries to open one. */
  get areRefused(): boolean {
    try {
      closeSync(this.#open())
      return false
    } catch (error) {
      return (error as NodeJS.ErrnoException).code === 'ENFILE'
    }
  }

  /** For messages. */
  get text(): string {
    if (this.areRefused) return 'this machine opens no more files: raise its limit, sysctl fs.file-max'
    return `${Math.min(this.count, this.limit)} of the ${this.limit} file descriptors that the process may have open are in use: raise the limit (ulimit -n, LimitNOFILE=)`
  }
}

/** Those of this process. */
export const openDescriptors = new OpenDescriptors()

function readLimit(): number {
  try {
    const limit = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1]
    if (limit !== undefined) return Number(limit)
  } catch {}
  return Number.POSITIVE_INFINITY
}

/** Linux from 6.2 on says the number as the size of the directory, for which it needs to open nothing; before, the size is 0. */
function readCount(): number {
  // The list has the descriptor that it is read from.
  return statSync('/proc/self/fd').size || readdirSync('/proc/self/fd').length - 1
}

/** Throws the system's error (EMFILE, ENFILE) where this process may not open `count` files more; `file` is one that it may read. */
export function requireDescriptors(count: number, file: string): void {
  const opened: number[] = []
  try {
    while (opened.length < count) opened.push(openSync(file, 'r'))
  } finally {
    for (const descriptor of opened) closeSync(descriptor)
  }
}
