/** `penstock doctor`: what this machine can do for pipelines, and what to do about what it cannot. */
import { existsSync } from 'node:fs'
import { release } from 'node:os'
import type { Command } from 'commander'
import type { TUN_NOT_OPENED } from '../dataplane/engine/io-faults.ts'
import { AddonMissing, buildingAdvice } from '../dataplane/native/addon-missing.ts'
import type * as AeadBackends from '../dataplane/native/aead-backends.ts'
import type { AeadBackendState } from '../dataplane/native/cipher-calls.ts'
import type { Native } from '../dataplane/native/native.ts'
import { SOCKET_BUFFER_BYTES } from '../dataplane/native/socket-calls.ts'
import { messageOf } from '../text/error-message.ts'
import type { Finding } from './doctor-finding.ts'
import { cpuQuota, limits, read } from './doctor-limits.ts'
import { SilentFailure } from './failure.ts'
import { type Format, withOutput } from './options.ts'
import { paint, print, printJson, table } from './terminal.ts'

function nodeVersion(): Finding {
  const [major, minor] = process.versions.node.split('.').map(Number)
  const supported = major > 20 || (major === 20 && minor >= 19)
  const found = `Node.js ${process.versions.node}`
  if (supported) return { check: 'node', grade: 'ok', found }
  return { check: 'node', grade: 'fail', found, advice: 'use Node.js 20.19 or later' }
}

async function http(): Promise<Finding> {
  try {
    await import('../api/http-library.ts')
    return { check: 'http', grade: 'ok', found: 'uWebSockets.js loaded' }
  } catch (error) {
    const advice = `run, simulate and impair work without it; for the rest: ${messageOf(error)}`
    return { check: 'http', grade: 'fail', found: 'uWebSockets.js does not load', advice }
  }
}

/** What hubs and their nodes sign with. */
async function signatures(): Promise<Finding> {
  const { loadSignatures } = await import('../link/ed25519.ts')
  try {
    loadSignatures()
    return { check: 'signatures', grade: 'ok', found: 'libsodium loaded' }
  } catch (error) {
    const advice = `all but hubs works without it; for these: ${messageOf(error)}`
    return { check: 'signatures', grade: 'fail', found: 'libsodium does not load', advice }
  }
}

function kernel(): Finding {
  const found = `${process.platform} ${release()}`
  if (process.platform !== 'linux') return { check: 'kernel', grade: 'fail', found, advice: 'penstock runs on Linux' }
  const [major, minor] = release().split('.').map(Number)
  const version = major * 1000 + minor
  if (version < 5000) {
    return { check: 'kernel', grade: 'warn', found, advice: 'UDP GRO needs Linux 5.0: the LINUX backend falls back' }
  }
  if (version < 5011) {
    return { check: 'kernel', grade: 'warn', found, advice: 'timers are accurate to 1 ms only before Linux 5.11' }
  }
  return { check: 'kernel', grade: 'ok', found }
}

function cpus(native: Native): Finding {
  const threads = native.affinity()
  const found = `${threads.length} CPU threads (${threads.slice(0, 8).join(', ')}${threads.length > 8 ? ', …' : ''})`
  const quota = cpuQuota()
  if (quota < 1) {
    const advice =
      'raise it (CPUQuota= of a systemd unit, --cpus of a container): runs stand still whenever it is used up'
    return {
      check: 'cpus',
      grade: 'warn',
      found: `${found}, of whose time ${Math.round(quota * 100)} % of one`,
      advice,
    }
  }
  if (threads.length > 1) return { check: 'cpus', grade: 'ok', found }
  return { check: 'cpus', grade: 'warn', found, advice: 'runs share one thread with the API; give it two or more' }
}

/** Opens a socket of the fastest kind and asks which one it got. */
function udp(native: Native): Finding {
  const owner = native.ownerOpen()
  try {
    const socket = native.udpOpen(owner, {
      backend: 2,
      local: { address: '127.0.0.1', port: 0 },
      family: 4,
      mtu: 1500,
    })
    const { backend } = native.udpAddress(socket)
    if (backend === 2) return { check: 'udp', grade: 'ok', found: 'segmentation offload: GSO and GRO' }
    const found = backend === 1 ? 'batched calls, no GRO' : 'single calls, no GSO or GRO'
    return { check: 'udp', grade: 'warn', found, advice: 'Linux 5.0 or later makes UDP many times faster' }
  } catch (error) {
    return { check: 'udp', grade: 'fail', found: messageOf(error), advice: 'allow this process to open sockets' }
  } finally {
    native.ownerRelease(owner)
  }
}

