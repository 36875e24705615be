/** What `penstock impair` does: a bad link between two UDP endpoints, in the foreground. */
import { randomUUID } from 'node:crypto'
import { components } from '../dataplane/components/registry.ts'
import { checkPipelineConfig } from '../dataplane/engine/check.ts'
import type { LogLine, RunEnd, RunHandle } from '../dataplane/engine/run.ts'
import { type Direction, profileNames } from '../node/impairment-profiles.ts'
import { messageOf } from '../text/error-message.ts'
import { Failure, Interrupted, UsageFailure } from './failure.ts'
import { RunningCommand } from './impair-command.ts'
import { LinkReader } from './impair-readings.ts'
import { hostAndPort, ImpairReport } from './impair-report.ts'
import {
  linkText,
  loadProfile,
  type Overrides,
  overridden,
  pipelineOf,
  profileOf,
  refused,
  type Step,
} from './impairment.ts'
import { type Format, interruption, untilNextSecond } from './options.ts'
import { print, printJson, TOGETHER, table } from './terminal.ts'

export interface ImpairOptions extends Overrides {
  profile?: string
  listen?: string
  forward?: string
  direction?: Direction
  mtu?: number
  seed?: number
  duration?: number
  list?: boolean
  print?: boolean
  output: Format
}

function list(format: Format): void {
  const profiles = profileNames().map(profileOf)
  if (format === 'json') {
    printJson(profiles)
    return
  }
  const columns = [{ title: 'PROFILE' }, ...['UP', 'DOWN', 'DESCRIPTION'].map((title) => ({ title, wrap: true }))]
  const wrapping = (steps: readonly Step[]): string =>
    linkText(steps).replace(/(\d|±) (?=±|%|ms|Mbit|\d)/g, `$1${TOGETHER}`)
  print(
    table(
      columns,
      profiles.map(({ name, up, down, description }) => [name, wrapping(up), wrapping(down), description]),
    ),
  )
}

/** Tells every second what the link does until the run has ended. */
async function watch(handle: RunHandle, reader: LinkReader, report: ImpairReport): Promise<RunEnd> {
  const over = new AbortController()
  handle.ended.then(() => over.abort())
  const started = performance.now()
  let last = started
  for (;;) {
    await untilNextSecond(started, over.signal)
    if (over.signal.aborted) break
    const now = performance.now()
    report.interval(reader.interval((now - last) / 1000), Math.round((now - started) / 1000))
    last = now
  }
  return await handle.ended
}

/** The link that the options describe. */
async function linkOf(options: ImpairOptions): Promise<Record<Direction, Step[]>> {
  const { profile, loss, burst, delay, jitter, reorder, rate, queue, direction } = options
  const isByHand = [loss, burst, delay, jitter, reorder, rate, queue].some((given) => given !== undefined)
  if (profile === undefined && !isByHand) {
    throw new UsageFailure('say what the link is like: --profile NAME (--list shows them), --loss, --delay or --rate')
  }
  if (direction !== undefined && !isByHand) {
    throw new UsageFailure(
      `--direction ${direction} says which way --loss, --delay, --jitter and --rate hold: give one`,
    )
  }
  const given = profile === undefined ? { up: [], down: [] } : await loadProfile(profile)
  const link = (way: Direction) =>
    direction === undefined || direction === way ? overridden(given[way], options) : [...given[way]]
  return { up: link('up'), down: link('down') }
}

/** What the command finds in its environment. */
function variablesOf(listen: string, forward: string): Record<string, string> {
  const { host, port } = hostAndPort(listen)
  return {
    PENSTOCK_IMPAIR_ADDRESS: listen,
    PENSTOCK_IMPAIR_HOST: host,
    PENSTOCK_IMPAIR_PORT: String(port),
    PENSTOCK_IMPAIR_FORWARD: forward,
  }
}

/** What does not go with a command. */
function checkCommand(command: readonly string[], options: ImpairOptions): void {
  const [first] = command
  if (first === undefined) return
  // `--delay 100ms 10ms 25%`, as tc-netem(8) takes it.
  if (/^\d+(\.\d+)?(%|[mu]?s(ecs?)?|[kmg]?bit)?$/i.test(first)) {
    const way = 'an option takes one value, as in --delay 100ms --jitter 10ms, and a command stands after --'
    throw new UsageFailure(`what is ${first} for? ${way}`)
  }
  const wrong = [
    ['--duration', options.duration],
    ['--print', options.print],
    ['--list', options.list],
  ].flatMap(([name, given]) => (given === undefined ? [] : [name]))
  if (wrong.length > 0) {
    throw new UsageFailure(`${wrong.join(', ')} and a command do not go together: the link is there as long as it runs`)
  }
}

export async function impair(command: string[], options: ImpairOptions): Promise<void> {
  const json = options.output === 'json'
  checkCommand(command, options)
  if (options.list) {
    list(json ? 'json' : 'table')
    return
  }
  const { listen, forward } = options
  if (listen === undefined || forward === undefined) {
    throw new UsageFailure('--listen ADDRESS (clients send there) and --forward ADDRESS (the server) are both needed')
  }
  if (listen === forward) throw new UsageFailure('--listen and --forward are the same address: it would feed itself')
  const steps = await linkOf(options)
  const { mtu, seed } = options
  const ends = { listen, forward, ...(mtu !== undefined && { mtu }), ...(seed !== undefined && { seed }) }
  const written = pipelineOf(steps, ends)
  const { config, problems } = checkPipelineConfig(JSON.stringify(written), components)
  if (!config) throw refused(problems)
  if (options.print) {
    printJson(written)
    return
  }
  const hasCommand = command.length > 0
  const report = new ImpairReport(hasCommand ? process.stderr : process.stdout, json, hasCommand)
  let bound = listen
  const onLog = (lines: LogLine[]) => {
    for (const line of lines) {
      const { level, component, fields } = line
      if (component === 'clients' && typeof fields.address === 'string' && level === 'INFO') bound = fields.address
      if (level === 'WARN' || level === 'ERROR' || level === 'FATAL') report.complaint(line)
    }
  }
  const { openRunPool } = await import('../dataplane/product.ts')
  const pool = openRunPool({ warm: 1, maximum: 1 })
  try {
    const stop = hasCommand ? undefined : interruption()
    const handle = pool.start({ runId: randomUUID(), config, performanceMode: false, level: 'INFO' }, onLog)
    stop?.addEventListener('abort', () => handle.stop())
    if (stop?.aborted) handle.stop()
    try {
      await handle.running
    } catch (error) {
      if (stop?.aborted) throw new Interrupted('interrupted: the link did not start', stop.reason)
      throw new Failure(`the link did not start: ${messageOf(error)}`)
    }
    const started = performance.now()
    const reader = new LinkReader(handle.region, steps)
    const timer = options.duration === undefined ? null : setTimeout(() => handle.stop(), options.duration)
    report.ready(bound, forward, steps)
    const running = hasCommand
      ? await RunningCommand.start(command, variablesOf(bound, forward), (text) => report.warning(text))
      : undefined
    running?.ended.then(() => handle.stop())
    const end = await watch(handle, reader, report)
    if (timer) clearTimeout(timer)
    running?.stop()
    const exitCode = await running?.ended
    const seconds = (performance.now() - started) / 1000
    report.ended(end, reader.total(seconds), seconds, exitCode)
    if (end.outcome === 'FAILED') throw new Failure(`the run failed: ${end.error}`)
    if (exitCode !== undefined) process.exitCode = exitCode
  } finally {
    await pool.close()
  }
}
