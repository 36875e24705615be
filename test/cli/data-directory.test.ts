/** What `penstock up` makes of its data directory: one node at a time, whatever namespaces lie between, and disks without room. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  closeSync,
  cpSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statfsSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { packageRoot } from '../../src/package-root.ts'
import { settingsOf, traffic } from '../api/running-node.ts'
import { NOBODY, penstock, scratchForAll } from './cli.ts'

// Many processes one after the other, each of which takes its time on a loaded machine.
vi.setConfig({ testTimeout: 180_000 })

const directory = scratchForAll()
const children: ChildProcess[] = []
const mounts: string[] = []

afterEach(async () => {
  for (const child of children.splice(0)) {
    if (child.exitCode !== null || child.signalCode !== null) continue
    const gone = once(child, 'exit')
    child.kill('SIGKILL')
    await gone
  }
})
afterAll(() => {
  for (const path of mounts) spawnSync('umount', ['-l', path])
  directory.dispose()
})

const isRoot = process.getuid?.() === 0
const namespaces = isRoot && spawnSync('unshare', ['-p', '-f', '--mount-proc', 'true']).status === 0
if (!namespaces) console.warn('SKIPPED: nodes in PID namespaces of their own need root and unshare')

/** A file system of so many KiB in memory; undefined where this process may not mount one. */
function smallDisk(name: string, kib: number): string | undefined {
  const path = join(directory.path, name)
  mkdirSync(path)
  if (spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${kib}k`, 'tmpfs', path]).status !== 0) return undefined
  mounts.push(path)
  return path
}
const canMount = smallDisk('probe', 64) !== undefined
if (!canMount) console.warn('SKIPPED: full disks need root and mount(8) with tmpfs')

/** Leaves about `kib` KiB of a disk. */
function fill(disk: string, kib: number): void {
  const file = openSync(join(disk, 'fill'), 'w')
  try {
    const page = Buffer.alloc(4096, 1)
    for (let { bsize, bavail } = statfsSync(disk); bsize * bavail > kib * 1024; { bsize, bavail } = statfsSync(disk)) {
      writeSync(file, page)
    }
  } finally {
    closeSync(file)
  }
}

interface Up {
  child: ChildProcess
  /** Undefined when it did not come up. */
  ready: Record<string, string> | undefined
  stderr: () => string
}

/** Starts `penstock up`, through `wrapper` when there is one; resolves when it is ready or gone. */
async function up(dataDirectory: string, wrapper: string[] = [], flags: string[] = []): Promise<Up> {
  const launcher = join(packageRoot(), 'bin/penstock.js')
  const free = ['--http', '127.0.0.1:0', '--grpc', 'none']
  const [program, ...args] = [
    ...wrapper,
    process.execPath,
    launcher,
    'up',
    '--data-dir',
    dataDirectory,
    ...free,
    ...flags,
  ]
  const child = spawn(program as string, args, { stdio: ['ignore', 'pipe', 'pipe'] })
  children.push(child)
  let said = ''
  let failed = ''
  child.stderr?.on('data', (text) => {
    failed += text
  })
  const ready = await new Promise<Record<string, string> | undefined>((resolve) => {
    child.stdout?.on('data', (text) => {
      said += text
      const line = /^penstock ready (.*)$/m.exec(said)?.[1]
      if (line) resolve(Object.fromEntries(line.split(' ').map((word) => word.split('=', 2))))
    })
    child.once('close', () => resolve(undefined))
  })
  return { child, ready, stderr: () => failed }
}

async function end({ child }: Up, signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
  const gone = once(child, 'exit')
  child.kill(signal)
  return (await gone)[0]
}

describe('one node at a time', () => {
  test.skipIf(!namespaces)('also between two PID namespaces', async () => {
    const own = ['unshare', '-p', '-f', '--kill-child', '--mount-proc']
    const path = join(directory.path, 'shared')
    const first = await up(path, own)
    expect(first.ready?.node).toBeDefined()
    const second = await up(path, own)
    expect(second.ready).toBeUndefined()
    expect(second.stderr()).toContain(`the data directory ${path} is in use by another node`)
    expect((await fetch(`http://${first.ready?.http}/v1/hub-client/local-node-id`)).status).toBe(200)
    await end(first, 'SIGKILL')
    let third = await up(path, own)
    for (let i = 0; third.ready === undefined && i < 20; i++) third = await up(path, own)
    expect(third.ready?.node).toBe(first.ready?.node)
  })

  test('a copy of the directory of a node that runs is another directory', async () => {
    const path = join(directory.path, 'original')
    const first = await up(path)
    cpSync(path, `${path}-copy`, { recursive: true })
    const second = await up(`${path}-copy`)
    expect(second.ready?.node).toBe(first.ready?.node)
  })

  test('one that was killed gives it free at once', async () => {
    const path = join(directory.path, 'killed')
    for (let round = 0; round < 3; round++) {
      const node = await up(path)
      expect(node.ready, node.stderr()).toBeDefined()
      await end(node, 'SIGKILL')
    }
  })
})

