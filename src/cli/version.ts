/** `penstock version`: this program, the Node.js under it, and the machine. */
import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { packageRoot } from '../package-root.ts'
import { type Format, withOutput } from './options.ts'
import { print, printJson } from './terminal.ts'

/** The package's version. */
export function packageVersion(): string {
  return JSON.parse(readFileSync(`${packageRoot()}/package.json`, 'utf8')).version
}

export function addVersion(program: Command): void {
  withOutput(program.command('version'))
    .description('print the version')
    .action(({ output }: { output: Format }) => {
      const facts = {
        penstock: packageVersion(),
        node: process.versions.node,
        platform: `${process.platform}-${process.arch}`,
      }
      if (output === 'json') printJson(facts)
      else print(`penstock ${facts.penstock} (Node.js ${facts.node}, ${facts.platform})`)
    })
}
