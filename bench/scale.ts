/**
 * scale: what a node costs a hub, and what 10^4, 10^5 and 10^6 of them would. `node dist/bench/scale.js --write` puts the table into
 * docs/scale.md.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { cpus } from 'node:os'
import { join } from 'node:path'
import { packageRoot } from '../src/package-root.ts'
import { measureHub } from './hub.ts'
import { type Bench, type BenchRow, runAlone } from './measure.ts'
import { engineCosts, eventBytes, pictureBytes } from './support/cluster-costs.ts'

const MEASURED = 1_000
/** One heartbeat of each node, s. */
const PAUSE = 10
const PICTURE = 20_000
const CLAIMS = 10_000
const SIZES = [1e4, 1e5, 1e6]
/** What all nodes that come back within a minute ask of a hub a second. */
const MINUTE = 60
const SUBSCRIBERS = 10

const BEGIN = '<!-- made by bench/scale.ts -->'
const END = '<!-- end -->'

interface Costs {
  /** kB at the server with its link. */
  readonly link: number
  /** Bytes at every server. */
  readonly picture: number
  /** ms of CPU of the server that a returning node connects to. */
  readonly proof: number
  /** µs of CPU a second. */
  readonly heartbeat: number
  readonly claims1: number
  readonly claims3: number
  /** Bytes in the engine, in each replica. */
  readonly stored: number
  readonly event: number
}

async function measure(): Promise<Costs> {
  const hub = await measureHub(MEASURED, PAUSE)
  const one = await engineCosts(1, CLAIMS)
  const three = await engineCosts(3, CLAIMS)
  return {
    link: hub.memoryPerNode,
    picture: pictureBytes(PICTURE),
    proof: hub.hubCpuPerReturn,
    heartbeat: hub.idleCpuPerNode,
    claims1: one.claimsPerSecond,
    claims3: three.claimsPerSecond,
    stored: one.storedBytes,
    event: eventBytes(),
  }
}

const round = (value: number): string =>
  value >= 100 ? Math.round(value).toLocaleString('en-US') : value.toPrecision(2).replace(/\.0$/, '')

const UNITS = ['B', 'kB', 'MB', 'GB', 'TB']

function size(bytes: number): string {
  const step = Math.min(UNITS.length - 1, Math.max(0, Math.floor(Math.log10(bytes) / 3)))
  return `${round(bytes / 1000 ** step)} ${UNITS[step]}`
}

/** The table, as Markdown: a node, measured; then the sizes, each figure that of one node times their number. */
function markdown(costs: Costs): string {
  const seconds = (each: number) => (nodes: number) => `${round((nodes * each) / 1000)} s`
  const rows: [string, string, (nodes: number) => string][] = [
    [
      'memory of the links, all servers together',
      `${round(costs.link)} kB`,
      (nodes) => size(nodes * costs.link * 1024),
    ],
    ['memory of the picture, at every server', size(costs.picture), (nodes) => size(nodes * costs.picture)],
    ['in the engine, in each replica', size(costs.stored), (nodes) => size(nodes * costs.stored)],
    ['all come back: CPU of the servers', `${round(costs.proof)} ms`, seconds(costs.proof)],
    ['all come back within a minute: CPUs for it', '', (nodes) => round((nodes * costs.proof) / 1000 / MINUTE)],
    ['all come back: claims, one replica', `${round(costs.claims1)} /s`, seconds(1000 / costs.claims1)],
    ['all come back: claims, three replicas', `${round(costs.claims3)} /s`, seconds(1000 / costs.claims3)],
    [
      'heartbeats: CPUs, all the time',
      `${round(costs.heartbeat)} µs/s`,
      (nodes) => round((nodes * costs.heartbeat) / 1e6),
    ],
    [
      `all come back: told to ${SUBSCRIBERS} subscribers of streamNodes`,
      `${size(costs.event)} an event`,
      (nodes) => size(nodes * costs.event * SUBSCRIBERS),
    ],
    ['first picture of one subscriber', size(costs.event), (nodes) => size(nodes * costs.event)],
  ]
  const powers = SIZES.map((nodes) => `10^${Math.log10(nodes)} nodes`)
  const line = (cells: readonly string[]) => `| ${cells.join(' | ')} |`
  const lines = [
    line(['what', 'a node, measured', ...powers]),
    line(['---', '---', ...powers.map(() => '---')]),
    ...rows.map(([what, one, many]) => line([what, one, ...SIZES.map(many)])),
  ]
  const machine = `${cpus()[0]?.model ?? 'unknown CPU'} × ${cpus().length}, Node ${process.version}`
  return `${lines.join('\n')}\n\nMeasured with ${MEASURED} nodes on ${machine}; the other columns are multiples of the first.`
}

function write(table: string): void {
  const page = join(packageRoot(), 'docs/scale.md')
  const text = readFileSync(page, 'utf8')
  const [before, after] = [text.indexOf(BEGIN), text.indexOf(END)]
  if (before < 0 || after < before) throw new Error(`${page} has no place for the table`)
  writeFileSync(page, `${text.slice(0, before)}${BEGIN}\n\n${table}\n\n${text.slice(after)}`)
}

export const bench: Bench = async () => {
  const costs = await measure()
  const table = markdown(costs)
  console.log(`${table}\n`)
  if (process.argv.includes('--write')) write(table)
  const rows: BenchRow[] = [
    { label: 'memory of a link', value: costs.link, unit: 'kB' },
    { label: 'memory of the picture', value: costs.picture, unit: 'B' },
    { label: 'CPU of a return', value: costs.proof, unit: 'ms' },
    { label: 'CPU of heartbeats', value: costs.heartbeat, unit: 'µs/s' },
    { label: 'claims, one replica', value: costs.claims1, unit: '/s' },
    { label: 'claims, three replicas', value: costs.claims3, unit: '/s' },
    { label: 'stored in the engine', value: costs.stored, unit: 'B' },
    { label: 'event of streamNodes', value: costs.event, unit: 'B' },
  ]
  return { name: 'scale: what a node costs a hub', rows }
}

await runAlone(import.meta.url, bench)