describe.skipIf(!canMount)('a disk', () => {
  test('that is full at the start, or almost: path, bytes needed, bytes there; with room again the node comes up', async () => {
    const disk = smallDisk('full', 4096) as string
    const path = join(disk, 'node')
    for (const left of [0, 4, 16, 64, 200]) {
      fill(disk, left)
      const node = await up(path)
      expect(node.child.signalCode).toBeNull()
      expect(node.child.exitCode).toBe(1)
      expect(node.stderr()).toMatch(
        new RegExp(
          `the data directory ${path} has no room: its disk is full: [\\d,]+ bytes are needed, [\\d,]+ are there`,
        ),
      )
      expect(node.stderr().trim().split('\n')).toHaveLength(1)
    }
    rmSync(join(disk, 'fill'))
    const node = await up(path)
    expect(node.ready, node.stderr()).toBeDefined()
    // What it has reserved lasts over restarts on a disk that others have filled since.
    fill(disk, 0)
    expect(await end(node)).toBe(0)
    const again = await up(path)
    expect(again.ready?.node, again.stderr()).toBe(node.ready?.node)
    expect(await end(again)).toBe(0)
    // A file that is to be made is named, and nothing is left of it.
    const before = readdirSync(path)
    const { child, stderr } = await up(path, [], ['--loopback', 'token'])
    expect(stderr()).toBe(
      `penstock: the node did not start: ${join(path, 'local.token')} cannot be written (ENOSPC: no space left on device, write): is its disk full?\n`,
    )
    expect(child.exitCode).toBe(1)
    expect(readdirSync(path)).toEqual(before)
  })

  test('has no part of a file that hub export could not write', async () => {
    const disk = smallDisk('of an export', 64) as string
    const path = join(directory.path, 'exported')
    await end(await up(path))
    fill(disk, 0)
    const file = join(disk, 'members.jsonl')
    const { code, stderr } = await penstock(['hub', 'export', file, '--data-dir', path])
    expect([code, stderr]).toEqual([1, `penstock: cannot write ${file}: ENOSPC: no space left on device, write\n`])
    expect(readdirSync(disk)).toEqual(['fill'])
    rmSync(join(disk, 'fill'))
    expect(await penstock(['hub', 'export', file, '--data-dir', path])).toMatchObject({ code: 0, stderr: '' })
    expect(readFileSync(file, 'utf8')).toMatch(/\n$/)
  })

  test('leaves the file that pipelines export was to replace as it was, and one that it replaced keeps its owner and mode', async () => {
    const disk = smallDisk('of pipelines', 64) as string
    const node = await up(join(directory.path, 'exporting'))
    const url = `http://${node.ready?.http}`
    const body = JSON.stringify({ ...settingsOf(traffic()), name: 'kept' })
    await fetch(`${url}/v1/nodes/${node.ready?.node}/pipelines`, { method: 'POST', body })
    const file = join(disk, 'pipelines.yaml')
    const exported = () => penstock(['pipelines', 'export', '--all', '-o', file, '--url', url])
    expect(await exported()).toMatchObject({ code: 0, stderr: '' })
    const whole = readFileSync(file, 'utf8')
    chmodSync(file, 0o640)
    chownSync(file, 65_534, 65_534)
    const { ino } = statSync(file)
    fill(disk, 0)
    const { code, stderr } = await exported()
    expect([code, stderr]).toEqual([1, `penstock: cannot write ${file}: ENOSPC: no space left on device, write\n`])
    expect(readFileSync(file, 'utf8')).toBe(whole)
    expect(readdirSync(disk).sort()).toEqual(['fill', 'pipelines.yaml'])
    rmSync(join(disk, 'fill'))
    expect(await exported()).toMatchObject({ code: 0, stderr: '' })
    const { uid, gid, mode, ino: replaced } = statSync(file)
    expect({ uid, gid, mode: mode & 0o777 }).toEqual({ uid: 65_534, gid: 65_534, mode: 0o640 })
    expect(replaced).not.toBe(ino)
    expect(readdirSync(disk)).toEqual(['pipelines.yaml'])
    // As a container has a file of the machine: nothing can take its place.
    spawnSync('mount', ['--bind', file, file])
    mounts.push(file)
    expect(await exported()).toMatchObject({ code: 0, stderr: '' })
    spawnSync('umount', [file])
    expect(statSync(file).ino).toBe(replaced)
    expect(readFileSync(file, 'utf8')).toBe(whole)
    expect(readdirSync(disk)).toEqual(['pipelines.yaml'])
    const nowhere = join(disk, 'none', 'new.yaml')
    const { stderr: told } = await penstock(['pipelines', 'export', '--all', '-o', nowhere, '--url', url])
    expect(told).toBe(`penstock: cannot write ${nowhere}: ENOENT: no such file or directory, open '${nowhere}'\n`)
    // What a link names is replaced, the link stays; what is no file is written to.
    symlinkSync(file, join(disk, 'link'))
    expect(await penstock(['pipelines', 'export', '--all', '-o', join(disk, 'link'), '--url', url])).toMatchObject({
      code: 0,
    })
    expect(lstatSync(join(disk, 'link')).isSymbolicLink()).toBe(true)
    const pipe = join(disk, 'pipe')
    spawnSync('mkfifo', [pipe])
    const reader = spawn('cat', [pipe])
    const read = text(reader.stdout)
    expect(await penstock(['pipelines', 'export', '--all', '-o', pipe, '--url', url])).toMatchObject({ code: 0 })
    expect(await read).toBe(whole)
  })

  test.each([1024, 1088])('of %i KiB holds a node: what the store takes ahead leaves room for the key', async (kib) => {
    const node = await up(join(smallDisk(`of ${kib}`, kib) as string, 'node'))
    expect(node.ready, node.stderr()).toBeDefined()
    expect(await end(node)).toBe(0)
  })

  test('that fills up: each caller is told, the log once a minute; changes are taken once there is room', async () => {
    const disk = smallDisk('filling', 4096) as string
    const node = await up(join(disk, 'node'))
    fill(disk, 0)
    const url = `http://${node.ready?.http}/v1/nodes/${node.ready?.node}`
    const create = async (size: number) => {
      const settings = settingsOf(traffic())
      settings.jsonConfig += ' '.repeat(size)
      const response = await fetch(`${url}/pipelines`, { method: 'POST', body: JSON.stringify(settings) })
      return { status: response.status, body: (await response.json()) as { code?: number; message?: string } }
    }
    let refused = 0
    for (let i = 0; refused < 10 && i < 100; i++) {
      const { status, body } = await create(100_000)
      if (status === 200) continue
      refused++
      expect(body).toMatchObject({ code: 8, message: expect.stringMatching(/\d bytes are free.*is its disk full\?/) })
      expect(body.message).toContain(`the data directory ${join(disk, 'node')} did not take the change`)
    }
    expect(refused).toBe(10)
    expect((await fetch(`${url}/pipelines`)).status).toBe(200)
    rmSync(join(disk, 'fill'))
    expect((await create(100_000)).status).toBe(200)
    expect(await end(node)).toBe(0)
    const lines = node.stderr().trim().split('\n')
    expect(lines.filter((line) => line.includes('penstock.lmdb does not take changes'))).toHaveLength(1)
    expect(lines.filter((line) => line.includes(' ERROR '))).toHaveLength(1)
  })

  test("that fills up, a hub's: a request to join that cannot be stored as accepted waits until it can", async () => {
    const disk = smallDisk('hub', 4096) as string
    const hub = await up(join(disk, 'node'), [], ['--hub'])
    const asker = await up(join(directory.path, 'asker'))
    const url = (node: Up, path: string) => `http://${node.ready?.http}/v1/${path}`
    const requests = async () =>
      ((await (await fetch(url(hub, 'hub-server/authentication-requests'))).json()) as { requests: object[] }).requests
    const approve = () =>
      penstock(['authentication-requests', 'approve', '--all', '--url', `http://${hub.ready?.http}`])
    const body = JSON.stringify({ hubServerAddress: `http://${hub.ready?.http}` })
    const joined = fetch(url(asker, 'hub-client/authenticate-by-request'), { method: 'POST', body })
    await vi.waitUntil(async () => (await requests()).length === 1, 30_000)
    fill(disk, 0)
    // What the node has reserved for what it stores.
    const settings = settingsOf(traffic())
    settings.jsonConfig += ' '.repeat(10_000)
    const create = async () =>
      (await fetch(url(hub, `nodes/${hub.ready?.node}/pipelines`), { method: 'POST', body: JSON.stringify(settings) }))
        .status
    while ((await create()) === 200);
    expect(await approve()).toMatchObject({ code: 1, stderr: expect.stringContaining('is its disk full?') })
    expect(await requests()).toHaveLength(1)
    expect(hub.stderr()).not.toMatch(/request to join accepted|node joined/)
    expect(hub.stderr()).toMatch(/ WARN request to join could not be accepted .* error=".*\d bytes are free.*"\n/)
    rmSync(join(disk, 'fill'))
    expect(await approve()).toMatchObject({ code: 0, stdout: 'approved 1\n' })
    expect((await joined).status).toBe(200)
    expect(hub.stderr()).toMatch(/ INFO request to join accepted /)
  })

  test('that does not say how much it holds: the node comes up; where it takes no more files that is said', async () => {
    // A file system in memory without a limit.
    const disk = smallDisk('unlimited', 0) as string
    expect(statfsSync(disk).blocks).toBe(0)
    const path = join(disk, 'node')
    const limited = (files: number) => spawnSync('mount', ['-o', `remount,nr_inodes=${files}`, disk]).status
    expect(limited(4)).toBe(0)
    const refused = await up(path)
    expect(refused.child.exitCode).toBe(1)
    expect(refused.stderr()).toContain(
      `${path} has no room: the file system takes no more files, or no larger ones; make`,
    )
    expect(limited(100)).toBe(0)
    const node = await up(path)
    expect(node.ready, node.stderr()).toBeDefined()
    expect(await end(node)).toBe(0)
  })

  test('whose files cannot be mapped into memory: what, where, and what to do', async () => {
    const path = join(directory.path, 'not-mapped')
    const file = join(path, 'penstock.lmdb')
    mkdirSync(path)
    writeFileSync(file, '')
    // A file of the kernel's, which cannot either.
    expect(spawnSync('mount', ['--bind', '/proc/self/comm', file]).status).toBe(0)
    mounts.push(file)
    const { child, stderr } = await up(path)
    expect([child.exitCode, child.signalCode]).toEqual([1, null])
    expect(stderr()).toContain(
      `the data directory ${path} cannot be used: its file system does not let files be mapped`,
    )
    expect(stderr()).toContain('choose a dataDirectory on a local disk')
  })

  test('that writes nothing in place: what the store writes to as memory is in memory, a full disk ends no node', async () => {
    const path = join(directory.path, 'in-memory')
    const lock = join(path, 'penstock.lmdb-lock')
    mkdirSync(path)
    // As a killed node of another version may have left it.
    for (const leave of [() => writeFileSync(lock, ''), () => symlinkSync('/proc/self/fd/1000000', lock)]) {
      leave()
      const node = await up(path)
      expect(node.ready, node.stderr()).toBeDefined()
      const written = readFileSync(`/proc/${node.child.pid}/maps`, 'utf8').match(/ rw-s .*penstock.*/g) ?? []
      expect(written.filter((line) => line.includes(path))).toEqual([])
      expect(written.join()).toMatch(/\/dev\/shm\/penstock-.*\(deleted\)/)
      expect(readdirSync(path)).not.toContain('penstock.lmdb-lock')
      expect(readdirSync('/dev/shm').filter((name) => written.some((line) => line.includes(name)))).toEqual([])
      await end(node, 'SIGKILL')
    }
    // Without such memory it is a file, also where a link was left.
    symlinkSync('/proc/self/fd/1000000', lock)
    const without = ['unshare', '-m', 'sh', '-c', 'mount -t tmpfs -o ro tmpfs /dev/shm && exec "$@"', 'sh']
    const node = await up(path, without)
    expect(node.ready, node.stderr()).toBeDefined()
    expect(lstatSync(lock).isFile()).toBe(true)
    expect(await end(node)).toBe(0)
  })

  test('mounted read-only: what, where, and what to do', async () => {
    const disk = smallDisk('read-only', 4096) as string
    mkdirSync(join(disk, 'node'))
    expect(spawnSync('mount', ['-o', 'remount,ro', disk]).status).toBe(0)
    for (const path of [join(disk, 'node'), join(disk, 'other')]) {
      const { child, stderr } = await up(path)
      expect(child.exitCode).toBe(1)
      expect(stderr()).toContain(`the data directory ${path} cannot be used`)
      expect(stderr()).toMatch(/mounted read-only: mount it writable/)
    }
  })
})

