/** The backends of authenticated encryption that this machine has, and libraries that stand where libIPSec_MB is looked for first. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { AeadBackendName } from '../../src/dataplane/native/cipher-calls.ts'
import { native } from '../../src/dataplane/native/native.ts'

/** Fastest first. */
export const usableAeadBackends: readonly AeadBackendName[] = native
  .aeadBackends()
  .flatMap(({ name, obstacle }) => (obstacle === undefined ? [name] : []))

/** Why tests of libIPSec_MB cannot run here; undefined where they can. */
export const missingIpsecMb: string | undefined = native.aeadBackends().find(({ name }) => name === 'ipsec-mb')
  ?.obstacle?.text

const FILES = ['libIPSec_MB.so.2', 'libIPSec_MB.so.1'] as const

/** An environment in which the library is what `source` (C) makes, in `file`; in all others, and without it, files that are no library. */
export function replacedIpsecMb(source?: string, file: (typeof FILES)[number] = FILES[1]): Record<string, string> {
  const directory = mkdtempSync(join(tmpdir(), 'penstock-ipsec-mb-'))
  for (const name of FILES) writeFileSync(join(directory, name), '')
  if (source !== undefined) {
    const library = join(directory, file)
    const options = ['-shared', '-fPIC', '-x', 'c', '-o', library, '-']
    const { error, status, stderr } = spawnSync('gcc', options, { input: source, encoding: 'utf8' })
    if (error) throw error
    if (status !== 0) throw new Error(`the library could not be built:\n${stderr}`)
  }
  return { LD_LIBRARY_PATH: directory }
}
