/** What `up` and `run` say of addresses, ports and interfaces that they cannot have: what, where, and what to do. */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { text } from 'node:stream/consumers'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { packageRoot } from '../../src/package-root.ts'
import { replacedIpsecMb, usableAeadBackends } from '../harness/aead-backends.ts'
import { NOBODY, scratchForAll } from './cli.ts'

// Many processes one after the other, each of which takes its time on a loaded machine.
vi.setConfig({ testTimeout: 180_000 })

const directory = scratchForAll()
afterAll(() => directory.dispose())

const launcher = [process.execPath, join(packageRoot(), 'bin/penstock.js')]
const NAMESPACE = ['unshare', '-n', 'sh', '-c']
const setUp = 'ip link set lo up && ip tuntap add dev probe0 mode tun && ip link del probe0'
const privileged = spawnSync(NAMESPACE[0] as string, [...NAMESPACE.slice(1), setUp]).status === 0
if (!privileged) console.warn('SKIPPED: what the commands say of ports and interfaces needs root, unshare and ip')
const hasStrace = spawnSync('strace', ['-qq', '-o', '/dev/null', 'true']).status === 0
if (!hasStrace) console.warn('SKIPPED: a /dev/net/tun that the system does not open needs strace')
const canDrop = privileged && NOBODY !== undefined
if (!canDrop) console.warn('SKIPPED: what an ordinary user may not do needs setpriv to try')

interface Options {
  /** Shell commands before it in the namespace, and what the command is run through. */
  before?: string
  through?: string
  /** Told of each piece of standard error, and the process in the namespace. */
  onError?: (said: string, pid: number) => void
}

/** Runs `penstock …args` in a network namespace of its own. */
async function penstock(args: string[], { before = 'true', through = '', onError }: Options = {}) {
  const script = `ip link set lo up && ${before} && exec ${through} "$@"`
  const child = spawn('unshare', ['-n', 'sh', '-c', script, 'sh', ...launcher, ...args])
  let stderr = ''
  child.stderr.on('data', (piece) => {
    stderr += piece
    onError?.(stderr, child.pid as number)
  })
  const [stdout, [code, signal]] = await Promise.all([text(child.stdout), once(child, 'close')])
  return { code, signal, stdout, stderr }
}

let directories = 0
const up = (flags: string[], options?: Options) => {
  const data = join(directory.path, `data${directories++}`)
  spawnSync('install', ['-d', '-m', '0777', data])
  return penstock(['up', '--data-dir', data, ...flags], options)
}

describe.skipIf(!privileged)('an address that up cannot listen on', () => {
  test.skipIf(!canDrop).each([
    [['--http', '127.0.0.1:80', '--grpc', 'none'], 'cannot listen on 127.0.0.1:80 for HTTP', 'set http.address'],
    [['--grpc', '127.0.0.1:443', '--http', 'none'], 'cannot listen on 127.0.0.1:443 for gRPC', 'set grpc.address'],
  ])('%j: a low port', async (flags, what, cure) => {
    const { code, stderr } = await up(flags, { through: NOBODY?.join(' ') ?? '' })
    expect(code).toBe(1)
    expect(stderr).toContain(what)
    expect(stderr).toContain('ports below 1024, which needs the capability CAP_NET_BIND_SERVICE')
    expect(stderr).toContain(cure)
    expect(stderr).toContain('(EACCES)')
  })

  test.each([
    ['192.0.2.1:8769', 'is not of this machine (ip address lists those that are)', 'EADDRNOTAVAIL'],
    ['nosuch.invalid:8769', 'the name nosuch.invalid has no address that this machine can find', ''],
    ['127.0.0.1:8770', 'the port is taken (ss -ltnp', 'EADDRINUSE'],
  ])('%s', async (address, why, code) => {
    const holder = `{ ${process.execPath} -e 'require("net").createServer().listen(8770, "127.0.0.1"); setTimeout(() => process.exit(), 60000)' & }`
    const waits = `until ${process.execPath} -e 'require("net").connect(8770, "127.0.0.1").on("connect", () => process.exit(0)).on("error", () => process.exit(1))'; do :; done`
    const before = code === 'EADDRINUSE' ? `${holder} && holder=$! && ${waits}` : 'true'
    for (const setting of ['http', 'grpc'] as const) {
      const other = setting === 'http' ? ['--grpc', 'none'] : ['--http', 'none']
      const through = code === 'EADDRINUSE' ? `sh -c '"$@"; status=$?; kill '$holder'; exit $status' sh` : ''
      const result = await up([`--${setting}`, address, ...other], { before, through })
      expect(result.code).toBe(1)
      expect(result.stderr).toContain(`cannot listen on ${address} for ${setting === 'http' ? 'HTTP' : 'gRPC'}: `)
      expect(result.stderr).toContain(why)
      expect(result.stderr).toContain(`set ${setting}.address to`)
      expect(result.stderr).toContain(code)
      expect(result.stderr).not.toMatch(/No address added|bindAsync|Failed to bind/)
    }
  })
})

