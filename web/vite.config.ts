/** The dashboard's build: files with hashed names, each with its compressed forms beside it; and a server for development that passes the API on. */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import react from '@vitejs/plugin-react'
import { defineConfig, type Plugin } from 'vite'

/** The node that `npm run dev` shows. */
const node = process.env.PENSTOCK_URL ?? 'http://127.0.0.1:8769'

/** Writes what a node sends to browsers that take compressed files, which is all of them. */
function compressed(): Plugin {
  let outDir = ''
  return {
    name: 'compressed',
    apply: 'build',
    configResolved: (config) => {
      outDir = config.build.outDir
    },
    closeBundle: () => {
      for (const name of readdirSync(outDir, { recursive: true, encoding: 'utf8' })) {
        if (!/\.(html|js|css|svg)$/.test(name)) continue
        const path = join(outDir, name)
        const content = readFileSync(path)
        writeFileSync(`${path}.br`, brotliCompressSync(content))
        writeFileSync(`${path}.gz`, gzipSync(content, { level: 9 }))
      }
    },
  }
}

export default defineConfig({
  root: import.meta.dirname,
  plugins: [react(), compressed()],
  // Styles are one file: Vite asks for those of a view once only, so that a view whose styles did not come would stay without.
  build: { target: 'es2023', assetsInlineLimit: 0, cssCodeSplit: false, modulePreload: { polyfill: false } },
  server: {
    // The node takes its own page for one of another origin otherwise.
    proxy: { '/v1': { target: node, ws: true, changeOrigin: true, headers: { origin: node } } },
  },
})
