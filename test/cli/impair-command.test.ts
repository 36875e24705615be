/** `penstock impair … -- COMMAND`: a command runs over the link, and impair ends as it does. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterEach, describe, expect, it } from 'vitest'
import { packageRoot } from '../../src/package-root.ts'
import { until } from '../harness/waiting.ts'
import { lineOf, NOBODY, penstock, plainEnvironment, start } from './cli.ts'
import { KEYS, PseudoTerminal } from './pseudo-terminal.ts'
import '../harness/slow.ts'

/** Root that may send signals to its own processes only, as ordinary users do. */
const NO_SIGNALS = ['setpriv', '--bounding-set=-kill', '--inh-caps=-kill']
if (NOBODY === undefined) console.warn('SKIPPED: a command that runs as another user needs root and setpriv to try')

const open: (() => void)[] = []
afterEach(() => {
  for (const close of open.splice(0)) close()
})

/** A server that sends everything back; its port. */
async function echo(): Promise<number> {
  const socket: Socket = createSocket('udp4')
  open.push(() => socket.close())
  socket.on('message', (message, { port }) => socket.send(message, port, '127.0.0.1'))
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  return socket.address().port
}

const linkTo = (port: number, ...options: string[]) => [
  ...['impair', '--listen', '127.0.0.1:0', '--forward', `127.0.0.1:${port}`, '--delay', '20ms', ...options],
]

/** What a Node.js process that runs `script` is called with. */
const node = (script: string) => ['--', process.execPath, '-e', script]

/** Asks over the link, prints the answer and how long it took, and ends with exit code 7. */
const ASK = `
  const [host, port] = [process.env.PENSTOCK_IMPAIR_HOST, Number(process.env.PENSTOCK_IMPAIR_PORT)]
  const socket = require('node:dgram').createSocket('udp4')
  const sent = performance.now()
  socket.on('message', (message) => {
    const { PENSTOCK_IMPAIR_ADDRESS: address, PENSTOCK_IMPAIR_FORWARD: forward } = process.env
    console.log(JSON.stringify({ answer: String(message), took: performance.now() - sent, address, forward, host, port }))
    process.exit(7)
  })
  socket.send('hello', port, host)
`

/** Says that it is there, then each signal it gets; ends with 3 at "end" on its standard input. */
const LISTEN = `
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2']) process.on(name, () => console.log('got ' + name))
  process.stdin.on('data', (text) => String(text).includes('end') && process.exit(3))
  console.log('here')
`

/** Standard error of a child, from its beginning. */
const errorsOf = (child: ChildProcess): Promise<string> => text(child.stderr!)

function command(args: string[]): ChildProcess {
  const child = start(args)
  open.push(() => child.kill('SIGKILL'))
  return child
}

