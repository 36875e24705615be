/**
 * What each thread begins with, bundled in Piscina's place for it (packaging/bundles.js): it loads Piscina's part of a thread and the module that
 * `workerData` names, whose default export does the tasks. A thread that is ended in the midst of `require` of an ECMAScript module takes the
 * process with it (Module::IsGraphAsync, Node.js 20), so it says when it begins and when it is done: `loads[0]` and `loads[1]` count both. `import`
 * would open a hundred files at once. Node.js compiles this file anew in each thread: what can be elsewhere is.
 */
import { existsSync, readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { Script } from 'node:vm'
import { parentPort, workerData } from 'node:worker_threads'
import type { LoadedFile, ThreadData } from './thread-loading.ts'

type Task = (task: unknown, warm?: () => void) => unknown

const { thread, loads, files, tasks } = workerData as ThreadData

/**
 * How many threads, one after the other, say which functions of a file they have run: the first has run some of them, those that its
 * components need, and saying it takes a millisecond.
 */
const MAX_MAKERS = 3

/** A file that this thread has compiled functions of which those before it had not run. */
interface Making {
  readonly script: Script
  readonly text: SharedArrayBuffer
  readonly makers: number
}

const modules = new Map<string, { exports: unknown }>()
const makings = new Map<string, Making>()
const maps = new Map<string, import('node:module').SourceMap | null>()

/**
 * Loads a file of a bundle by its path, and those that it requires by `./` as well; anything else Node.js loads. Each is the function that Node.js
 * wraps CommonJS modules in, in ASCII (packaging/bundles.js), and runs once. Code that another thread has compiled V8 need not compile again: Node.js
 * 20 has no such cache, that of 22 is on disk. Throws what the file throws, and where it cannot be read.
 */
function load(path: string): unknown {
  const loaded = modules.get(path)
  if (loaded !== undefined) return loaded.exports
  const script = compile(path)
  const module = { exports: {} as unknown }
  modules.set(path, module)
  const required = (name: string): unknown => {
    if (name === thread) return { __esModule: true, default: task }
    return name.startsWith('./') ? load(resolve(dirname(path), name)) : require(name)
  }
  try {
    script.runInThisContext()(module.exports, required, module, path, dirname(path))
  } catch (error) {
    modules.delete(path)
    throw error
  }
  return module.exports
}

function compile(path: string): Script {
  const { text = shared(readFileSync(path)), code, makers = 0 } = files.get(path) ?? {}
  const source = Buffer.from(text).toString('latin1')
  const script = new Script(source, { filename: path, ...(code && { cachedData: new Uint8Array(code) }) })
  if (makers < MAX_MAKERS || script.cachedDataRejected) makings.set(path, { script, text, makers })
  return script
}

function shared(bytes: Uint8Array): SharedArrayBuffer {
  const buffer = new SharedArrayBuffer(bytes.length)
  new Uint8Array(buffer).set(bytes)
  return buffer
}

/** Tells the pool of the files that this thread has loaded, with the functions that have run so far; when called again, of none. */
function tellLoaded(): void {
  if (makings.size === 0) return
  const made = new Map<string, LoadedFile>()
  for (const [path, { script, text, makers }] of makings) {
    made.set(path, { text, code: shared(script.createCachedData()), makers: makers + 1 })
  }
  makings.clear()
  parentPort?.postMessage(made)
}

/** What does the tasks, as the module has it. */
function loadTask(): Task {
  Atomics.add(loads, 0, 1)
  try {
    if (!thread.endsWith('.cjs')) return require(thread).default
    // No map is read before somebody asks for a stack trace.
    Error.prepareStackTrace = (error, sites) => [String(error), ...sites.map(lineOf)].join('\n')
    const run = (load(thread) as { default: Task }).default
    return (task) => run(task, tellLoaded)
  } finally {
    Atomics.add(loads, 1, 1)
  }
}

/** The map of a file of a bundle; null where there is none. */
function mapOf(file: string): import('node:module').SourceMap | null {
  const known = maps.get(file)
  if (known !== undefined) return known
  const { SourceMap } = require('node:module') as typeof import('node:module')
  const path = `${file}.map`
  const map = modules.has(file) && existsSync(path) ? new SourceMap(JSON.parse(readFileSync(path, 'utf8'))) : null
  maps.set(file, map)
  return map
}

/** A line of a stack trace, which names the source where there is a map. */
function lineOf(site: NodeJS.CallSite): string {
  const file = site.getFileName()
  const line = site.getLineNumber()
  const column = site.getColumnNumber()
  if (!file || !line || !column) return `    at ${site}`
  const origin = mapOf(file)?.findEntry(line - 1, column - 1)
  if (!origin || !('originalSource' in origin)) return `    at ${site}`
  const source = resolve(dirname(file), origin.originalSource)
  const place = `${source}:${origin.originalLine + 1}:${origin.originalColumn + 1}`
  return `    at ${String(site).replace(`${file}:${line}:${column}`, () => place)}`
}

// First: where it fails, Piscina's part would look for it by `import` and tell of that.
const task = loadTask()
load(tasks)
