/**
 * `node packaging/bundles.js`: what Node.js loads, in a few files in place of some hundred, each of which would be looked for, read and compiled
 * by itself. A part of `npm run build`.
 *
 * - dist/program: the command line and with it the node, main.js and a file for what each command has of its own; and simulate-thread.js.
 * - dist/thread: the threads of runs, run.cjs and a file for each component and what several have in common.
 * - dist/piscina: Piscina, and worker.js beside it, where it looks for what each thread is to begin with: load-thread.ts, which loads the rest.
 */
import { copyFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire, isBuiltin, Module } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'
import { commonJs, isCommonJs } from './commonjs.js'

const root = fileURLToPath(new URL('..', import.meta.url))

const TYPEBOX = '@sinclair/typebox'

/** Of TypeBox only what builds schemas is called; as a namespace whose members are known, the rest of it is left out. */
const onlyUsedTypes = {
  name: 'only-used-types',
  resolveId: (id) => (id === TYPEBOX ? `\0${TYPEBOX}` : null),
  load: (id) =>
    id === `\0${TYPEBOX}`
      ? `export * as Type from ${JSON.stringify(join(root, `node_modules/${TYPEBOX}/build/esm/type/type/type.mjs`))}`
      : null,
}

/** Bundles the modules `input`, without those of which `external` is true, into dist/<name>. */
async function bundle(name, input, output, how) {
  const out = join(root, 'dist', name)
  rmSync(out, { recursive: true, force: true })
  mkdirSync(out)
  await bundleInto(out, input, output, how)
}

/** `file` gives what stands in a file for its code. */
async function bundleInto(out, input, output, { external = isBuiltin, plugins = [], file = (code) => code } = {}) {
  const built = await rolldown({
    input,
    external,
    cwd: root,
    platform: 'node',
    plugins: [onlyUsedTypes, ...plugins],
    treeshake: { moduleSideEffects: (id) => !id.includes(TYPEBOX) },
  })
  const { output: files } = await built.generate({
    comments: false,
    sourcemap: true,
    sourcemapExcludeSources: true,
    ...output,
  })
  await built.close()
  for (const { type, fileName, code, source } of files) {
    writeFileSync(join(out, fileName), type === 'chunk' ? file(code) : source)
  }
}

/**
 * What every thread loads has these of Node.js's modules loaded where something of them is used, which no run does: in a new thread that takes
 * 2 ms. The declarations stay as empty lines, so that the others have their numbers.
 */
function loadedWhenUsed(code) {
  const declaration = /^\s*(?:const|let) (\w+) = (require\("node:(?:os|perf_hooks|url)"\));$/gm
  const found = [...code.matchAll(declaration)]
  const without = code.replace(declaration, '')
  return found.reduce(
    (text, [, name, load]) => text.replaceAll(new RegExp(`\\b${name}\\.`, 'g'), `(${load}).`),
    without,
  )
}

/**
 * A file as V8 is to have it in memory, without a copy: the function that Node.js wraps modules in, on the lines that the map knows, and in
 * ASCII, since a text with any other character takes twice its length.
 */
