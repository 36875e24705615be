/** Output that nobody reads any more ends a command at once, output that cannot be written fails it, whichever command it is. */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { packageRoot } from '../../src/package-root.ts'
import { lineOf, lossy, penstock, scratch, start } from './cli.ts'

const noStrace = spawnSync('strace', ['-qq', '-o', '/dev/null', 'true']).status !== 0
if (noStrace) console.warn('THE TEST OF OUTPUT BEYOND A QUOTA IS SKIPPED: strace cannot trace here')

const directory = scratch()
const flags = ['--http', '127.0.0.1:0', '--grpc', '127.0.0.1:0', '--log-level', 'error']
let node: ChildProcess
let url: string

async function end(child: ChildProcess): Promise<unknown[]> {
  const gone = once(child, 'exit')
  child.kill('SIGTERM')
  return await gone
}

/** `penstock …args | filter` in a shell; gives its exit codes and what the filter printed. */
async function piped(args: string, filter: string): Promise<{ codes: string; shown: string; stderr: string }> {
  const launcher = join(packageRoot(), 'bin/penstock.js')
  const script = `"$NODE" "$LAUNCHER" ${args} | ${filter} >&3; echo "\${PIPESTATUS[*]}"`
  const child = spawn('bash', ['-c', script], {
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
    env: { ...process.env, NODE: process.execPath, LAUNCHER: launcher, PENSTOCK_URL: url },
  })
  const shown = child.stdio[3] as NodeJS.ReadableStream
  const [codes, stderr, filtered] = await Promise.all([text(child.stdout!), text(child.stderr!), text(shown)])
  return { codes: codes.trim(), shown: filtered, stderr }
}

beforeAll(async () => {
  node = start(['up', '--hub', '--data-dir', `${directory.path}/data`, ...flags])
  url = `http://${(await lineOf(node, /^penstock ready http=(\S+) /))[1]}`
  const config = directory.file('lossy.json', lossy)
  const env = { PENSTOCK_URL: url }
  expect((await penstock(['pipelines', 'create', 'quiet', config], { env })).code).toBe(0)
  expect((await penstock(['pipelines', 'create', 'started', config], { env })).code).toBe(0)
  expect((await penstock(['pipelines', 'start', 'started'], { env })).code).toBe(0)
})
afterAll(async () => {
  await end(node)
  directory.dispose()
})

describe('a reader that has seen enough ends the command, though nothing more happens', () => {
  it.each([
    ['nodes --watch', 'head -1', /^NAME/],
    ['nodes --watch -o json', 'head -1', /^\{"initialResponse"/],
    ['pipelines list --watch', 'head -1', /^ID/],
    ['pipelines logs started', 'grep -m1 running', /running/],
    ['pipelines start quiet --follow', 'head -1', /^started run/],
  ])('%s | %s', async (args, filter, first) => {
    const { codes, shown, stderr } = await piped(args, filter)
    expect({ codes, stderr }).toEqual({ codes: '0 0', stderr: '' })
    expect(shown).toMatch(first)
  })

  it('a run in the foreground is stopped in order', async () => {
    const { codes, stderr } = await piped(`run ${directory.path}/lossy.json`, 'head -1')
    expect(codes).toBe('0 0')
    expect(stderr).toContain('ended: STOPPED')
  })

  it('a socket as well', async () => {
    // Pipes between processes of Node.js are sockets.
    const watcher = start(['pipelines', 'list', '--watch'], { PENSTOCK_URL: url })
    const gone = once(watcher, 'exit')
    await lineOf(watcher, /^ID/)
    watcher.stdout?.destroy()
    expect(await gone).toEqual([0, null])
  })

  it('a node goes on', async () => {
    const own = start(['up', '--data-dir', `${directory.path}/own`, ...flags])
    const [, address] = await lineOf(own, /^penstock ready http=(\S+) /)
    own.stdout?.destroy()
    const { code } = await penstock(['status', '--url', `http://${address}`])
    expect(code).toBe(0)
    expect(await end(own)).toEqual([0, null])
  })
})

describe('a full device: one line, exit code 1', () => {
  const config = `${directory.path}/lossy.json`
  it.each([
    ['--help'],
    ['--version'],
    ['pipelines --help'],
    ['status --help'],
    ['help run'],
    ['version'],
    ['status'],
    ['nodes'],
    ['nodes --watch'],
    ['pipelines list'],
    ['pipelines list --watch'],
    ['pipelines logs started'],
    ['pipelines telemetry started'],
    ['components'],
    ['completion bash'],
    ['config check'],
    ['doctor'],
    [`validate ${config}`],
    [`simulate ${config} -d 1s`],
    [`run ${config} --log-level ERROR`],
    [`up --data-dir ${directory.path}/full ${flags.join(' ')}`],
  ])('%s > /dev/full', async (args) => {
    const launcher = join(packageRoot(), 'bin/penstock.js')
    const child = spawn('bash', ['-c', `exec "$NODE" "$LAUNCHER" ${args} > /dev/full`], {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { ...process.env, NODE: process.execPath, LAUNCHER: launcher, PENSTOCK_URL: url },
    })
    const gone = once(child, 'exit')
    // What a run in the foreground logs is not about this.
    const lines = (await text(child.stderr!)).split('\n').filter((line) => line !== '' && !/ STATE /.test(line))
    expect(await gone).toEqual([1, null])
    expect(lines).toEqual([expect.stringMatching(/^penstock: cannot write to standard output: ENOSPC/)])
  })

  it('a file that takes a part of it alone', async () => {
    const file = directory.file('part.json', '')
    const launcher = join(packageRoot(), 'bin/penstock.js')
    const script = 'ulimit -f 4; exec "$NODE" "$LAUNCHER" components udp -o json > "$FILE"'
    const child = spawn('bash', ['-c', script], {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { ...process.env, NODE: process.execPath, LAUNCHER: launcher, FILE: file },
    })
    const gone = once(child, 'exit')
    expect(await text(child.stderr!)).toMatch(/^penstock: cannot write to standard output: EFBIG.*\n$/)
    expect(await gone).toEqual([1, null])
  })

  it.skipIf(noStrace)('by a quota that is used up, for which Node.js has no name', async () => {
    const file = directory.file('quota.txt', '')
    const launcher = join(packageRoot(), 'bin/penstock.js')
    const strace = '-f -qq -o /dev/null -P "$FILE" -e trace=write,writev -e inject=write,writev:error=EDQUOT'
    const child = spawn('bash', ['-c', `exec strace ${strace} "$NODE" "$LAUNCHER" completion bash > "$FILE"`], {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { ...process.env, NODE: process.execPath, LAUNCHER: launcher, FILE: file },
    })
    const [said] = await Promise.all([text(child.stderr!), once(child, 'exit')])
    expect(said).toBe('penstock: cannot write to standard output: EDQUOT: Disk quota exceeded, write\n')
  })

  it('stderr full too: the exit code says it', () => {
    const launcher = join(packageRoot(), 'bin/penstock.js')
    const script = '"$NODE" "$LAUNCHER" version > /dev/full 2> /dev/full; echo $?'
    const env = { ...process.env, NODE: process.execPath, LAUNCHER: launcher }
    expect(execFileSync('bash', ['-c', script], { encoding: 'utf8', env })).toBe('1\n')
  })
})
