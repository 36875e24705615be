#!/usr/bin/env node
/** Launches the built command line. */
import { existsSync } from 'node:fs'

const built = new URL('../dist/program/main.js', import.meta.url)
if (existsSync(built)) {
  const { main } = await import(built.href)
  process.exitCode = await main(process.argv.slice(2))
} else {
  process.stderr.write('penstock: not built yet: run "npm ci" (or "npm run build") in the package directory\n')
  process.exitCode = 1
}
