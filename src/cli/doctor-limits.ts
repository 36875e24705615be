/** What limits of the process and of its control groups say to `penstock doctor`: a node meets them once it runs, some without a word. */
import { readFileSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { messageOf } from '../text/error-message.ts'
import type { Finding } from './doctor-finding.ts'

const MIB = 2 ** 20
/** What a node and one run take of each, rounded up (docs/service.md, Memory). */
const ADDRESS_SPACE = 4096 * MIB
const DATA = 1024 * MIB
const MEMORY = 256 * MIB
const PROCESSES = 64
const FILE_BYTES = 64 * MIB
const OPEN_FILES = 4096

/** The text of a file; null where it cannot be read. */
export function read(file: string): string | null {
  try {
    return readFileSync(file, 'utf8').trim()
  } catch {
    return null
  }
}

/** A soft limit by its name in /proc/self/limits (proc_pid_limits(5)); Infinity for none, undefined where that is unknown. */
function limit(name: string): number | undefined {
  const text = new RegExp(`^${name} +(\\d+|unlimited) `, 'm').exec(read('/proc/self/limits') ?? '')?.[1]
  return text === 'unlimited' ? Number.POSITIVE_INFINITY : text === undefined ? undefined : Number(text)
}

interface GroupFile {
  /** Of version 1 the controller, and its file. */
  readonly controller: string
  readonly file: string
  /** The file of version 2. */
  readonly unified: string
}

/**
 * What this process's control group and those above it have in one of their files, the innermost first (cgroups(7)). In a container the path may be that of the
 * host, and what is mounted the group itself: the root is always among them.
 */
function ofGroups({ controller, file, unified }: GroupFile): string[] {
  const own = read('/proc/self/cgroup')?.split('\n') ?? []
  const found: string[] = []
  for (const line of own) {
    const [, controllers = '', path = '/'] = /^\d+:([^:]*):(.*)$/.exec(line) ?? []
    const isUnified = controllers === ''
    if (!isUnified && !controllers.split(',').includes(controller)) continue
    const root = isUnified ? '/sys/fs/cgroup' : join('/sys/fs/cgroup', controller)
    const parts = path.split('/').filter((part) => part !== '')
    for (let length = parts.length; length >= 0; length--) {
      const text = read(join(root, ...parts.slice(0, length), isUnified ? unified : file))
      if (text !== null) found.push(text)
    }
  }
  return found
}

/** The lowest number of those; `max` and what is no number are none. */
const lowest = (texts: string[]): number =>
  Math.min(Number.POSITIVE_INFINITY, ...texts.map((text) => Number.parseInt(text, 10)).filter(Number.isFinite))

/** How many CPUs the control groups let it have the time of. */
export function cpuQuota(): number {
  const texts = ofGroups({ controller: 'cpu', file: 'cpu.cfs_quota_us', unified: 'cpu.max' })
  const periods = ofGroups({ controller: 'cpu', file: 'cpu.cfs_period_us', unified: 'cpu.max' })
  const quotas = texts.map((text, i) => {
    // Of version 2 both stand in one line, of version 1 a quota of -1 is none.
    const [quota, period = periods[i]] = text.split(' ')
    return Number(quota) > 0 ? Number(quota) / Number(period) : Number.POSITIVE_INFINITY
  })
  return Math.min(Number.POSITIVE_INFINITY, ...quotas)
}

const mebibytes = (bytes: number): string => `${Math.floor(bytes / MIB).toLocaleString('en-US')} MiB`

const UNKNOWN = { grade: 'warn', found: 'unknown: there is no /proc', advice: 'mount -t proc proc /proc' } as const

function memory(): Finding {
  const check = 'memory'
  const space = limit('Max address space')
  const data = limit('Max data size')
  if (space === undefined || data === undefined) return { check, ...UNKNOWN }
  const group = lowest(ofGroups({ controller: 'memory', file: 'memory.limit_in_bytes', unified: 'memory.max' }))
  const low: { found: string; advice: string }[] = []
  if (space < ADDRESS_SPACE) {
    const advice = `ulimit -v unlimited, LimitAS=infinity of a systemd unit: a node with one run takes 4 GiB of it, each further run 1 GiB`
    low.push({ found: `${mebibytes(space)} of address space`, advice })
  }
  if (data < DATA) {
    const advice = `ulimit -d unlimited, LimitDATA=infinity of a systemd unit: a node with one run takes 1 GiB of it, each further run 300 MiB`
    low.push({ found: `${mebibytes(data)} of data`, advice })
  }
  if (group < MEMORY) {
    const advice = `raise it (MemoryMax= of a systemd unit, --memory of a container): a node takes about 120 MB, each run 12 MB (with Node.js 22 135 MB and 14) and its packets, and the kernel kills what takes more`
    low.push({ found: `${mebibytes(group)} for its control group`, advice })
  }
  if (low.length > 0) {
    const found = low.map((one) => one.found).join(', ')
    return { check, grade: 'warn', found, advice: low.map(({ advice }) => advice).join('\n→ ') }
  }
  // Version 1 has a number where there is no limit, too large for any machine.
  const found = group < 2 ** 50 ? `${mebibytes(group)} for its control group` : 'no limit'
  return { check, grade: 'ok', found }
}

function processes(): Finding {
  const check = 'processes'
  // Who is root has as many as there can be (setrlimit(2)).
  const own = process.getuid?.() === 0 ? Number.POSITIVE_INFINITY : limit('Max processes')
  if (own === undefined) return { check, ...UNKNOWN }
  const group = lowest(ofGroups({ controller: 'pids', file: 'pids.max', unified: 'pids.max' }))
  const most = Math.min(own, group)
  const found = most === Number.POSITIVE_INFINITY ? 'no limit' : `${most} processes and threads`
  if (most >= PROCESSES) return { check, grade: 'ok', found }
  const raise = own < group ? 'ulimit -u, LimitNPROC=' : 'TasksMax= of a systemd unit, --pids-limit of a container'
  const advice = `raise it (${raise}): a node takes 12, each run one more, each command of a run its own`
  return { check, grade: 'warn', found, advice }
}

function files(): Finding {
  const check = 'file-size'
  const most = limit('Max file size')
  if (most === undefined) return { check, ...UNKNOWN }
  if (most >= FILE_BYTES) {
    return { check, grade: 'ok', found: most === Number.POSITIVE_INFINITY ? 'no limit' : mebibytes(most) }
  }
  const found = `files of up to ${most.toLocaleString('en-US')} bytes`
  const advice = `ulimit -f unlimited, LimitFSIZE=infinity of a systemd unit: a node's database and logs grow`
  return { check, grade: 'warn', found, advice }
}

function descriptors(): Finding {
  const check = 'descriptors'
  const most = limit('Max open files')
  if (most === undefined) return { check, ...UNKNOWN }
  const found = `${most === Number.POSITIVE_INFINITY ? 'unlimited' : most} open files`
  if (most >= OPEN_FILES) return { check, grade: 'ok', found }
  const advice = 'ulimit -n 65536 (LimitNOFILE= of a systemd unit) before a node with many runs or clients'
  return { check, grade: 'warn', found, advice }
}

/** The interface on which commands call the node of their machine; in a new network namespace it is down. */
function loopback(): Finding {
  const check = 'loopback'
  let interfaces: ReturnType<typeof networkInterfaces>
  try {
    interfaces = networkInterfaces()
  } catch (error) {
    const advice = 'let this process ask for them (AF_NETLINK in RestrictAddressFamilies= of a systemd unit)'
    return { check, grade: 'warn', found: `unknown: ${messageOf(error)}`, advice }
  }
  const has = Object.values(interfaces).some((own = []) => own.some(({ address }) => address === '127.0.0.1'))
  if (has) return { check, grade: 'ok', found: '127.0.0.1 is up' }
  const advice =
    'ip link set lo up; where it has no such address, set http.address and grpc.address, and give commands --url'
  return { check, grade: 'warn', found: 'no interface that is up has 127.0.0.1', advice }
}

export const limits = (): Finding[] => [memory(), processes(), files(), descriptors(), loopback()]
