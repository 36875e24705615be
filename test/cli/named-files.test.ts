/** Files that options of commands name: what is none of their kind is named, with what to do, and no pipe is waited for. */
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, symlinkSync } from 'node:fs'
import { afterAll, describe, expect, it } from 'vitest'
import { makeCertificate } from '../../src/link/certificate.ts'
import { penstock, scratch } from './cli.ts'

const directory = scratch()
afterAll(() => directory.dispose())

const pipe = `${directory.path}/pipe`
spawnSync('mkfifo', [pipe])

/** What a command says that never reaches a node. */
async function said(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await penstock(['status', ...args], { env: { PENSTOCK_URL: 'http://127.0.0.1:1' } })
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  return stderr.replaceAll(directory.path, 'D')
}

describe('--token-file', () => {
  it('is a file that only its owner may use: it is to be kept', async () => {
    const file = directory.file('made.token', 'penstock_token\n')
    chmodSync(file, 0o644)
    expect(await said('--token-file', file)).toBe(
      'penstock: the token cannot be taken: others than its owner may use D/made.token (mode 0644), so the token in it may be known: ' +
        'chmod 600 D/made.token, and if somebody may have read it, have another made and this one revoked\n',
    )
    chmodSync(file, 0o600)
    expect(await said('--token-file', file)).toContain('no penstock node answers')
    symlinkSync(file, `${file}.link`)
    expect(await said('--token-file', `${file}.link`)).toContain('symbolic link: give the file that it leads to')
  })

  it('is a regular file of few bytes', async () => {
    for (const other of [directory.path, '/dev/zero', pipe]) {
      const refusal = 'is no ordinary file: give the file that holds the token\n'
      expect(await said('--token-file', other)).toContain(refusal)
    }
    const long = directory.file('long.token', 'x'.repeat(5000))
    chmodSync(long, 0o600)
    expect(await said('--token-file', long)).toContain('D/long.token has more than 4096 bytes: a token has fewer')
  })
})

describe('--ca', () => {
  it('is a regular file', async () => {
    for (const [file, why] of [
      [directory.path, 'D: it is no regular file'],
      [pipe, 'D/pipe: it is no regular file'],
      ['/nowhere', '/nowhere: there is no such file'],
    ] as const) {
      expect(await said('--ca', file)).toBe(`penstock: cannot read the certificates to trust, ${why}\n`)
    }
  })

  it('holds a certificate', async () => {
    const { certificate, key } = makeCertificate(['127.0.0.1'], Date.now())
    const damaged = certificate.replace(/\n[^-]+\n-/, '\nAAAA\n-')
    for (const content of ['', 'what?', key, damaged]) {
      const refusal = 'penstock: D/ca.pem holds no certificate in PEM form: '
      expect(await said('--ca', directory.file('ca.pem', content))).toContain(refusal)
    }
    const bundle = directory.file('ca.pem', `# ours\n${key}${certificate}`)
    expect(await said('--ca', bundle)).toContain('no penstock node answers')
  })
})

it('the token of a data directory is made again by its node', async () => {
  const data = `${directory.path}/data`
  mkdirSync(data)
  chmodSync(directory.file('data/local.token', ''), 0o644)
  expect(await said('--data-dir', data)).toContain('remove the file and start its node again, which makes another')
})
