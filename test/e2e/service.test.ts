/** What docs/service.md promises: the unit file and its capabilities, and a backup that brings a node back elsewhere. */
import { type ChildProcess, execFileSync, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { packageRoot } from '../../src/package-root.ts'
import { DEFAULT_INSTRUCTIONS_TIMEOUT } from '../../src/services/pipelines-settings.ts'
import { lineOf, penstock, scratch, start } from '../cli/cli.ts'
import { freeAddress } from '../hub/callers.ts'

const unitFile = join(packageRoot(), 'packaging/systemd/penstock.service')
const unit = readFileSync(unitFile, 'utf8')
const guide = readFileSync(join(packageRoot(), 'docs/service.md'), 'utf8')
const composed = readFileSync(join(packageRoot(), 'examples/cluster/compose.yaml'), 'utf8')
const directory = scratch()
afterAll(() => directory.dispose())

const has = (command: string) => spawnSync('which', [command]).status === 0
const missing = [
  ...(process.getuid?.() === 0 ? [] : ['root']),
  ...['setpriv', 'unshare', 'systemd-analyze'].filter((command) => !has(command)),
  // Not in every container.
  ...(spawnSync('unshare', ['-n', '-m', 'true']).status === 0 ? [] : ['the right to make namespaces']),
]
if (missing.length > 0) console.warn(`SKIPPED: the tests of the systemd unit lack ${missing.join(', ')}`)

describe('the systemd unit', () => {
  // The program is where it is on this machine; its man pages are not installed.
  const launcher = join(packageRoot(), 'bin/penstock.js')
  const here = unit.replace('/usr/bin/penstock', launcher).replace(/^Documentation=.*$/m, '')

  it.skipIf(!has('systemd-analyze'))('has nothing that systemd does not know', () => {
    const file = directory.file('penstock.service', here)
    const { status, stderr } = spawnSync('systemd-analyze', ['verify', file], { encoding: 'utf8' })
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  })

  it.skipIf(!has('systemd-analyze'))('starts a program that is elsewhere, once that is named as the guide says', () => {
    const [, edited = ''] = /```ini\n([\s\S]*?)```/.exec(guide) ?? []
    const units = join(directory.path, 'units')
    mkdirSync(join(units, 'penstock.service.d'), { recursive: true })
    writeFileSync(join(units, 'penstock.service'), here)
    const override = edited.replaceAll(/^ +/gm, '').replace(/\/\S+(?= up )/, launcher)
    expect(override).toContain(launcher)
    writeFileSync(join(units, 'penstock.service.d/override.conf'), override)
    // The colon: those of the system are looked for behind.
    const env = { ...process.env, SYSTEMD_UNIT_PATH: `${units}:` }
    const { status, stderr } = spawnSync('systemd-analyze', ['verify', 'penstock.service'], { encoding: 'utf8', env })
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  })

  it.skipIf(!has('systemd-analyze'))('leaves an exposure of 2.2 of 10 at most', () => {
    const { status, stdout } = spawnSync(
      'systemd-analyze',
      ['security', '--offline=true', '--threshold=22', '--no-pager', unitFile],
      { encoding: 'utf8' },
    )
    expect(status, stdout).toBe(0)
  })

  it('gets to its place, with its user and settings, where no package brings it', () => {
    const root = join(directory.path, 'machine')
    // All that Debian has of these directories before anything is installed.
    mkdirSync(join(root, 'etc/systemd/system'), { recursive: true })
    const installs = guide.match(/^sudo install .*$/gm) ?? []
    for (const line of installs) {
      const command = line.replace(/^sudo /, '').replace(/ \/etc\//, ` ${root}/etc/`)
      execFileSync('sh', ['-c', command], { cwd: packageRoot(), stdio: 'pipe' })
    }
    const placed = ['sysusers.d/penstock.conf', 'penstock/penstock.yaml', 'systemd/system/penstock.service']
    const from = ['penstock.sysusers', 'penstock.yaml', 'penstock.service']
    expect(placed.map((path) => readFileSync(join(root, 'etc', path), 'utf8'))).toEqual(
      from.map((name) => readFileSync(join(packageRoot(), 'packaging/systemd', name), 'utf8')),
    )
  })

  it('waits for runs with commands to stop, as is said of containers too', () => {
    const [, unitSeconds] = /^TimeoutStopSec=(\d+)$/m.exec(unit) ?? []
    const [, containerSeconds] = /`--stop-timeout (\d+)`/.exec(guide) ?? []
    const [, composedSeconds] = /^ +stop_grace_period: (\d+)s$/m.exec(composed) ?? []
    for (const seconds of [unitSeconds, containerSeconds, composedSeconds]) {
      expect(Number(seconds)).toBeGreaterThanOrEqual(DEFAULT_INSTRUCTIONS_TIMEOUT + 15)
    }
  })

  it.skipIf(missing.length > 0)('gives a node just what TUN interfaces take', () => {
    const [, granted = ''] = /^AmbientCapabilities=(.*)$/m.exec(unit) ?? []
    const [, bounds = ''] = /^CapabilityBoundingSet=(.*)$/m.exec(unit) ?? []
    const [, device = ''] = /^DeviceAllow=(\S+) rw$/m.exec(unit) ?? []
    const caps = (list: string) =>
      ['-all', ...list.split(' ').map((name) => `+${name.toLowerCase().replace('cap_', '')}`)].join(',')
    for (const path of [dirname(directory.path), directory.path]) {
      if ((statSync(path).mode & 0o001) === 0) chmodSync(path, 0o711)
    }
    const config = directory.file('tun.json', {
      engine_config: {
        pipeline: {
          source: { uniform_traffic_source: { output: 'a', total_packets: 0, interval: 10 } },
          device: {
            tun: { interface_name: 'service0', ip: '10.9.0.1', netmask: '255.255.255.0', input: 'a', output: 'b' },
          },
          sink: { traffic_sink: { input: 'b' } },
        },
      },
    })
    chmodSync(config, 0o644)
    const own = join(directory.path, 'tun')
    // The device as systemd's machines have it, open to everybody; here it may be root's alone.
    const script = `mknod -m 666 ${own} c 10 200 && mount --bind ${own} ${device} && exec "$@"`
    const run = (ambient: string) =>
      spawnSync(
        'unshare',
        [
          ...['-n', '-m', '--propagation', 'private', 'sh', '-c', `rm -f ${own}; ${script}`, 'sh'],
          ...['setpriv', '--reuid', '65534', '--regid', '65534', '--clear-groups', '--no-new-privs'],
          ...[`--inh-caps=${ambient}`, `--ambient-caps=${ambient}`, `--bounding-set=${caps(bounds)}`],
          ...[process.execPath, join(packageRoot(), 'bin/penstock.js'), 'run', config, '-d', '300ms'],
        ],
        { encoding: 'utf8', env: { ...process.env, HOME: '/nonexistent' } },
      )
    expect(run(caps(granted))).toMatchObject({ status: 0 })
    const bare = run('-all')
    expect(bare.status).toBe(1)
    expect(bare.stderr).toContain('CAP_NET_ADMIN')
  })
})

describe('backup and restore', () => {
  const free = ['--http', '127.0.0.1:0', '--grpc', 'none', '--log-level', 'error']

  async function up(data: string, ...flags: string[]): Promise<{ child: ChildProcess; url: string; id: string }> {
    const child = start(['up', ...free, '--data-dir', data, ...flags])
    let said = ''
    child.stderr?.on('data', (text) => {
      said += text
    })
    const [, http, id = ''] = await lineOf(child, /^penstock ready http=(\S+) .*node=(\S+)$/).catch(() => {
      throw new Error(`the node did not start: ${said}`)
    })
    return { child, url: `http://${http}`, id }
  }

  async function stop({ child }: { child: ChildProcess }): Promise<void> {
    const gone = once(child, 'close')
    child.kill('SIGTERM')
    await gone
  }

  /** The commands of the page, with other places. */
  const block = (title: string, places: Record<string, string>): string => {
    const [, commands = ''] = new RegExp(`### ${title}\\n[\\s\\S]*?\`\`\`sh\\n([\\s\\S]*?)\`\`\``).exec(guide) ?? []
    expect(commands, title).toContain('tar')
    return Object.entries(places)
      .reduce((text, [from, to]) => text.replaceAll(from, to), commands)
      .replaceAll(/^(sudo )?systemctl .*$/gm, '')
      .replaceAll('sudo ', '')
  }

  it('brings the id, pipelines, tokens and the place on the hub back, on a hub and on a node of it', async () => {
    const places = { hub: join(directory.path, 'hub'), node: join(directory.path, 'node') }
    // A port of its own, so that the hub comes back where its node looks for it.
    const address = await freeAddress()
    const hub = await up(places.hub, '--hub', '--node-name', 'hub', '--http', address)
    const node = await up(places.node, '--node-name', 'first')
    const at = (url: string, ...args: string[]) => penstock([...args, '--url', url])
    const asked = at(node.url, 'authenticate-by-request', hub.url)
    await expect
      .poll(async () => (await at(hub.url, 'authentication-requests', 'approve', '--all')).stdout, { timeout: 20_000 })
      .toContain('approved')
    expect(await asked).toMatchObject({ code: 0 })
    const config = join(packageRoot(), 'examples/generator.json')
    expect(await at(node.url, 'pipelines', 'create', 'kept', config, '--startup-policy', 'auto')).toMatchObject({
      code: 0,
    })
    const token = (await at(node.url, 'token', 'create', 'laptop')).stdout.trim()
    expect(await at(node.url, 'nodes', 'set', '.', '--name', 'renamed')).toMatchObject({ code: 0 })
    await stop(node)
    await stop(hub)

    const restored: Record<string, string> = {}
    for (const [name, from] of Object.entries(places)) {
      const archive = join(directory.path, `${name}.tar.gz`)
      const to = join(directory.path, `restored-${name}`)
      const back = (title: string, place: string) =>
        execFileSync('bash', [
          '--norc',
          '-euc',
          block(title, { '/var/lib/penstock': place, 'penstock-backup.tar.gz': archive }),
        ])
      back('Backup', from)
      mkdirSync(to)
      back('Restore', to)
      restored[name] = to
    }

    const newHub = await up(restored.hub as string, '--hub', '--http', address)
    expect(newHub.id).toBe(hub.id)
    const again = await up(restored.node as string)
    expect(again.id).toBe(node.id)
    await expect
      .poll(async () => JSON.parse((await at(again.url, 'status', '-o', 'json')).stdout), { timeout: 20_000 })
      .toMatchObject({ state: 'CONNECTED', hub: hub.id, name: 'renamed', nodes: 2, pipelines: 1, running: 1 })
    const known = await penstock(['token', 'list', '-o', 'json', '--url', again.url], {
      env: { PENSTOCK_TOKEN: token },
    })
    expect(JSON.parse(known.stdout)).toMatchObject([{ name: 'laptop' }])
    await stop(again)
    await stop(newHub)
  }, 120_000)
})
