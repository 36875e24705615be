/** The completion for zsh works sourced, and as a file named _penstock in a directory of $fpath, as packages install it. */
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { penstock, scratch } from '../cli/cli.ts'
import { has } from './commands.ts'

const directory = scratch()
afterAll(() => directory.dispose())

it.skipIf(!has('zsh'))('offers the commands at the first tab', async () => {
  writeFileSync(join(directory.path, '_penstock'), (await penstock(['completion', 'zsh'])).stdout)
  // zsh's own compadd wants its line editor: what it is given is printed instead.
  const complete = 'compadd() { print -r -- "$@" }; words=(penstock pipe); CURRENT=2; _penstock'
  const prepare = `autoload -Uz compinit; compinit -u -D`
  const typed = [
    `fpath=(${directory.path} $fpath); ${prepare}; ${complete}`,
    `${prepare}; source ${directory.path}/_penstock; ${complete}`,
  ]
  for (const script of typed) {
    const { stdout, stderr } = spawnSync('zsh', ['-fc', script], { encoding: 'utf8', cwd: directory.path })
    expect({ stdout: stdout.split(' ').slice(0, 3), stderr }).toEqual({ stdout: ['--', 'up', 'run'], stderr: '' })
  }
})
