/** The hub's own certificate after a failure of the machine: what the system is asked to bring to disk, and in which order. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const noStrace = spawnSync('strace', ['-qq', '-o', '/dev/null', 'true']).status !== 0
if (noStrace) console.warn('THE TEST OF THE CERTIFICATE ON DISK IS SKIPPED: strace cannot trace here')

const SCRIPT = `
  import { autoCertificate } from '${new URL('../../dist/src/link/certificate.js', import.meta.url)}'
  autoCertificate({ directory: process.argv[1], hostnames: [] })`

test.skipIf(noStrace)('both files have their names on disk once it is made: a power failure takes neither away', () => {
  const scratch = mkdtempSync(join(tmpdir(), 'penstock-certificate-'))
  try {
    const directory = join(scratch, 'data')
    const trace = join(scratch, 'trace')
    // `-y`: the files behind the descriptors.
    const strace = ['-f', '-qq', '-y', '-o', trace, '-e', 'trace=fsync,rename,renameat,renameat2']
    const node = [process.execPath, '--input-type=module', '-e', SCRIPT, directory]
    const { status, stderr } = spawnSync('strace', [...strace, ...node], { encoding: 'utf8' })
    expect([status, stderr]).toEqual([0, ''])
    const names = {
      [directory]: 'directory',
      [join(directory, 'tls.key')]: 'key',
      [join(directory, 'tls.crt')]: 'certificate',
    }
    const done = readFileSync(trace, 'utf8')
      .split('\n')
      .flatMap((line) => {
        const synced = /fsync\(\d+<([^>]*)>/.exec(line)?.[1]
        const renamedTo = /rename.*"([^"]*)"/.exec(line)?.[1]
        const what = names[synced ?? renamedTo ?? '']
        return what === undefined ? [] : [synced === undefined ? `${what} named` : `${what} on disk`]
      })
    expect(done).toEqual(['key named', 'directory on disk', 'certificate named', 'directory on disk'])
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
})
