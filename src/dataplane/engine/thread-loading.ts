/** Piscina, whose threads begin with load-thread.ts: what they are given to load, and the wait for those that are in the midst of it. */
import { join } from 'node:path'
import { packageRoot } from '../../package-root.ts'
import { requirePackage } from '../../require-package.ts'
import { addonFile } from '../native/native.ts'

/** Bundled (packaging/bundles.js). Threads run built code, also when the main thread runs the sources (tests). */
const folder = join(packageRoot(), 'dist/piscina')

export const { Piscina } = requirePackage(join(folder, 'main.js')) as typeof import('piscina')

/** Piscina's part of a thread. */
const TASKS = join(folder, 'tasks.js')

/** How long the end of threads waits for one that is loading; whoever was ended in the midst of it is never done. */
const MAX_LOAD_MS = 5_000

/** A file that threads have loaded, for those that load it after them: they need neither read nor compile it. */
export interface LoadedFile {
  /** Its text, one byte for each character. */
  readonly text: SharedArrayBuffer
  /** Its code as V8 has compiled it (`cachedData` of vm.Script), with the functions that had run by then. */
  readonly code: SharedArrayBuffer
  /** How many threads, one after the other, have added the functions that they ran. */
  readonly makers: number
}

/** By their paths. */
export type LoadedFiles = ReadonlyMap<string, LoadedFile>

/** `workerData` of each thread. */
export interface ThreadData {
  /** The module that does the tasks. */
  readonly thread: string
  /** The file that has the thread take tasks: Piscina's. */
  readonly tasks: string
  /** How many threads of the pool have begun to load it, and how many are done. */
  readonly loads: Int32Array
  /** The file of the native addon. */
  readonly addon: string
  /** What threads before have loaded. */
  readonly files: LoadedFiles
}

/** What the threads of a pool are given, and what they have said of their loading. */
export class ThreadLoads {
  readonly data: ThreadData
  private readonly loads = new Int32Array(new SharedArrayBuffer(8))
  private readonly files = new Map<string, LoadedFile>()

  constructor(thread: string) {
    this.data = { thread, tasks: TASKS, loads: this.loads, addon: addonFile, files: this.files }
  }

  /** A thread has loaded files: for those that begin from now on. */
  learn(loaded: LoadedFiles): void {
    for (const [path, file] of loaded) {
      if (file.makers > (this.files.get(path)?.makers ?? 0)) this.files.set(path, file)
    }
  }

  /** Waits until no thread is loading its module, `MAX_LOAD_MS` at most: only then may one be ended. */
  async settled(): Promise<void> {
    const until = performance.now() + MAX_LOAD_MS
    while (Atomics.load(this.loads, 0) !== Atomics.load(this.loads, 1) && performance.now() < until) {
      await new Promise((resolve) => setTimeout(resolve, 2))
    }
  }
}