const canHaveImage = isRoot && spawnSync('mkfs.ext4', ['-V']).status === 0
if (!canHaveImage) console.warn('SKIPPED: a disk that becomes read-only needs root and mkfs.ext4')

test.skipIf(!canHaveImage)(
  'a disk that becomes read-only under a node: what to do, to each caller; nothing is asked of LMDB, which would overrun its memory',
  async ({ skip }) => {
    const disk = join(directory.path, 'failing')
    const image = `${disk}.img`
    mkdirSync(disk)
    writeFileSync(image, '')
    truncateSync(image, 16 << 20)
    expect(spawnSync('mkfs.ext4', ['-q', image]).status).toBe(0)
    const mounted = spawnSync('mount', ['-o', 'loop,errors=remount-ro', image, disk])
    if (mounted.status !== 0) skip(`SKIPPED: no image can be mounted: ${mounted.stderr}`)
    mounts.push(disk)
    const path = join(disk, 'node')
    const node = await up(path)
    const url = `http://${node.ready?.http}/v1/nodes/${node.ready?.node}/pipelines`
    const create = async () => {
      const response = await fetch(url, { method: 'POST', body: JSON.stringify(settingsOf(traffic())) })
      return {
        status: response.status,
        body: (await response.json()) as { pipeline?: { id: string }; message?: string },
      }
    }
    const { body } = await create()
    // As ext4 does after an error; mount(8) says that it failed, as what it asks for is done already.
    spawnSync('mount', ['-o', 'remount,abort', disk])
    expect(() => writeFileSync(join(disk, 'file'), '')).toThrow('EROFS')
    const told = `the data directory ${path} did not take the change (EROFS): its file system is read-only by now: see why (dmesg), then mount it writable`
    for (let i = 0; i < 10; i++) {
      expect(await create()).toMatchObject({ status: 429, body: { code: 8, message: told } })
      const removed = await fetch(`${url}/${body.pipeline?.id}`, { method: 'DELETE' })
      expect(await removed.json()).toMatchObject({ code: 8, message: told })
    }
    expect(await (await fetch(url)).json()).toMatchObject({ pipelines: [{ id: body.pipeline?.id }] })
    expect(await end(node)).toBe(0)
    expect(node.stderr()).toContain(
      ` ERROR ${join(path, 'penstock.lmdb')} does not take changes (EROFS): its file system is read-only by now`,
    )
    expect(node.stderr()).not.toContain('Write error')
  },
)

