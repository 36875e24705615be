/** Gives a run of the suite a directory for temporary files of its own, and removes it with all that tests left there. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Called before the first test file; what it returns, after the last. Workers and their children inherit TMPDIR. */
export default function setup(): () => void {
  const outer = process.env.TMPDIR
  const directory = mkdtempSync(join(tmpdir(), 'penstock-suite-'))
  process.env.TMPDIR = directory
  return () => {
    if (outer === undefined) delete process.env.TMPDIR
    else process.env.TMPDIR = outer
    rmSync(directory, { recursive: true, force: true, maxRetries: 3 })
  }
}
