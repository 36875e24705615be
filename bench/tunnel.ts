/**
 * tunnel: TCP (iperf3) between two network namespaces through tun, ssl_encrypt and udp, in turn with a C program that does the same in one thread,
 * with that program without encryption, with wireguard-go, and with error correction inside and around the encryption. Needs root and iperf3.
 * `WIREGUARD_GO=/path` names the wireguard-go to measure beside Debian's;
 * `PENSTOCK_BENCH_FULL=1` adds four flows and the other direction. Each carries for 3 s in each of three rounds, of which the median counts;
 * `PENSTOCK_BENCH_ROUNDS=9` where other machines share the CPUs, so that rounds differ by a fifth.
 */
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { native } from '../src/dataplane/native/native.ts'
import { type Bench, type BenchRow, median, runAlone } from './measure.ts'
import { Namespaces } from './support/namespaces.ts'
import { type Codes, type Tunnel, Tunnels } from './support/tunnels.ts'

const SECONDS = 3
const RETRY_MS = 200
const PATIENCE_MS = 5000
const ROUNDS = Number(process.env.PENSTOCK_BENCH_ROUNDS ?? 3)
const RS = { symbols: 10, repair: 4 }
/** At this rate the window in time would be thousands of packets. */
const RELY = { repair_target_rate: 0.1, max_payloads: 64 }

interface Direction {
  flows: number
  /** From b to a. */
  reverse: boolean
}

/** One flow of iperf3's test. */
interface Carried {
  gigabits: number
  /** Of all processes involved, those of iperf3 too. */
  cpuSecondsPerGigabit: number
  retransmissions: number
}

/** What is read of iperf3's JSON. */
interface Iperf {
  error?: string
  end: {
    sum_sent: { retransmits: number }
    sum_received: { bytes: number; bits_per_second: number; seconds: number }
    cpu_utilization_percent: { host_total: number; remote_total: number }
  }
}

/** Goodput against what, and what is to be reached. */
interface Against {
  to: string
  goal?: string
}

interface Contestant {
  label: string
  open: (tunnels: Tunnels) => Promise<Tunnel>
  against: Against[]
}

const works = (program: string, ...options: string[]): boolean => spawnSync(program, options).error === undefined

/** Why the bench cannot run here; undefined when it can. */
function missing(): string | undefined {
  if (process.getuid?.() !== 0) return 'it makes network namespaces, which takes root'
  if (!works('ip', '-V')) return 'ip is missing: apt-get install iproute2'
  if (!works('iperf3', '--version')) return 'iperf3 is missing: apt-get install iperf3'
  return undefined
}

function wireguards(): { label: string; program: string; goals: [string, string] | undefined }[] {
  const found = []
  const newest = process.env.WIREGUARD_GO
  if (newest) found.push({ label: 'wireguard-go', program: newest, goals: ['≥ 3', '≥ 2'] as [string, string] })
  else console.error('tunnel: THE NEWEST wireguard-go IS NOT MEASURED: WIREGUARD_GO does not say where it is')
  if (works('wireguard-go', '--version')) {
    found.push({ label: "Debian's wireguard-go", program: 'wireguard-go', goals: undefined })
  }
  return found
}

/** All that are measured; those in `against` come before those that they are held to. */
function contestants(): Contestant[] {
  const all: Contestant[] = []
  const wireguard = wireguards()
  const suites = [
    ['AES-128-GCM', 'aes-128-gcm'],
    ['ChaCha20-Poly1305', 'chacha20-poly1305'],
  ] as const
  const library = native.aeadBackends().some(({ name, obstacle }) => name === 'ipsec-mb' && obstacle === undefined)
    ? 'ipsec-mb'
    : 'openssl'
  for (const { label, program } of wireguard) all.push({ label, open: (to) => to.wireguard(program), against: [] })
  // What is left when encryption costs nothing: the most that any of the others could reach here.
  all.push({
    label: 'C, no encryption',
    open: (to) => to.reference('aes-128-gcm', 'none'),
    against: wireguard.map(({ label }) => ({ to: label })),
  })
  suites.forEach(([name, suite], i) => {
    const own = `penstock, ${name}`
    const inC = `C, ${name}, ${library}`
    all.push({ label: inC, open: (to) => to.reference(suite, library), against: [] })
    all.push({
      label: own,
      open: (to) => to.penstock(suite),
      against: [
        { to: inC, goal: '≥ 0.9' },
        ...wireguard.map(({ label, goals }) => ({ to: label, ...(goals && { goal: goals[i] }) })),
      ],
    })
    if (i > 0) return
    const withCode = (code: string, place: keyof Codes, link: string, fields: Record<string, unknown>) =>
      all.push({
        label: `${own}, ${code} ${place}`,
        open: (to) =>
          to.penstock(suite, {
            [place]: { encoder: { [`${link}_encoder`]: fields }, decoder: { [`${link}_decoder`]: {} } },
          }),
        against: [{ to: own, goal: '≥ 0.8' }],
      })
    withCode('Reed-Solomon (10,4)', 'inside', 'reed_solomon', RS)
    withCode('Reed-Solomon (10,4)', 'around', 'reed_solomon', RS)
    withCode('rely 10 % over 64', 'inside', 'rely', RELY)
  })
  return all
}

