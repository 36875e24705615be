/**
 * What Piscina loads in each thread: the module that `workerData` names, whose default export does the tasks. A thread that is ended in
 * the midst of `require` of an ECMAScript module takes the process with it (Module::IsGraphAsync, Node.js 20), so it says when it begins
 * and when it is done: `loads[0]` and `loads[1]` count both. `import` would open a hundred files at once.
 */
const { existsSync, readFileSync } = require('node:fs') as typeof import('node:fs')
const { dirname, resolve } = require('node:path') as typeof import('node:path')
const { Script } = require('node:vm') as typeof import('node:vm')
const { parentPort, workerData } = require('node:worker_threads') as typeof import('node:worker_threads')
const { thread, loads, files } = workerData as import('./thread-loading.ts').ThreadData

type LoadedFile = import('./thread-loading.ts').LoadedFile

/**
 * How many threads, one after the other, say which functions of a file they have run: the first has run some of them, those that its
 * components need, and saying it takes a millisecond.
 */
const MAX_MAKERS = 3

/** A file that this thread has compiled functions of which those before it had not run. */
interface Making {
  readonly script: import('node:vm').Script
  readonly text: SharedArrayBuffer
  readonly makers: number
}

/**
 * Loads the files of a bundle by their path, those that they require by `./` as well; anything else Node.js loads. Each is the function that
 * Node.js wraps CommonJS modules in, in ASCII (packaging/bundles.js). Code that another thread has compiled V8 need not compile again: Node.js
 * 20 has no such cache, that of 22 is on disk.
 */
class BundleFiles {
  private readonly known: ReadonlyMap<string, LoadedFile>
  private readonly modules = new Map<string, { exports: unknown }>()
  private readonly makings = new Map<string, Making>()

  /** `known`: what other threads have loaded. */
  constructor(known: ReadonlyMap<string, LoadedFile>) {
    this.known = known
    nameSources(this.modules)
  }

  /** The exports of the file, which runs once. Throws what it throws, and where it cannot be read. */
  load(path: string): unknown {
    const loaded = this.modules.get(path)
    if (loaded !== undefined) return loaded.exports
    const script = this.compile(path)
    const module = { exports: {} as unknown }
    this.modules.set(path, module)
    const required = (name: string): unknown =>
      name.startsWith('./') ? this.load(resolve(dirname(path), name)) : require(name)
    try {
      script.runInThisContext()(module.exports, required, module, path, dirname(path))
    } catch (error) {
      this.modules.delete(path)
      throw error
    }
    return module.exports
  }

  private compile(path: string): import('node:vm').Script {
    const { text = shared(readFileSync(path)), code, makers = 0 } = this.known.get(path) ?? {}
    const source = Buffer.from(text).toString('latin1')
    const script = new Script(source, { filename: path, ...(code && { cachedData: new Uint8Array(code) }) })
    if (makers < MAX_MAKERS || script.cachedDataRejected) this.makings.set(path, { script, text, makers })
    return script
  }

  /** What this thread has to say of the files that it has loaded, with the functions that have run so far; empty when asked again. */
  take(): Map<string, LoadedFile> {
    const made = new Map<string, LoadedFile>()
    for (const [path, { script, text, makers }] of this.makings) {
      made.set(path, { text, code: shared(script.createCachedData()), makers: makers + 1 })
    }
    this.makings.clear()
    return made
  }
}

function shared(bytes: Uint8Array): SharedArrayBuffer {
  const buffer = new SharedArrayBuffer(bytes.length)
  new Uint8Array(buffer).set(bytes)
  return buffer
}

/** Has stack traces name the sources of `files`; nothing is read before somebody asks for one. */
function nameSources(files: ReadonlyMap<string, unknown>): void {
  const maps = new Map<string, import('node:module').SourceMap | null>()
  const mapOf = (file: string) => {
    const known = maps.get(file)
    if (known !== undefined) return known
    const { SourceMap } = require('node:module') as typeof import('node:module')
    const path = `${file}.map`
    const map = files.has(file) && existsSync(path) ? new SourceMap(JSON.parse(readFileSync(path, 'utf8'))) : null
    maps.set(file, map)
    return map
  }
  Error.prepareStackTrace = (error, sites) => {
    const lines = sites.map((site) => {
      const file = site.getFileName()
      const line = site.getLineNumber()
      const column = site.getColumnNumber()
      if (!file || !line || !column) return `    at ${site}`
      const origin = mapOf(file)?.findEntry(line - 1, column - 1)
      if (!origin || !('originalSource' in origin)) return `    at ${site}`
      const source = resolve(dirname(file), origin.originalSource)
      const place = `${source}:${origin.originalLine + 1}:${origin.originalColumn + 1}`
      return `    at ${String(site).replace(`${file}:${line}:${column}`, () => place)}`
    })
    return [String(error), ...lines].join('\n')
  }
}

type Task = (task: unknown, warm?: () => void) => unknown

Atomics.add(loads, 0, 1)
try {
  if (thread.endsWith('.cjs')) {
    const bundle = new BundleFiles(files)
    const run = (bundle.load(thread) as { default: Task }).default
    module.exports = (task: unknown) =>
      run(task, () => {
        const made = bundle.take()
        if (made.size > 0) parentPort?.postMessage(made)
      })
  } else module.exports = require(thread).default
} finally {
  Atomics.add(loads, 1, 1)
}