/** Makes a TUN interface and takes it away again. */
function tun(native: Native, notOpened: typeof TUN_NOT_OPENED): Finding {
  if (!existsSync('/dev/net/tun')) {
    const advice = 'load the module (modprobe tun), in a container add --device /dev/net/tun'
    return { check: 'tun', grade: 'warn', found: '/dev/net/tun is missing: no tun and tap components', advice }
  }
  const owner = native.ownerOpen()
  try {
    native.tunOpen(owner, {
      kind: 'tun',
      name: `doctor${process.pid % 100_000}`,
      // TEST-NET-2 (RFC 5737), a single address: no route of the machine changes.
      address: '198.51.100.1',
      prefix: 32,
      mtu: 1280,
      defaultRoute: false,
      offload: true,
    })
    return { check: 'tun', grade: 'ok', found: 'interfaces can be created' }
  } catch (error) {
    const { code = '', syscall } = error as NodeJS.ErrnoException
    const refused = syscall === 'open' ? notOpened[code] : undefined
    const advice = refused ?? 'run as root, or with CAP_NET_ADMIN (setcap cap_net_admin+ep on node)'
    return { check: 'tun', grade: 'warn', found: messageOf(error), advice }
  } finally {
    native.ownerRelease(owner)
  }
}

function buffers(): Finding {
  const limits = ['rmem_max', 'wmem_max'].map((name) => {
    const text = read(`/proc/sys/net/core/${name}`)
    return { name, bytes: text === null ? undefined : Number(text) }
  })
  const found = limits
    .map(({ name, bytes }) => `${name} ${bytes === undefined ? 'unknown' : `${Math.round(bytes / 1024)} KiB`}`)
    .join(', ')
  const low = limits.filter(({ bytes = 0 }) => bytes < SOCKET_BUFFER_BYTES)
  if (low.length === 0) return { check: 'buffers', grade: 'ok', found }
  if (capabilities()?.has('CAP_NET_ADMIN')) {
    return { check: 'buffers', grade: 'ok', found: `${found}; CAP_NET_ADMIN lifts the limit` }
  }
  // Kernels before 6.10 show them in the first network namespace only.
  const where = low.some(({ bytes }) => bytes === undefined) ? 'on the host (/proc does not say them here): ' : ''
  const advice = `${where}sysctl ${low.map(({ name }) => `-w net.core.${name}=${SOCKET_BUFFER_BYTES}`).join(' ')}`
  return { check: 'buffers', grade: 'warn', found, advice }
}

const CAPABILITIES: Record<string, number> = {
  CAP_NET_BIND_SERVICE: 10,
  CAP_NET_ADMIN: 12,
  CAP_NET_RAW: 13,
  CAP_SYS_NICE: 23,
}

/** Effective capabilities of this process, of those that matter here; undefined where /proc does not say. */
function capabilities(): Set<string> | undefined {
  const digits = /^CapEff:\s*([0-9a-f]+)/m.exec(read('/proc/self/status') ?? '')?.[1]
  if (digits === undefined) return undefined
  const mask = BigInt(`0x${digits}`)
  return new Set(Object.keys(CAPABILITIES).filter((name) => (mask >> BigInt(CAPABILITIES[name])) & 1n))
}

function privileges(): Finding {
  const held = capabilities()
  if (held === undefined) {
    const advice = 'mount /proc: mount -t proc proc /proc'
    return { check: 'capabilities', grade: 'warn', found: 'unknown: there is no /proc/self/status', advice }
  }
  const found = Object.keys(CAPABILITIES)
    .map((name) => `${name} ${held.has(name) ? 'yes' : 'no'}`)
    .join(', ')
  if (held.has('CAP_NET_ADMIN')) return { check: 'capabilities', grade: 'ok', found }
  const advice = 'only tun, tap and large socket buffers need CAP_NET_ADMIN'
  return { check: 'capabilities', grade: 'warn', found, advice }
}

