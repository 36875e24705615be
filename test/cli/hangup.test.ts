/** A session: SIGHUP, and a terminal that goes away, end up and run in order, but for a node that is to look at its files; one that is held does not hold the node. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, test } from 'vitest'
import { freeAddress } from '../../src/cli/free-address.ts'
import { makeCertificate } from '../../src/link/certificate.ts'
import { packageRoot } from '../../src/package-root.ts'
import { until } from '../harness/waiting.ts'
import { lineOf, lossy, penstock, plainEnvironment, scratch, start } from './cli.ts'
import { KEYS, PseudoTerminal } from './pseudo-terminal.ts'

const directory = scratch()
afterAll(() => directory.dispose())
const upFlags = (data: string, http = '127.0.0.1:0') => [
  'up',
  '--data-dir',
  join(directory.path, data),
  '--http',
  http,
  '--grpc',
  'none',
]

test('up goes down at SIGHUP as at SIGTERM', async () => {
  for (const signal of ['SIGHUP', 'SIGTERM'] as const) {
    const child = start(upFlags('data'))
    const said = text(child.stderr!)
    await lineOf(child, /^penstock ready/)
    const gone = once(child, 'exit')
    child.kill(signal)
    expect(await gone).toEqual([0, null])
    expect(await said).toContain('node is down')
  }
})

describe('up goes on at SIGHUP without a terminal', () => {
  /** In a session of its own, which has no terminal, whatever the tests are run in. `before`: of a shell. */
  function startAlone(before: string, args: string[]): ChildProcess {
    const command = [process.execPath, join(packageRoot(), 'bin/penstock.js'), ...args]
    const options = { detached: true, stdio: 'pipe', env: plainEnvironment() } as const
    return spawn('sh', ['-c', `${before} exec "$@"`, 'sh', ...command], options)
  }

  /** Its log has a line with `words`, after `act` and SIGHUP; returns that line. */
  async function hungUp(child: ChildProcess, words: string, act: (http: string) => unknown = () => {}) {
    const line = new Promise<string>((resolve) => {
      createInterface({ input: child.stderr! }).on('line', (each) => each.includes(words) && resolve(each))
    })
    const [, http = ''] = await lineOf(child, /^penstock ready http=(\S+)/)
    act(http)
    child.kill('SIGHUP')
    return { http, line: await line }
  }

  async function ended(child: ChildProcess): Promise<void> {
    const gone = once(child, 'exit')
    child.kill('SIGTERM')
    expect(await gone).toEqual([0, null])
  }

  test('with certificate files, and takes those that were renewed', async () => {
    const [cert, key] = ['tls.crt', 'tls.key'].map((name) => join(directory.path, name)) as [string, string]
    const renew = () => {
      const made = makeCertificate(['localhost'], Date.now())
      writeFileSync(cert, made.certificate)
      writeFileSync(key, made.key)
      return new X509Certificate(made.certificate).fingerprint256
    }
    renew()
    const child = startAlone('', [...upFlags('renewed'), '--http-tls', `{certificate: ${cert}, key: ${key}}`])
    let fingerprint = ''
    const { http, line } = await hungUp(child, 'another TLS certificate is in use', () => {
      fingerprint = renew()
    })
    expect(line).toContain(fingerprint)
    const { stdout } = await penstock(['status', '-o', 'json', '--url', `https://${http}`])
    expect(JSON.parse(stdout)).toMatchObject({ fingerprint })
    await ended(child)
  })

  test('as a unit of systemd, without any too', async () => {
    const child = startAlone('export SYSTEMD_EXEC_PID=$$;', upFlags('unit'))
    await hungUp(child, 'nothing is read anew')
    await ended(child)
  })

  test('and ends at it where systemd has started something else, without any', async () => {
    const child = startAlone('export SYSTEMD_EXEC_PID=1;', upFlags('elsewhere'))
    const gone = once(child, 'exit')
    await hungUp(child, 'node is down')
    expect(await gone).toEqual([0, null])
  })
})

const python = spawnSync('python3', ['-c', 'import pty']).status === 0
if (!python) console.warn('SKIPPED: commands in a terminal that goes away need python3')

describe.skipIf(!python)('in a terminal that goes away', () => {
  const hangUp = (shown: string, args: string[], script = 'hangup.py') => {
    const log = join(directory.path, `${args[0]}.log`)
    const driver = fileURLToPath(new URL(script, import.meta.url))
    const command = [process.execPath, join(packageRoot(), 'bin/penstock.js'), ...args]
    const { stdout, stderr } = spawnSync('python3', [driver, log, shown, ...command], { encoding: 'utf8' })
    return { status: Number(stdout), stderr, log: readFileSync(log, 'utf8') }
  }

  test.each([
    ['up', 'penstock ready', upFlags('terminal'), 'node is down'],
    ['run', 'entered', ['run', directory.file('lossy.json', lossy)], 'ended: STOPPED'],
  ])('%s ends in order', (_, shown, args, last) => {
    const { status, stderr, log } = hangUp(shown, args)
    expect(stderr).toBe('')
    expect(status).toBe(0)
    expect(log).toContain(last)
  })

  test('up in its background goes on, and ends in order at SIGTERM', () => {
    const { status, stderr, log } = hangUp('penstock ready', upFlags('background'), 'disowned.py')
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
    expect(log).toContain('node is down')
  })

  test('top fails as it takes the screen, whatever tells it first', async () => {
    const node = start(upFlags('watched'))
    const [, http] = await lineOf(node, /^penstock ready http=(\S+)/)
    const { status } = hangUp('\x1b[?1049h', ['top', '--url', `http://${http}`])
    const gone = once(node, 'exit')
    node.kill('SIGTERM')
    await gone
    // What nobody reads any more, or what cannot be written.
    expect([0, 1]).toContain(status)
  })
})

test.skipIf(!python)(
  'a terminal that Ctrl-S holds does not hold the node; what it logs meanwhile follows',
  async () => {
    const terminal = new PseudoTerminal(upFlags('held'), {})
    try {
      const [, http, node] = await terminal.see(/penstock ready http=(\S+) .*node=(\S+)/)
      terminal.type('\x13')
      const post = async (path: string, body: object) => {
        const answer = await fetch(`http://${http}/v1/nodes/${node}/${path}`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(body),
        })
        expect(answer.status).toBe(200)
      }
      await post('pipelines', { name: 'flow', jsonConfig: JSON.stringify(lossy) })
      await post('pipelines-by-name/flow/start', {})
      await post('pipelines-by-name/flow/stop', {})
      terminal.type('\x11')
      await terminal.see(/pipeline started/)
      terminal.type(KEYS.interrupt)
      await terminal.see(/node is down/)
      expect(await terminal.code()).toBe(0)
    } finally {
      terminal.process.kill('SIGKILL')
    }
  },
)

test.skipIf(!python)('a terminal that is held from the beginning does not hold the start', async () => {
  const http = await freeAddress()
  const terminal = new PseudoTerminal(upFlags('held-early', http), {})
  try {
    terminal.type('\x13')
    const signal = AbortSignal.timeout(20_000)
    const answers = () => fetch(`http://${http}/metrics`, { signal }).then(({ ok }) => ok)
    await until(() => answers().catch(() => false), 'the node answers')
    terminal.type('\x11')
    await terminal.see(/penstock ready/)
    terminal.type(KEYS.interrupt)
    await terminal.see(/node is down/)
    expect(await terminal.code()).toBe(0)
  } finally {
    terminal.process.kill('SIGKILL')
  }
})