const bridge = (components: Record<string, unknown>) =>
  directory.file(`run${directories++}.json`, { version: 1, engine_config: { pipeline: components } })
const sink = { traffic_sink: { input: 'x' } }

describe.skipIf(!privileged)('a port that run cannot have', () => {
  const udp = (address: string) => bridge({ a: { udp: { local_address: address, output: 'x' } }, b: sink })

  test.skipIf(!canDrop)('a low one', async () => {
    const { code, stderr } = await penstock(['run', udp('127.0.0.1:53')], { through: NOBODY?.join(' ') ?? '' })
    expect(code).toBe(1)
    expect(stderr).toContain('component "a" (udp): bind EACCES 127.0.0.1:53')
    expect(stderr).toMatch(/CAP_NET_BIND_SERVICE: run as root, grant it, or choose a higher port/)
  })

  test('one of an address elsewhere', async () => {
    const { code, stderr } = await penstock(['run', udp('192.0.2.1:5000')])
    expect(code).toBe(1)
    expect(stderr).toMatch(/component "a" \(udp\): bind EADDRNOTAVAIL 192\.0\.2\.1:5000.*is not of this machine/)
  })

  test.each(['local_address', 'remote_address'])('one of a link-local %s, on which link is not said', async (field) => {
    const { code, stderr } = await penstock([
      'run',
      bridge({ a: { udp: { [field]: '[fe80::1]:5000', output: 'x' } }, b: sink }),
    ])
    expect(code).toBe(1)
    expect(stderr).toMatch(/EINVAL \[fe80::1\]:5000.*name its network interface in the field interface/)
  })
})

