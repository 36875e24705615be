/** What the scripts that make packages share: commands, places, and the date that the packages bear. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

/** The repository. */
export const root = fileURLToPath(new URL('..', import.meta.url))

/** The package.json of the repository. */
export const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))

/** Ends a script that was called wrongly. */
export function endWithUsage(problem, usage) {
  console.error(`${problem}\nusage: ${usage}`)
  process.exit(2)
}

/** The options that a script was called with; ends it where it takes no such. */
export function optionsGiven(options, usage) {
  try {
    return parseArgs({ options }).values
  } catch (error) {
    return endWithUsage(error.message, usage)
  }
}

/** Runs a command in `cwd`, its errors shown; gives what it prints, and throws unless it succeeds. */
export function run(command, args, cwd = root) {
  return execFileSync(command, args, {
    cwd,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    maxBuffer: 1 << 28,
  })
}

/** Calls `work` with a directory that is gone afterwards. */
export async function inScratch(work) {
  const directory = mkdtempSync(join(tmpdir(), 'penstock-package-'))
  try {
    return await work(directory)
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

/** The date of the packages: SOURCE_DATE_EPOCH (reproducible-builds.org), else that of the commit, else now. */
export function packageDate() {
  const given = process.env.SOURCE_DATE_EPOCH
  if (given !== undefined) return new Date(Number(given) * 1000)
  try {
    return new Date(Number(run('git', ['log', '-1', '--format=%ct'])) * 1000)
  } catch {
    return new Date()
  }
}

/** A size for people. */
export const megabytes = (bytes) => `${(bytes / 1e6).toFixed(2)} MB`