describe('a damaged penstock.lmdb', () => {
  const path = join(directory.path, 'damaged')
  const file = join(path, 'penstock.lmdb')
  let good: Buffer

  beforeAll(async () => {
    const node = await up(path)
    expect(node.ready, node.stderr()).toBeDefined()
    expect(await end(node)).toBe(0)
    good = readFileSync(file)
  })

  test.each([
    ['nothing', () => Buffer.alloc(0), 'it is empty'],
    ['a line of text', () => Buffer.from('hello\n'), 'is cut off'],
    ['zeros', () => Buffer.alloc(good.length), 'is no database'],
    ['the first two pages', () => good.subarray(0, 8192), 'is cut off'],
    [
      'zeros in the middle',
      () => Buffer.concat([good.subarray(0, 8192), Buffer.alloc(good.length - 8192)]),
      'its page ',
    ],
  ])('%s: the file, what is wrong, and what to do; the file stays as it is', async (_, content, what) => {
    writeFileSync(file, content())
    const { child, stderr } = await up(path)
    expect(child.signalCode).toBeNull()
    expect(child.exitCode).toBe(1)
    expect(stderr()).toContain(`${file} is damaged: `)
    expect(stderr()).toContain(what)
    expect(stderr()).toContain('restore the data directory from a backup (docs/service.md), or move this file away')
    expect(stderr().trim().split('\n')).toHaveLength(1)
    const launcher = join(packageRoot(), 'bin/penstock.js')
    const args = [launcher, 'hub', 'export', join(directory.path, 'members'), '--data-dir', path]
    const exported = spawnSync(process.execPath, args, { encoding: 'utf8' })
    expect([exported.status, exported.stderr.includes(`${file} is damaged: `)]).toEqual([1, true])
    expect(readFileSync(file).equals(content())).toBe(true)
  })

  test('moved away: the node comes up under its id; empty from a first start that was cut off: as a new one', async () => {
    const id = readFileSync(join(path, 'identity.pem'))
    for (const make of [() => rmSync(file), () => [rmSync(join(path, 'identity.pem')), writeFileSync(file, '')]]) {
      make()
      const node = await up(path)
      expect(node.ready, node.stderr()).toBeDefined()
      await end(node)
    }
    expect(readFileSync(join(path, 'identity.pem')).equals(id)).toBe(false)
  })
})