describe.skipIf(!privileged)('a TUN interface', () => {
  const tun = (settings: Record<string, unknown> = {}) =>
    bridge({
      device: { tun: { interface_name: 'pst0', ip: '10.50.0.1', input: 'x', output: 'y', ...settings } },
      back: { uniform_traffic_source: { output: 'x', total_packets: 0, interval: 1000 } },
      sink: { traffic_sink: { input: 'y' } },
    })

  test.each([
    ['a TAP interface', 'ip tuntap add dev pst0 mode tap', 'is there already and is no TUN interface'],
    [
      'another kind of interface',
      'ip link add pst0 type veth peer name pst1',
      'is there already and is no TUN interface',
    ],
  ])('whose name %s has', async (_, before, why) => {
    const { code, stderr } = await penstock(['run', tun()], { before })
    expect(code).toBe(1)
    expect(stderr).toContain(`component "device" (tun): interface "pst0" ${why}`)
    expect(stderr).toContain('choose another interface_name, or delete it (EINVAL)')
  })

  test('that another run has', async () => {
    const file = bridge({
      one: { tun: { interface_name: 'pst0', ip: '10.50.0.1', input: 'x', output: 'y' } },
      two: { tun: { interface_name: 'pst0', ip: '10.51.0.1', input: 'y', output: 'x' } },
    })
    const { code, stderr } = await penstock(['run', file])
    expect(code).toBe(1)
    expect(stderr).toMatch(/component "two" \(tun\): interface "pst0" is in use by another process or run: .*\(EBUSY\)/)
  })

  test.skipIf(!hasStrace).each([
    ['EPERM', 'the container or unit is not allowed the device /dev/net/tun: allow it (LXC'],
    ['EACCES', 'this user may not open /dev/net/tun: let it read and write there'],
  ])('whose device the system does not open, with %s', async (code, why) => {
    const inject = `-e trace=openat,open -e inject=openat,open:error=${code}`
    const refused = { through: `strace -f -qq -o /dev/null -P /dev/net/tun ${inject}` }
    const { stderr } = await penstock(['run', tun()], refused)
    expect(stderr).toContain(`component "device" (tun): interface "pst0" cannot be made: ${why}`)
    const { stdout } = await penstock(['doctor', '-o', 'json'], refused)
    const findings: { check: string }[] = JSON.parse(stdout)
    expect(findings.find(({ check }) => check === 'tun')).toMatchObject({ advice: expect.stringContaining(why) })
  })

  test('that is deleted while it runs', async () => {
    let isGone = false
    const { code, stderr } = await penstock(['run', tun(), '--duration', '30s'], {
      onError: (said, pid) => {
        if (isGone || !said.includes('pst0 is up')) return
        isGone = true
        spawnSync('nsenter', ['-t', String(pid), '-n', 'ip', 'link', 'del', 'pst0'])
      },
    })
    expect(code).toBe(1)
    expect(stderr).toMatch(/read ENODEV pst0 \(the interface was deleted while it was in use/)
    expect(stderr).toContain('the run failed: component "device" (tun): read ENODEV pst0')
    expect(stderr).not.toContain('Unknown system error')
    expect(stderr).not.toMatch(/^ +at /m)
  })

  const looks = (file: string) => `{ ip -json -d address show pst0; ip -json -d link show pst0; } > ${file}`

  test.each([
    ['as the configuration has it', 'mtu 1280 up', '10.50.0.1/24', 'INFO', []],
    ['that differs', 'mtu 1400', '10.77.0.1/24', 'WARN', ['it is down', 'not the address 10.50.0.1', 'MTU is 1400']],
  ])('that was there already, %s: used, said, and left as it was', async (_, link, address, level, lacks) => {
    const [first, last] = [join(directory.path, 'first'), join(directory.path, 'last')]
    const make = `ip tuntap add dev pst0 mode tun vnet_hdr && ip link set pst0 addrgenmode none && ip address add ${address} dev pst0 && ip link set pst0 ${link}`
    const { code, stderr } = await penstock(['run', tun({ generic_offload: true }), '--duration', '300ms'], {
      before: `${make} && sleep 0.1 && ${looks(first)}`,
      through: `sh -c '"$@"; status=$?; ${looks(last)}; exit $status' sh`,
    })
    expect(code, stderr).toBe(0)
    expect(stderr).toContain(`${level}`)
    expect(stderr).toContain('device: interface pst0 was there already: it is used as it is and left as it is')
    for (const lack of lacks) expect(stderr).toContain(lack)
    const [before, after] = [first, last].map((file) => spawnSync('cat', [file], { encoding: 'utf8' }).stdout)
    const stable = (said: string) =>
      said.replaceAll(/"(flags|operstate|preferred_life_time|valid_life_time)":("\w+"|\d+|\[[^\]]*\]),?/g, '')
    expect(before).toContain('"pst0"')
    expect(stable(after as string)).toBe(stable(before as string))
    const isUp = (said: string) => /"flags":\[[^\]]*"UP"/.test(said)
    expect(isUp(after as string)).toBe(isUp(before as string))
  })
})

test.skipIf(!canDrop)('doctor says who may take low ports', async () => {
  const ports = async (options?: Options) => {
    const { stdout } = await penstock(['doctor', '-o', 'json'], options)
    return (JSON.parse(stdout) as { check: string }[]).find(({ check }) => check === 'ports')
  }
  expect(await ports()).toMatchObject({ grade: 'ok', found: expect.stringContaining('CAP_NET_BIND_SERVICE') })
  expect(await ports({ through: NOBODY?.join(' ') ?? '' })).toMatchObject({
    grade: 'warn',
    found: 'ports from 1024 on only',
    advice: expect.stringContaining('cap_net_bind_service'),
  })
})

test.skipIf(!privileged)('doctor where there is no /proc: what it cannot know is unknown', () => {
  const hidden = ['unshare', '-m', 'sh', '-c', 'mount -t tmpfs none /proc && exec "$@"', 'sh']
  const [command, ...args] = [...hidden, ...launcher, 'doctor', '-o', 'json']
  const findings: { check: string; found: string; advice?: string }[] = JSON.parse(
    spawnSync(command as string, args, { encoding: 'utf8', timeout: 60_000 }).stdout,
  )
  const of = (name: string) => findings.find(({ check }) => check === name)
  expect(of('buffers')).toMatchObject({
    found: 'rmem_max unknown, wmem_max unknown',
    advice: expect.stringMatching(/^on the host .*sysctl -w net\.core\.rmem_max=/),
  })
  expect(of('capabilities')?.found).toMatch(/^unknown/)
  expect(of('ports')?.found).toContain('unknown')
})

