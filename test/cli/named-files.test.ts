/** Files that options of commands name: what is none of their kind is named, with what to do, and no pipe is waited for. */
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, readFileSync, symlinkSync, truncateSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { makeCertificate } from '../../src/link/certificate.ts'
import { packageRoot } from '../../src/package-root.ts'
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
  const saidOf = (file: string) => said('--ca', file, '--url', 'https://127.0.0.1:1')

  it('is a regular file', async () => {
    for (const [file, why] of [
      [directory.path, 'D: it is no regular file'],
      [pipe, 'D/pipe: it is no regular file'],
      ['/nowhere', '/nowhere: there is no such file'],
    ] as const) {
      expect(await saidOf(file)).toBe(`penstock: cannot read the certificates to trust, ${why}\n`)
    }
  })

  it('holds a certificate', async () => {
    const { certificate, key } = makeCertificate(['127.0.0.1'], Date.now())
    const damaged = certificate.replace(/\n[^-]+\n-/, '\nAAAA\n-')
    for (const content of ['', 'what?', key, damaged]) {
      const refusal = 'penstock: D/ca.pem holds no certificate in PEM form: '
      expect(await saidOf(directory.file('ca.pem', content))).toContain(refusal)
    }
    const bundle = directory.file('ca.pem', `# ours\n${key}${certificate}`)
    expect(await saidOf(bundle)).toContain('no penstock node answers')
  })
})

describe('a text', () => {
  const MUCH = 'name the file that is meant\n'

  it.each([
    ['64MiB', ['validate']],
    ['64MiB', ['run']],
    ['64MiB', ['simulate', '--duration', '1s']],
    ['64MiB', ['pipelines', 'apply']],
    ['64MiB', ['impair', '--listen', '127.0.0.1:0', '--forward', '127.0.0.1:9', '--profile']],
    ['1MiB', ['config', 'check', '-c']],
    ['1MiB', ['up', '-c']],
    ['500MiB', ['hub', 'import', '--data-dir', `${directory.path}/hub`]],
  ])('has %s at most for %j', async (limit, command) => {
    const { code, stderr } = await penstock([...command, '/dev/zero'])
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: `penstock: /dev/zero has more than ${limit}, the most that is read: ${MUCH}`,
    })
  })

  it('of a large file, of standard input and of a pipe is read until there', async () => {
    const file = directory.file('sparse.json', '')
    truncateSync(file, 3 * 2 ** 30)
    expect((await penstock(['validate', file])).stderr).toBe(
      `penstock: ${file} has more than 64MiB, the most that is read: ${MUCH}`,
    )
    const script = `yes | ${process.execPath} bin/penstock.js validate -; ${process.execPath} bin/penstock.js validate <(yes)`
    const { stderr } = spawnSync('bash', ['-c', script], { encoding: 'utf8', cwd: packageRoot() })
    expect(stderr).toMatch(
      /^penstock: standard input has more than 64MiB.*\npenstock: \/dev\/fd\/\d+ has more than 64MiB/,
    )
  })

  it('may begin with a byte order mark, and has a file with a name', async () => {
    const text = `\ufeff${readFileSync(join(packageRoot(), 'examples/gate.json'), 'utf8')}`
    expect(await penstock(['validate', directory.file('marked.json', text)])).toMatchObject({ code: 0, stderr: '' })
    for (const command of [
      ['validate', ''],
      ['pipelines', 'apply', ''],
    ]) {
      expect(await penstock(command)).toMatchObject({
        code: 1,
        stderr: 'penstock: the name of the file to read is empty\n',
      })
    }
  })

  it('comes through a pipe or standard input', async () => {
    const validate = '"$1" bin/penstock.js validate'
    const script = `${validate} <(cat "$0") && ${validate} /dev/stdin < "$0" && cat "$0" | ${validate} -`
    const args = ['-c', script, 'examples/gate.json', process.execPath]
    const { status, stdout } = spawnSync('bash', args, { encoding: 'utf8', cwd: packageRoot() })
    expect({ status, lines: stdout.match(/valid/g)?.length }).toEqual({ status: 0, lines: 3 })
  })
})

it('a key of a hub is in a regular file', async () => {
  for (const [file, what] of [
    ['/dev/zero', 'is a device or a pipe, not a file'],
    [pipe, 'is a device or a pipe, not a file'],
    [directory.path, 'is a directory, not a file'],
  ] as const) {
    const { code, stderr } = await penstock(['hub', 'key', 'show', file])
    expect({ code, stderr }).toEqual({ code: 1, stderr: `penstock: ${file} ${what}\n` })
  }
})

it('the token of a data directory is made again by its node', async () => {
  const data = `${directory.path}/data`
  mkdirSync(data)
  chmodSync(directory.file('data/local.token', ''), 0o644)
  expect(await said('--data-dir', data)).toContain('remove the file and start its node again, which makes another')
})