test('below a file system that takes no directories: what, where, and what to do', async () => {
  for (const path of ['/proc/penstock', '/proc/penstock/node']) {
    const { child, stderr } = await up(path)
    expect(child.exitCode).toBe(1)
    expect(stderr()).toContain(
      `the data directory ${path} cannot be used: /proc is on a file system that takes no directories`,
    )
  }
})

if (NOBODY === undefined) console.warn('SKIPPED: what an ordinary user may not do needs root and setpriv to try')

const canTrace = spawnSync('strace', ['-qq', '-o', '/dev/null', 'true']).status === 0
if (!canTrace)
  console.warn('SKIPPED: file systems without links and permissions need strace(1), which stands in for them')

/** As on a file system that refuses these. */
function refusing(...calls: string[]): string[] {
  const traced = calls.map((call) => call.split(':', 1)[0])
  const injected = calls.flatMap((call) => ['-e', `inject=${call}`])
  return ['strace', '-D', '-f', '-qq', '-o', '/dev/null', '--seccomp-bpf', '-e', `trace=${traced}`, ...injected]
}

describe.skipIf(!canTrace)('a file system without permissions', () => {
  test('that is mounted for its owner alone, without hard links, as FAT: the node comes up', async () => {
    const path = join(directory.path, 'fat')
    const fat = refusing('/^link(at)?$:error=EPERM', '/^f?chmod(at)?$:error=EPERM')
    const first = await up(path, fat)
    expect(first.ready, first.stderr()).toBeDefined()
    await end(first)
    expect(readdirSync(path).filter((name) => name.startsWith('identity'))).toEqual(['identity.pem'])
    const second = await up(path)
    expect(second.ready?.node).toBe(first.ready?.node)
    await end(second)
    // Open to others.
    chmodSync(join(path, 'penstock.lmdb'), 0o755)
    const { child, stderr } = await up(path, fat)
    expect(child.exitCode).toBe(1)
    const refused = `may not take ${path}/penstock.lmdb from others: run the node as its owner; a file`
    expect(stderr()).toContain(refused)
    const launcher = join(packageRoot(), 'bin/penstock.js')
    const command = [process.execPath, launcher, 'hub', 'export', join(directory.path, 'members'), '--data-dir', path]
    const [program, ...args] = [...fat, ...command] as [string, ...string[]]
    const exported = spawnSync(program, args, { encoding: 'utf8' })
    expect(exported.status).toBe(1)
    expect(exported.stderr).toContain(refused)
  })
})