describe('a crypto backend that is not there', () => {
  const environment = { ...process.env, ...replacedIpsecMb() }
  const run = (args: string[], more: Record<string, string> = {}) =>
    spawnSync(launcher[0] as string, [...launcher.slice(1), ...args], {
      env: { ...environment, ...more },
      encoding: 'utf8',
      timeout: 60_000,
    })
  const cure =
    'install libipsec-mb (Debian 13: apt-get install libipsec-mb2; Debian 12, Ubuntu: apt-get install libipsec-mb1), or choose auto or openssl'
  const node = ['up', '--data-dir', join(directory.path, 'crypto'), '--http', '127.0.0.1:0', '--grpc', 'none']
  const pipeline = join(packageRoot(), 'examples/generator.json')

  test.each([
    ['up, by its flag', [...node, '--crypto-backend', 'ipsec-mb'], {}, 'crypto.backend: ipsec-mb cannot be used: '],
    ['up, by its variable', node, { PENSTOCK_CRYPTO_BACKEND: 'ipsec-mb' }, 'crypto.backend: ipsec-mb cannot be used: '],
    ['run, by its flag', ['run', pipeline, '--crypto-backend', 'ipsec-mb'], {}, '--crypto-backend: ipsec-mb cannot be'],
    ['run, by its variable', ['run', pipeline], { PENSTOCK_CRYPTO_BACKEND: 'ipsec-mb' }, 'ipsec-mb cannot be used: '],
  ])('%s', (_name, args, more, what) => {
    const { status, stderr } = run(args, more)
    expect(status).toBe(1)
    expect(stderr).toContain(what)
    expect(stderr).toContain('libIPSec_MB.so.1: file too short')
    expect(stderr).toContain(cure)
  })

  test.each(['auto', 'openssl'])('%s needs no library', (backend) => {
    const { status, stderr } = run(['run', pipeline, '-d', '100ms', '--crypto-backend', backend])
    expect(stderr).not.toContain('cannot be used')
    expect(status).toBe(0)
  })

  test('doctor says what encrypts, and how to have the faster one', () => {
    const findings = JSON.parse(run(['doctor', '-o', 'json']).stdout)
    const { grade, found, advice } = findings.find(({ check }: { check: string }) => check === 'aead')
    if (usableAeadBackends.includes('avx512')) {
      expect([grade, found]).toEqual(['ok', expect.stringMatching(/^avx512 \(also openssl [\d.]+\)$/)])
      return
    }
    expect(grade).toBe('warn')
    expect(found).toMatch(/^openssl [\d.]+; ipsec-mb: .*file too short$/)
    expect(advice).toContain('apt-get install libipsec-mb1')
  })
})

describe('a Node.js for which there is no binary of uWebSockets.js', () => {
  const hooks = `export const resolve = (name, context, next) => {
    if (name === 'uWebSockets.js') throw new Error('Cannot find module ./bin/uws_linux_x64_999.node')
    return next(name, context)
  }`
  const hooked = `import { register } from 'node:module'; register(${JSON.stringify(`data:text/javascript,${encodeURIComponent(hooks)}`)})`
  const env = { ...process.env, NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(hooked)}` }
  const run = (args: string[]) =>
    spawnSync(launcher[0] as string, [...launcher.slice(1), ...args], { encoding: 'utf8', env })

  test('up says what to type', () => {
    const { status, stderr } = run(['up', '--data-dir', join(directory.path, 'no-http')])
    expect(stderr).toContain(`no binary for Node.js ${process.versions.node}`)
    expect(stderr).toContain("npm pkg set 'overrides[uWebSockets.js]=")
    expect(status).toBe(1)
  })

  test('doctor says so, and what works without it does', () => {
    const { status, stdout } = run(['doctor', '--json'])
    const { grade, advice } = JSON.parse(stdout).find(({ check }: { check: string }) => check === 'http')
    expect(grade).toBe('fail')
    expect(advice).toContain("npm pkg set 'overrides[uWebSockets.js]=")
    expect(status).toBe(1)
    expect(run(['simulate', join(packageRoot(), 'examples/generator.json'), '-d', '1s']).status).toBe(0)
  })
})

test('a binary of uWebSockets.js that does not load: why, and what to do', () => {
  const patch = `const load = process.dlopen
    process.dlopen = (module, file, ...more) => {
      if (file.includes('/uws_')) throw new Error(file + ': failed to map segment from shared object')
      return load(module, file, ...more)
    }`
  const env = { ...process.env, NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(patch)}` }
  const args = [...launcher.slice(1), 'up', '--data-dir', join(directory.path, 'no-map')]
  const { status, stderr } = spawnSync(launcher[0] as string, args, { encoding: 'utf8', env })
  expect(stderr).toMatch(/could not be loaded: \S+\.node: failed to map segment from shared object: raise .*ulimit -v/)
  expect(stderr).not.toContain('npm pkg set')
  expect(status).toBe(1)
})

