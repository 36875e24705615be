#!/usr/bin/env node
/** Launches the built command line. */
import { existsSync } from 'node:fs'

// At this signal Node.js would open its debugger on a port where every user of the machine can run code as this process. `node --inspect` still does.
process.on('SIGUSR1', () => {})

const built = new URL('../dist/program/main.js', import.meta.url)
if (existsSync(built)) {
  try {
    const { main } = await import(built.href)
    process.exitCode = await main(process.argv.slice(2))
  } catch (error) {
    if (error.code !== 'EMFILE' && error.code !== 'ENFILE') throw error
    // What words errors could not be loaded either.
    process.stderr.write(
      `penstock: ${error.message} (raise the limit of open files: ulimit -n, or LimitNOFILE= of a systemd unit)\n`,
    )
    process.exitCode = 1
  }
} else {
  process.stderr.write('penstock: not built yet: run "npm ci" (or "npm run build") in the package directory\n')
  process.exitCode = 1
}