/** One test of iperf3; again while its server has not done with the one before, and refuses this one. */
async function carry(namespaces: Namespaces, tunnel: Tunnel, direction: Direction): Promise<Carried> {
  const deadline = performance.now() + PATIENCE_MS
  for (;;) {
    const carried = await carryOnce(namespaces, tunnel, direction)
    if (!('error' in carried)) return carried
    if (performance.now() > deadline) throw new Error(`iperf3: ${carried.error}`)
    await sleep(RETRY_MS)
  }
}

async function carryOnce(
  namespaces: Namespaces,
  { address, cpuTime }: Tunnel,
  { flows, reverse }: Direction,
): Promise<Carried | { error: string }> {
  const options = ['-J', '-c', address.b, '-t', SECONDS, '-P', flows, ...(reverse ? ['-R'] : [])]
  const before = cpuTime()
  const client = namespaces.spawn('a', 'iperf3', options)
  let output = ''
  client.stdout?.on('data', (chunk) => {
    output += chunk
  })
  await once(client, 'close')
  const spent = (cpuTime() - before) / 1e9
  const { error, end } = JSON.parse(output) as Iperf
  if (error !== undefined) return { error }
  const { host_total, remote_total } = end.cpu_utilization_percent
  const { bytes, bits_per_second, seconds } = end.sum_received
  return {
    gigabits: bits_per_second / 1e9,
    cpuSecondsPerGigabit: (spent + ((host_total + remote_total) / 100) * seconds) / ((bytes * 8) / 1e9),
    retransmissions: end.sum_sent.retransmits,
  }
}

/** Rows of one direction: for each what it carries, what that costs, and what was sent again. */
function rowsOf(all: readonly Contestant[], seen: readonly Carried[][], { flows, reverse }: Direction): BenchRow[] {
  const where = `${flows} ${flows === 1 ? 'flow' : 'flows'}${reverse ? ' back' : ''}`
  const of = (label: string, part: keyof Carried) => {
    const index = all.findIndex((one) => one.label === label)
    return median((seen[index] as Carried[]).map((one) => one[part]))
  }
  return all.flatMap(({ label, against }): BenchRow[] => {
    const value = of(label, 'gigabits')
    return [
      { label: `${where}: ${label}`, value, unit: 'Gbit/s' },
      ...against.map(({ to, goal }) => ({
        label: `${where}: ${label}, against ${to}`,
        value,
        unit: 'Gbit/s',
        ratio: value / of(to, 'gigabits'),
        ...(goal !== undefined && { goal }),
      })),
      { label: `${where}: ${label}, CPU`, value: of(label, 'cpuSecondsPerGigabit'), unit: 's per Gbit' },
      {
        label: `${where}: ${label}, sent again`,
        value: of(label, 'retransmissions'),
        unit: 'segments',
        ...(flows === 1 && label.startsWith('penstock') && { goal: '≤ 0' }),
      },
    ]
  })
}

export const bench: Bench = async () => {
  const name = `tunnel: TCP through tun (generic_offload, MTU 1420), ssl_encrypt and udp between two namespaces, ${SECONDS} s each`
  const why = missing()
  if (why !== undefined) {
    console.error(`tunnel: NOTHING IS MEASURED: ${why}`)
    return { name: `${name}: not measured, ${why}`, rows: [] }
  }
  const isFull = process.env.PENSTOCK_BENCH_FULL === '1'
  const directions: Direction[] = isFull
    ? [1, 4].flatMap((flows) => [false, true].map((reverse) => ({ flows, reverse })))
    : [{ flows: 1, reverse: false }]
  const namespaces = new Namespaces()
  try {
    const tunnels = new Tunnels(namespaces)
    const all = contestants()
    const opened: Tunnel[] = []
    for (const { open } of all) opened.push(await open(tunnels))
    const { stdout } = namespaces.spawn('b', 'iperf3', ['-s', '--forceflush'])
    if (stdout) await once(stdout, 'data') // it listens
    stdout?.resume()
    const rows: BenchRow[] = []
    for (const direction of directions) {
      const seen = all.map((): Carried[] => [])
      for (let round = 0; round < ROUNDS; round++) {
        for (const [i, tunnel] of opened.entries()) seen[i].push(await carry(namespaces, tunnel, direction))
      }
      rows.push(...rowsOf(all, seen, direction))
    }
    return { name, rows }
  } finally {
    await namespaces.close()
  }
}

await runAlone(import.meta.url, bench)
