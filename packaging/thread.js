/**
 * `node packaging/thread.js`: what the threads of runs load, into dist/thread: run.cjs and a file for each component and what several have
 * in common, so that a thread reads a few files in place of some hundred. A part of `npm run build`.
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { Module } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'

const root = fileURLToPath(new URL('..', import.meta.url))
const out = join(root, 'dist/thread')

const TYPEBOX = '@sinclair/typebox'

/** Of TypeBox only what builds schemas is called in a thread; as a namespace whose members are known, the rest of it is left out. */
const onlyUsedTypes = {
  name: 'only-used-types',
  resolveId: (id) => (id === TYPEBOX ? `\0${TYPEBOX}` : null),
  load: (id) =>
    id === `\0${TYPEBOX}`
      ? `export * as Type from ${JSON.stringify(join(root, `node_modules/${TYPEBOX}/build/esm/type/type/type.mjs`))}`
      : null,
}

/**
 * A file as V8 is to have it in memory, without a copy: the function that Node.js wraps modules in, on the lines that the map knows, and in
 * ASCII, since a text with any other character takes twice its length.
 */
const asFunction = (code) =>
  Module.wrap(code).replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)

const bundle = await rolldown({
  input: { run: join(root, 'src/dataplane/thread.ts') },
  cwd: root,
  platform: 'node',
  plugins: [onlyUsedTypes],
  treeshake: { moduleSideEffects: (id) => !id.includes(TYPEBOX) },
})
const { output } = await bundle.generate({
  format: 'cjs',
  exports: 'named',
  comments: false,
  sourcemap: true,
  sourcemapExcludeSources: true,
  entryFileNames: 'run.cjs',
  chunkFileNames: '[name]-[hash].cjs',
  // What every run needs is one file, to be read and taken over in one piece.
  codeSplitting: { groups: [{ name: 'engine', test: /src\/(dataplane\/(engine|native)|text)\// }] },
})
await bundle.close()
rmSync(out, { recursive: true, force: true })
mkdirSync(out)
for (const file of output) {
  writeFileSync(join(out, file.fileName), file.type === 'chunk' ? asFunction(file.code) : file.source)
}