/** From which port on listeners and UDP components can have one (ip(7)). */
function ports(): Finding {
  const first = Number(read('/proc/sys/net/ipv4/ip_unprivileged_port_start') ?? 1024)
  if (first <= 1) return { check: 'ports', grade: 'ok', found: 'every port can be listened on' }
  const held = capabilities()
  if (held === undefined) {
    const found = `ports from ${first} on; whether lower ones is unknown: there is no /proc/self/status`
    return { check: 'ports', grade: 'ok', found }
  }
  if (held.has('CAP_NET_BIND_SERVICE')) {
    return { check: 'ports', grade: 'ok', found: `every port, those below ${first} by CAP_NET_BIND_SERVICE` }
  }
  const found = `ports from ${first} on only`
  const advice = `for lower ones run as root, setcap cap_net_bind_service+ep on node, or sysctl -w net.ipv4.ip_unprivileged_port_start=80`
  return { check: 'ports', grade: 'warn', found, advice }
}

function clock(): Finding {
  const source = read('/sys/devices/system/clocksource/clocksource0/current_clocksource') ?? 'unknown'
  const found = `clock source ${source}`
  if (!/^(hpet|acpi_pm|jiffies)$/.test(source)) return { check: 'clock', grade: 'ok', found }
  return { check: 'clock', grade: 'warn', found, advice: 'reading this clock is a system call; use tsc where possible' }
}

function kernels(native: Native): Finding {
  const [fastest, ...others] = native.gfKernels()
  const found = `GF(2^8) on ${fastest}${others.length > 0 ? ` (also ${others.join(', ')})` : ''}`
  if (fastest !== 'scalar') return { check: 'simd', grade: 'ok', found }
  return { check: 'simd', grade: 'warn', found, advice: 'error correction is slow on this CPU' }
}

/** What does authenticated encryption, and how to have a faster one. */
export function aead(
  backends: readonly AeadBackendState[],
  { aeadAdvice, nameAndVersion }: typeof AeadBackends,
): Finding {
  const usable = backends.filter(({ obstacle }) => obstacle === undefined)
  const [used, ...others] = usable.map(nameAndVersion)
  const first = backends.findIndex(({ obstacle }) => obstacle === undefined)
  // What this CPU has nothing for is nobody's mistake.
  const missed = backends
    .slice(0, first)
    .flatMap(({ name, obstacle }) => (obstacle && obstacle.code !== 'cpu' ? [{ name, obstacle }] : []))
  const also = others.length > 0 ? ` (also ${others.join(', ')})` : ''
  const found = [`${used}${also}`, ...missed.map(({ name, obstacle }) => `${name}: ${obstacle.text}`)].join('; ')
  if (missed.length === 0) return { check: 'aead', grade: 'ok', found }
  const advice = missed.map(({ name, obstacle }) => aeadAdvice(name, obstacle)).join(', or ')
  return { check: 'aead', grade: 'warn', found, advice: `for faster encryption ${advice}` }
}

async function examine(): Promise<Finding[]> {
  const findings = [nodeVersion(), kernel(), await http(), await signatures()]
  let native: Native
  try {
    native = (await import('../dataplane/native/native.ts')).native
  } catch (error) {
    const found = error instanceof AddonMissing ? error.found : messageOf(error).split('\n')[0]
    return [...findings, { check: 'addon', grade: 'fail', found, advice: buildingAdvice() }, ...limits()]
  }
  findings.push({ check: 'addon', grade: 'ok', found: 'native addon loaded' })
  for (const check of [cpus, kernels]) findings.push(check(native))
  findings.push(aead(native.aeadBackends(), await import('../dataplane/native/aead-backends.ts')))
  const { TUN_NOT_OPENED } = await import('../dataplane/engine/io-faults.ts')
  findings.push(udp(native), tun(native, TUN_NOT_OPENED))
  return [...findings, buffers(), privileges(), ports(), ...limits(), clock()]
}

const COLOURS = { ok: 'green', warn: 'yellow', fail: 'red' } as const

export function addDoctor(program: Command): void {
  withOutput(program.command('doctor'))
    .summary('what this machine can do')
    .description('Looks at what pipelines need of this machine and says what to do about what is missing.')
    .option('-c, --config <file>', 'look at the configuration of a node too, and the files that it names for a hub')
    .action(async ({ output, config }: { output: Format; config?: string }) => {
      const findings = await examine()
      if (config !== undefined) findings.push(await (await import('./doctor-configuration.ts')).configuration(config))
      if (output === 'json') printJson(findings)
      else {
        const rows = findings.map(({ check, grade, found, advice }) => [
          paint(grade, COLOURS[grade]),
          check,
          advice === undefined ? found : `${found}\n→ ${advice}`,
        ])
        print(table([{ title: '' }, { title: 'CHECK' }, { title: 'FOUND', wrap: true }], rows))
      }
      if (findings.some(({ grade }) => grade === 'fail')) throw new SilentFailure()
    })
}