test('simulations for which there is no second thread fail with what to do', () => {
  const patch = `import threads from 'node:worker_threads'
    import { syncBuiltinESMExports } from 'node:module'
    let begun = 0
    threads.Worker = class extends threads.Worker {
      constructor(...args) {
        if (begun++ > 0) throw Object.assign(new Error('EAGAIN'), { code: 'ERR_WORKER_INIT_FAILED' })
        super(...args)
      }
    }
    syncBuiltinESMExports()`
  const env = { ...process.env, NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(patch)}` }
  const file = join(packageRoot(), 'examples/generator.json')
  const args = [...launcher.slice(1), 'simulate', file, '-d', '100ms', '--set', 'loss.loss_prob=0,1', '--jobs', '2']
  const { status, stderr } = spawnSync(launcher[0] as string, args, { encoding: 'utf8', env })
  expect(stderr).toMatch(
    /^penstock: a thread for simulations could not be started: EAGAIN; .*ulimit -u, TasksMax=.*--jobs 1\n$/,
  )
  expect(status).toBe(1)
})

describe('a platform for which there is no binary of sodium-native', () => {
  const patch = `import Module from 'node:module'
    const resolve = Module._resolveFilename
    Module._resolveFilename = function (name, ...more) {
      if (name === 'sodium-native') throw new Error('no native build was found')
      return resolve.call(this, name, ...more)
    }`
  const env = { ...process.env, NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(patch)}` }
  const run = (args: string[]) =>
    spawnSync(launcher[0] as string, [...launcher.slice(1), ...args], { encoding: 'utf8', env })

  test('a hub does not start, and says why', () => {
    const { status, stderr } = run(['up', '--hub', '--data-dir', join(directory.path, 'no-signatures')])
    expect(stderr).toContain('sodium-native')
    expect(stderr).toContain('no native build was found')
    expect(status).toBe(1)
  })

  test('a node does, but who would have it join a hub hears why it cannot', async () => {
    const flags = ['--http', '127.0.0.1:0', '--grpc', 'none', '--data-dir', join(directory.path, 'no-signatures-node')]
    const node = spawn(launcher[0] as string, [...launcher.slice(1), 'up', ...flags], { env })
    try {
      const [ready] = await once(createInterface({ input: node.stdout }), 'line')
      const address = /http=(\S+)/.exec(ready)?.[1]
      // Nobody listens there: it is not tried.
      const { status, stderr } = run(['authenticate-by-request', 'http://127.0.0.1:9', '--url', `http://${address}`])
      expect(stderr).toContain('sodium-native')
      expect(stderr).toContain('no native build was found')
      expect(status).toBe(1)
    } finally {
      node.kill()
      await once(node, 'close')
    }
  })

  test('doctor says so', () => {
    const { status, stdout } = run(['doctor', '--json'])
    const { grade, advice } = JSON.parse(stdout).find(({ check }: { check: string }) => check === 'signatures')
    expect(grade).toBe('fail')
    expect(advice).toContain('no native build was found')
    expect(status).toBe(1)
  })
})

/** What Node.js itself has open, which differs by version: with less it ends, or crashes, before penstock is loaded. */
const ownDescriptors = () =>
  Number(execFileSync(process.execPath, ['-p', 'fs.readdirSync("/proc/self/fd").length'], { encoding: 'utf8' }))

test.each([0, 1])('no more than %i open files beyond those of Node.js: which limit to raise, in one line', (more) => {
  const script = `ulimit -n ${ownDescriptors() + more} && exec "$@"`
  const args = ['up', '--data-dir', join(directory.path, `few${more}`), '--http', '127.0.0.1:0', '--grpc', 'none']
  const { status, stderr } = spawnSync('sh', ['-c', script, 'sh', ...launcher, ...args], { encoding: 'utf8' })
  expect(status).toBe(1)
  expect(stderr.trim().split('\n')).toHaveLength(1)
  expect(stderr).toMatch(/^penstock: (the node did not start: )?EMFILE: .*ulimit -n/)
})

