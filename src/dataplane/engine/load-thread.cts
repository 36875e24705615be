/**
 * What Piscina loads in each thread: the module that `workerData` names, whose default export does the tasks. A thread that is ended in
 * the midst of `require` of an ECMAScript module takes the process with it (Module::IsGraphAsync, Node.js 20), so it says when it begins
 * and when it is done: `loads[0]` and `loads[1]` count both. `import` would open a hundred files at once.
 */
const { existsSync, readFileSync } = require('node:fs') as typeof import('node:fs')
const { dirname, resolve } = require('node:path') as typeof import('node:path')
const { Script } = require('node:vm') as typeof import('node:vm')
const { parentPort, workerData } = require('node:worker_threads') as typeof import('node:worker_threads')
const { thread, loads, compiled } = workerData as import('./thread-loading.ts').ThreadData

type CompiledCode = import('./thread-loading.ts').CompiledCode

/**
 * Loads the files of a bundle by their path, those that they require by `./` as well; anything else Node.js loads. Each is the function that
 * Node.js wraps CommonJS modules in, in ASCII (packaging/thread.js). Code that another thread has compiled V8 need not compile again: Node.js 20
 * has no such cache, that of 22 is on disk.
 */
class CompiledFiles {
  private readonly compiled: CompiledCode
  private readonly modules = new Map<string, { exports: unknown }>()
  /** Compiled by this thread. */
  private readonly fresh = new Map<string, import('node:vm').Script>()

  /** `compiled`: what other threads have made of the same files. */
  constructor(compiled: CompiledCode) {
    this.compiled = compiled
    nameSources(this.modules)
  }

  /** The exports of the file, which runs once. Throws what it throws, and where it cannot be read. */
  load(file: string): unknown {
    const known = this.modules.get(file)
    if (known !== undefined) return known.exports
    const cached = this.compiled.get(file)
    const code = readFileSync(file, 'latin1')
    const script = new Script(code, { filename: file, ...(cached && { cachedData: new Uint8Array(cached) }) })
    if (cached === undefined || script.cachedDataRejected) this.fresh.set(file, script)
    const module = { exports: {} as unknown }
    this.modules.set(file, module)
    const required = (name: string): unknown =>
      name.startsWith('./') ? this.load(resolve(dirname(file), name)) : require(name)
    try {
      script.runInThisContext()(module.exports, required, module, file, dirname(file))
    } catch (error) {
      this.modules.delete(file)
      throw error
    }
    return module.exports
  }

  /** The code of the files that this thread had to compile, with the functions that have run so far; empty when asked again. */
  takeCompiled(): Map<string, SharedArrayBuffer> {
    const made = new Map<string, SharedArrayBuffer>()
    for (const [file, script] of this.fresh) {
      const code = script.createCachedData()
      const shared = new SharedArrayBuffer(code.length)
      new Uint8Array(shared).set(code)
      made.set(file, shared)
    }
    this.fresh.clear()
    return made
  }
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

type Task = (task: unknown, begun?: () => void) => unknown

Atomics.add(loads, 0, 1)
try {
  if (thread.endsWith('.cjs')) {
    const files = new CompiledFiles(compiled)
    const run = (files.load(thread) as { default: Task }).default
    module.exports = (task: unknown) =>
      run(task, () => {
        const made = files.takeCompiled()
        if (made.size > 0) parentPort?.postMessage(made)
      })
  } else module.exports = require(thread).default
} finally {
  Atomics.add(loads, 1, 1)
}
