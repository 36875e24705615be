/** What penstock's own AES-GCM and ChaCha20-Poly1305 for AVX-512 read and write, and what they leave in registers and on the stack. */
import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { native } from '../../src/dataplane/native/native.ts'
import { packageRoot } from '../../src/package-root.ts'
import { scratch } from '../cli/cli.ts'

const directory = scratch()
afterAll(() => directory.dispose())

const cannot = native.aeadBackends().find(({ name }) => name === 'avx512')?.obstacle?.code === 'cpu'

/** Runs avx512-memory.cc, compiled as the addon is, with `flags`. */
function run(name: string, flags: string[], args: string[]) {
  const { targets } = JSON.parse(readFileSync(join(packageRoot(), 'binding.gyp'), 'utf8'))
  const own = join(packageRoot(), 'src/dataplane/native')
  const sources = ['aes_gcm.cc', 'chacha_poly1305.cc'].map((file) => join(own, file))
  sources.push(join(packageRoot(), 'test/dataplane/avx512-memory.cc'))
  const program = join(directory.path, name)
  const all = [...targets[0].cflags_cc, '-fPIC', '-D_GNU_SOURCE', `-I${own}`, ...flags]
  execFileSync('g++', [...all, '-o', program, ...sources])
  const { status, signal, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8' })
  return { status, signal, stdout, stderr }
}
const FINE = { status: 0, signal: null, stdout: '', stderr: '' }

test.skipIf(cannot)(
  'nothing beside what is given is touched, and no key stays in vector registers or on the stack',
  () => {
    expect(run('plain', [], [])).toEqual(FINE)
  },
)

test.skipIf(cannot)('nothing they do is undefined', () => {
  expect(run('sanitized', ['-O1', '-fsanitize=undefined', '-fno-sanitize-recover=all'], ['edges'])).toEqual(FINE)
})