test.each([0, 1, 2])('the store with descriptors for %i more files: an error, and the process goes on', (left) => {
  const program = `
    import { closeSync, openSync } from 'node:fs'
    import { Store } from ${JSON.stringify(new URL('../../dist/src/store/store.js', import.meta.url).href)}
    const held = []
    try { for (;;) held.push(openSync('/dev/null')) } catch {}
    for (let n = 0; n < ${left}; n++) closeSync(held.pop())
    try { new Store(${JSON.stringify(directory.path)}) } catch (error) { process.stdout.write(error.code) }`
  const args = ['-c', 'ulimit -n 100 && exec "$@"', 'sh', process.execPath, '--input-type=module', '-e', program]
  const { stdout, signal } = spawnSync('sh', args, { encoding: 'utf8' })
  expect({ stdout, signal }).toEqual({ stdout: 'EMFILE', signal: null })
})

test('doctor tells which limits of the process are too low for a node', () => {
  const script = 'ulimit -v 3000000 && ulimit -d 900000 && ulimit -f 1000 && ulimit -n 100 && exec "$@"'
  const { stdout } = spawnSync('bash', ['-c', script, 'bash', ...launcher, 'doctor', '--json'], { encoding: 'utf8' })
  const findings: { check: string; grade: string; found: string; advice: string }[] = JSON.parse(stdout)
  const of = (check: string) => findings.find((finding) => finding.check === check)
  const memory = { grade: 'warn', found: '2,929 MiB of address space, 878 MiB of data' }
  expect(of('memory')).toMatchObject(memory)
  expect(of('memory')?.advice).toMatch(/ulimit -v .*ulimit -d /s)
  const ofFiles = { grade: 'warn', found: 'files of up to 1,024,000 bytes' }
  expect(of('file-size')).toMatchObject({ ...ofFiles, advice: expect.stringContaining('ulimit -f') })
  expect(of('descriptors')).toMatchObject({ grade: 'warn', found: '100 open files' })
})

test.skipIf(!privileged)('a loopback interface that is down: commands and doctor say so', () => {
  const run = (args: string[]) => spawnSync('unshare', ['-n', ...launcher, ...args], { encoding: 'utf8' })
  const { stdout } = run(['doctor', '--json'])
  expect(run(['nodes', '--url', 'http://127.0.0.1:1']).stderr).toContain(
    'the loopback interface is down: ip link set lo up',
  )
  const finding = JSON.parse(stdout).find(({ check }: { check: string }) => check === 'loopback')
  expect(finding).toMatchObject({ grade: 'warn', advice: expect.stringContaining('ip link set lo up') })
})

describe.skipIf(!canDrop)('a user whom the system does not know, without HOME', () => {
  /** No system gives a number as high to somebody (uid 4,294,967,294 is nobody in 32 bits). */
  const STRANGER = ['setpriv', '--reuid=4000000000', '--regid=4000000000', '--clear-groups', 'env', '-u', 'HOME']
  const run = (args: string[]) => {
    const [program, ...through] = [...STRANGER, '-u', 'XDG_STATE_HOME', ...launcher]
    return spawnSync(program as string, [...through, ...args], { encoding: 'utf8' })
  }

  test('up asks where to keep the state, and takes what it is told', () => {
    const { status, stderr } = run(['up'])
    expect(stderr).toContain('uid 4000000000) has no home directory')
    expect(stderr).toContain('--data-dir')
    expect(status).toBe(1)
    expect(run(['config', 'check', '--data-dir', '/srv/state']).stdout).toMatch(/^dataDirectory +\/srv\/state /m)
  })

  test('commands call nodes, and help is shown', () => {
    expect(run(['nodes', '--url', 'http://127.0.0.1:1']).stderr).toContain('no penstock node answers')
    expect(run(['up', '--help']).stdout).toContain('where the node keeps its state')
    const { status, stderr } = run(['hub', 'key', 'adopt', 'hub.key'])
    expect(stderr).toBe('penstock: this user has no home directory: give --data-dir\n')
    expect(status).toBe(2)
  })
})