test.skipIf(NOBODY === undefined)("a directory that is somebody else's: what, where, and what to do", async () => {
  const path = join(directory.path, 'owned')
  mkdirSync(path, { mode: 0o755 })
  for (const at of [path, join(path, 'below')]) {
    const { child, stderr } = await up(at, NOBODY)
    expect(child.exitCode).toBe(1)
    expect(stderr()).toContain(`the data directory ${at} cannot be used: this user (uid 65534) may not write ${path}`)
  }
  writeFileSync(join(directory.path, 'file'), '')
  const { stderr } = await up(join(directory.path, 'file'))
  expect(stderr()).toContain('it is no directory')
})

test.skipIf(NOBODY === undefined)('what root does with the directory of another user leaves it that user', async () => {
  const path = ofNobody('served')
  await end(await up(path, NOBODY, ['--hub']))
  // As in a backup, which may leave them out.
  rmSync(join(path, 'penstock.lock'))
  for (const command of [
    ['export', join(directory.path, 'served.jsonl')],
    ['key', 'adopt', join(directory.path, 'served.key')],
  ]) {
    const { code, stderr } = await penstock(['hub', ...command, '--data-dir', path])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    const again = await up(path, NOBODY)
    expect({ node: again.ready?.node, said: again.stderr() }).toMatchObject({ node: expect.any(String) })
    await end(again)
  }
})