const asFunction = (code) =>
  Module.wrap(loadedWhenUsed(code)).replace(
    /[\u0080-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )

await bundle(
  'thread',
  { run: join(root, 'src/dataplane/thread.ts') },
  {
    format: 'cjs',
    exports: 'named',
    entryFileNames: 'run.cjs',
    chunkFileNames: '[name]-[hash].cjs',
    // What every run needs is one file, to be read and taken over in one piece; and so is what most sockets have in common.
    codeSplitting: {
      groups: [
        { name: 'engine', test: /src\/(dataplane\/(engine|native)|text)\/|typebox/ },
        { name: 'endpoint', test: /endpoints\/(datagram-)?endpoint\.ts/ },
      ],
    },
  },
  { file: asFunction },
)

/** Packages are what npm has installed; those of CommonJS are required. TypeBox has 200 files, and the client is a workspace of this repository: what that imports is a dependency of penstock too. */
const imported = (id) =>
  isBuiltin(id) || (/^[^./\0]/.test(id) && !isCommonJs(id) && !/^@(?:sinclair|penstock)\//.test(id))

const { readNamespace } = await import('../dist/src/contract/schema-reader.js')
const { stored } = await import('../dist/src/contract/stored-schema.js')

/** The schemas as they are read from the proto files now. */
const parsedSchemas = {
  name: 'parsed-schemas',
  load(id) {
    if (id !== join(root, 'src/contract/parsed-schemas.ts')) return null
    const namespaces = ['servicegrpc', 'penstock.link', 'penstock.cluster']
    const parsed = Object.fromEntries(namespaces.map((namespace) => [namespace, stored(readNamespace(namespace))]))
    // As JSON in a string, which V8 reads faster than it compiles the same as code.
    return `export const parsed = JSON.parse(${JSON.stringify(JSON.stringify(parsed))})`
  },
}

await bundle(
  'program',
  { main: join(root, 'src/cli/main.ts'), 'simulate-thread': join(root, 'src/cli/simulate-thread.ts') },
  {
    format: 'esm',
    entryFileNames: '[name].js',
    chunkFileNames: '[name]-[hash].js',
    codeSplitting: {
      groups: [
        { name: 'client', test: /clients\/typescript\// },
        // Small modules that most commands load: 30 fewer files to look for.
        {
          name: 'common',
          test: /\/src\/(?!dataplane\/)/,
          minShareCount: 14,
          maxModuleSize: 30_000,
          includeDependenciesRecursively: false,
        },
      ],
    },
  },
  { external: imported, plugins: [commonJs, parsedSchemas] },
)

const piscina = createRequire(import.meta.url).resolve('piscina')
const pool = join(root, 'dist/piscina')
const commonJsOutput = (name) => ({ format: 'cjs', entryFileNames: name, sourcemap: false })
const external = (id) => isBuiltin(id) || id === '@napi-rs/nice'

/** What `code` is once each of `changes`, what stands there and what is to, is made in it. */
function changed(id, code, changes) {
  for (const [from, to] of changes) {
    if (code.match(from) === null) throw new Error(`${id} is not as it was: see what it has in place of ${from}`)
    code = code.replace(from, to)
  }
  return code
}

/**
 * Piscina describes each thread anew, by an object of getters, to whoever chooses one, twice for each task: with 200 threads that is half a millisecond of a
 * start. Here each thread keeps the one it was described by first; the getters look at the thread as it is.
 */
const describedOnce = {
  name: 'described-once',
  transform(code, id) {
    if (!id.endsWith('/worker_pool/index.js')) return null
    const described = /get interface\(\) \{\s*const worker = this;\s*return \{/
    return changed(id, code, [[described, 'get interface() { const worker = this; return this.described ??= {']])
  },
}

/**
 * Where the system has no thread for a task (EAGAIN), Piscina throws, and the task stays in its queue, where a thread that becomes free meets it
 * later; and a thread that becomes free and does not suit the tasks that wait starts others, as many as there may be, in an event of which nobody
 * catches what it throws. Here the task is refused, and threads are started for none but the task that comes, unless one is on its way that was started for a
 * task which did not wait for it: engine/threads.ts does the rest.
 */
const threadsWhenAsked = {
  name: 'threads-when-asked',
  transform(code, id) {
    if (!id.endsWith('/piscina/dist/index.js')) return null
    const start = /if \(this\.workers\.size < this\.options\.maxThreads\) \{\s*(?:\/\/.*\s*)*this\._addNewWorker\(\);/
      .source
    return changed(id, code, [
      // Of those that load some may never be ready, and a task that has one can no longer leave the line.
      [/workers = \[\.\.\.this\.workers\]\.map\(/, 'workers = [...this.workers].filter((each) => each.isReady()).map('],
      [
        /while \(\(this\.taskQueue\.size > 0 \|\| this\.skipQueue\.length > 0\)\) \{/,
        'for (let left = this.taskQueue.size + this.skipQueue.length; left > 0 && this.taskQueue.size + this.skipQueue.length > 0; left--) {',
      ],
      [new RegExp(`${start}\\s*continue;\\s*\\}\\s*else \\{\\s*(?://.*\\s*)*break;\\s*\\}`), ''],
      [
        new RegExp(`if \\(!distributed\\) \\{\\s*(?://.*\\s*)*${start}`),
        `if (!distributed) {
          const onTheirWay = [...this.workers.pendingItems].filter((worker) => worker.currentUsage() === 0).length
          if (this.workers.size < this.options.maxThreads && onTheirWay < this.taskQueue.size + this.skipQueue.length) {
            try { this._addNewWorker() } catch (error) { this._removeTaskFromQueue(taskInfo); taskInfo.done(error, null) }`,
      ],
    ])
  },
}

/** A thread that the system does not have leaves nothing behind: engine/begin-thread.ts. */
const nothingLeft = {
  name: 'nothing-left',
  transform(code, id) {
    if (!id.endsWith('/worker_pool/index.js')) return null
    const begin = JSON.stringify(join(root, 'src/dataplane/engine/begin-thread.ts'))
    return changed(id, code, [
      [
        /this\.worker = new node_worker_threads_1\.Worker\(filename, workerOpts\);/,
        `try { this.worker = require(${begin}).beginThread(filename, workerOpts) } catch (error) { port.close(); throw error }`,
      ],
    ])
  },
}
rmSync(pool, { recursive: true, force: true })
mkdirSync(pool)
await bundleInto(pool, join(dirname(piscina), 'main.js'), commonJsOutput('main.js'), {
  external,
  plugins: [describedOnce, threadsWhenAsked, nothingLeft],
  file: loadedWhenUsed,
})
// What Piscina has each thread begin with; its own part of a thread is loaded by that, as the rest is.
await bundleInto(pool, join(root, 'src/dataplane/engine/load-thread.ts'), {
  ...commonJsOutput('worker.js'),
  minify: true,
})
await bundleInto(pool, join(dirname(piscina), 'worker.js'), commonJsOutput('tasks.js'), { external, file: asFunction })
writeFileSync(join(pool, 'package.json'), '{ "type": "commonjs" }\n')
copyFileSync(join(dirname(piscina), '../LICENSE'), join(pool, 'LICENSE'))