describe('a command over the link', () => {
  it('finds the link in its environment; its output and exit code are those of impair, the summary is on stderr', async () => {
    const port = await echo()
    const { code, stdout, stderr } = await penstock([...linkTo(port), ...node(ASK)])
    expect(code).toBe(7)
    const heard = JSON.parse(stdout)
    expect(heard).toMatchObject({ answer: 'hello', forward: `127.0.0.1:${port}`, host: '127.0.0.1' })
    expect(heard.address).toBe(`127.0.0.1:${heard.port}`)
    expect(heard.took).toBeGreaterThanOrEqual(40)
    expect(stderr).toMatch(/^up .* 1 +1$/m)
    expect(stderr).toMatch(/^down .* 1 +1$/m)
    expect(stderr).toMatch(/stopped after/)
  })

  it('with --json: lines of fields on stderr', async () => {
    const port = await echo()
    const { code, stdout, stderr } = await penstock([...linkTo(port, '--json'), ...node(ASK)])
    expect(code).toBe(7)
    const lines = stderr
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    const [ready, ended] = [lines[0], lines.at(-1)]
    expect(ready).toMatchObject({ state: 'READY', listenPort: JSON.parse(stdout).port, forwardPort: port })
    expect(ended).toMatchObject({ state: 'ENDED', outcome: 'STOPPED', exitCode: 7 })
    expect([ended.up.sentPackets, ended.down.sentPackets]).toEqual([1, 1])
    for (const { delayMs } of [ended.up, ended.down]) expect(delayMs).toBeGreaterThanOrEqual(20)
  })

  it('gets the signals that impair gets', async () => {
    const child = command([...linkTo(9), ...node(LISTEN)])
    const errors = errorsOf(child)
    let said = ''
    child.stdout!.on('data', (data) => {
      said += data
    })
    await until(
      () => said.includes('here'),
      () => `the command runs: ${said}`,
    )
    for (const name of ['SIGINT', 'SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'] as const) {
      said = ''
      child.kill(name)
      await until(
        () => said === `got ${name}\n`,
        () => `${name}: ${said}`,
      )
    }
    const closed = once(child, 'close')
    child.stdin!.end('end\n')
    expect((await closed)[0]).toBe(3)
    expect(await errors).toMatch(/stopped after/)
  })

  it('ends it with 128 and the number of the signal that ended the command', async () => {
    const child = command([...linkTo(9), ...node("console.log('here'); setInterval(() => {}, 1e6)")])
    await lineOf(child, /here/)
    const closed = once(child, 'close')
    child.kill('SIGTERM')
    expect((await closed)[0]).toBe(128 + 15)
  })

  it.skipIf(NOBODY === undefined)(
    'as another user gets no signals, which is told; it goes on, and so does the link',
    async () => {
      const [program, ...rest] = NO_SIGNALS as [string, ...string[]]
      const [separator, ...listen] = node(LISTEN) as [string, ...string[]]
      const launched = [process.execPath, join(packageRoot(), 'bin/penstock.js'), ...linkTo(9)]
      const args = [...rest, ...launched, separator, 'setpriv', '--reuid=65534', '--clear-groups', ...listen]
      const child = spawn(program, args, { stdio: 'pipe', env: plainEnvironment() })
      open.push(() => child.kill('SIGKILL'))
      let errors = ''
      child.stderr.on('data', (data) => {
        errors += data
      })
      await lineOf(child, /here/)
      for (const name of ['SIGTERM', 'SIGUSR1', 'SIGTERM'] as const) {
        errors = ''
        child.kill(name)
        await until(
          () => errors.endsWith(`WARN cannot send ${name} to the command: it runs as another user\n`),
          () => `${name}: ${errors}`,
        )
      }
      const closed = once(child, 'close')
      child.stdin.end('end\n')
      expect((await closed)[0]).toBe(3)
      expect(errors).toMatch(/stopped after/)
    },
  )

  it('in a terminal gets Ctrl-C once, from the terminal', async () => {
    const terminal = new PseudoTerminal([...linkTo(9), ...node(LISTEN)], {})
    open.push(() => terminal.process.kill('SIGKILL'))
    await terminal.see(/^here$/m)
    terminal.type(KEYS.interrupt)
    await terminal.see(/got SIGINT/)
    terminal.type('end\n')
    const [shown] = await terminal.see(/[\s\S]*stopped after/)
    expect(shown).not.toContain('got SIGINT')
    expect(await terminal.code()).toBe(3)
  })

  it('starts only once the link is there, and is not started where it cannot be', async () => {
    const taken = createSocket('udp4').bind(0, '127.0.0.1')
    open.push(() => taken.close())
    await once(taken, 'listening')
    const listen = `127.0.0.1:${taken.address().port}`
    const args = ['impair', '-l', listen, '-f', '127.0.0.1:9', '--loss', '1%', '--', 'echo', 'started']
    const { code, stdout, stderr } = await penstock(args)
    expect([code, stdout]).toEqual([1, ''])
    expect(stderr).toContain('the link did not start')
  })

  it.each([
    [['--', 'no-such-command-here'], 127, 'cannot run no-such-command-here: there is no such command'],
    [['--', '/dev/null/command'], 126, 'cannot run /dev/null/command: there is no such command'],
    [['--', '/dev/null'], 126, 'cannot run /dev/null: it is not a program that you may run'],
    [['-d', '1s', '--', 'true'], 2, '--duration'],
    [['--print', '--', 'true'], 2, '--print'],
  ])('%j exits %i: %s', async (args, code, message) => {
    const result = await penstock([...linkTo(9), ...args])
    expect(result.stderr).toContain(message)
    expect(result).toMatchObject({ code, stdout: '' })
  })

  it.skipIf(spawnSync('sh', ['-c', 'true']).status !== 0)('takes the options of the command for its own', async () => {
    const { code, stdout } = await penstock([...linkTo(9), '--', 'sh', '-c', 'echo "$1"; exit 5', 'sh', '--json'])
    expect([code, stdout]).toEqual([5, '--json\n'])
  })
})