test.skipIf(NOBODY === undefined)(
  "a node that root makes by an import in the empty directory of another user is that user's",
  async () => {
    const key = join(directory.path, 'moved.key')
    const file = join(directory.path, 'moved.jsonl')
    const from = join(directory.path, 'moved')
    const path = ofNobody('taken')
    await end(await up(from, undefined, ['--hub']))
    for (const command of [
      ['key', 'adopt', key, '--data-dir', from],
      ['export', file, '--data-dir', from, '--hub-key-file', key],
      ['import', file, '--data-dir', path, '--hub-key-file', key],
    ]) {
      const { code, stderr } = await penstock(['hub', ...command])
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    }
    const taken = await up(path, NOBODY)
    expect({ node: taken.ready?.node, said: taken.stderr() }).toMatchObject({ node: expect.any(String) })
    await end(taken)
  },
)

test.skipIf(NOBODY === undefined)("a key that is somebody else's: what, where, and what to do", async () => {
  const path = ofNobody('restored')
  await end(await up(path, NOBODY, ['--http-tls', 'auto']))
  for (const name of ['tls.crt', 'identity.pem']) {
    const file = join(path, name)
    chownSync(file, 0, 0)
    chmodSync(file, 0o600)
    const { child, stderr } = await up(path, NOBODY, ['--http-tls', 'auto'])
    expect(child.exitCode).toBe(1)
    expect(stderr()).toContain(
      `the data directory ${path} cannot be used: this user (uid 65534) may not read and write ${file}`,
    )
  }
  // Of root's own directory nothing can be seen at all: that is not the same as no node.
  chownSync(path, 0, 0)
  chmodSync(path, 0o700)
  const seen = await asNobody(['hub', 'export', '/tmp/none.jsonl', '--data-dir', path])
  expect(seen).toContain(`this user (uid 65534) may not read and write ${join(path, 'identity.pem')}`)
})

/** A data directory of the user `NOBODY`. */
function ofNobody(name: string): string {
  const path = join(directory.path, name)
  mkdirSync(path, { mode: 0o700 })
  chownSync(path, 65534, 65534)
  return path
}

/** What a command that fails says to that user. */
async function asNobody(args: string[]): Promise<string> {
  const [program, ...rest] = [
    ...(NOBODY as string[]),
    process.execPath,
    join(packageRoot(), 'bin/penstock.js'),
    ...args,
  ]
  const child = spawn(program as string, rest, { stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  child.stderr.on('data', (text) => {
    said += text
  })
  const [code] = await once(child, 'close')
  expect(code).toBe(1)
  return said
}

const hasPrlimit = spawnSync('prlimit', ['--version']).status === 0
if (!hasPrlimit) console.warn('SKIPPED: a process that may write no long files needs prlimit')
test.skipIf(!hasPrlimit)('a limit of what the process may write to a file is named, with what to do', () => {
  const up = [join(packageRoot(), 'bin/penstock.js'), 'up', '--data-dir', join(directory.path, 'short-files')]
  const { status, stderr } = spawnSync('prlimit', ['--fsize=1000', process.execPath, ...up], { encoding: 'utf8' })
  expect({ status, stderr }).toEqual({
    status: 1,
    stderr: expect.stringMatching(/may not write as much as \S+ needs: raise its limit, ulimit -f, or LimitFSIZE=/),
  })
})

const hasStrace = spawnSync('strace', ['-qq', '-o', '/dev/null', 'true']).status === 0
if (!hasStrace) console.warn('SKIPPED: a process that may not ask for its limits needs strace')
test.skipIf(!hasStrace)('a limit that the process may not ask for is none', () => {
  const native = JSON.stringify(join(packageRoot(), 'dist/src/dataplane/native/native.js'))
  const script = `import { native } from ${native}; native.fileReserve(${JSON.stringify(join(directory.path, 'reserved'))}, 4096)`
  const inject = ['-f', '-qq', '-o', '/dev/null', '-e', 'trace=prlimit64', '-e', 'inject=prlimit64:error=EPERM']
  const node = [process.execPath, '--input-type=module', '-e', script]
  const { status, stderr } = spawnSync('strace', [...inject, ...node], { encoding: 'utf8' })
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
})
