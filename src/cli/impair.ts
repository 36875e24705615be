/** `penstock impair`: a bad link between two UDP endpoints, in the foreground. */
import { randomUUID } from 'node:crypto'
import { type Command, Option } from 'commander'
import { PAYLOAD_V4 } from '../dataplane/components/endpoints/datagram-endpoint.ts'
import { components } from '../dataplane/components/registry.ts'
import { checkPipelineConfig } from '../dataplane/engine/check.ts'
import type { LogLine, RunEnd, RunHandle } from '../dataplane/engine/run.ts'
import { profileNames } from '../node/impairment-profiles.ts'
import { messageOf } from '../text/error-message.ts'
import { Failure, Interrupted, UsageFailure } from './failure.ts'
import { RunningCommand } from './impair-command.ts'
import { LinkReader } from './impair-readings.ts'
import { hostAndPort, ImpairReport } from './impair-report.ts'
import {
  DIRECTIONS,
  type Direction,
  linkText,
  loadProfile,
  type Overrides,
  overridden,
  pipelineOf,
  profileOf,
  refused,
  type Step,
} from './impairment.ts'
import { type Format, interruption, untilNextSecond, waitingTime, whole, withOutput } from './options.ts'
import { otherOption } from './other-words.ts'
import { bitRate, burstLength, milliseconds, share } from './quantities.ts'
import { print, printJson, TOGETHER, table } from './terminal.ts'

interface ImpairOptions extends Overrides {
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

async function impair(command: string[], options: ImpairOptions): Promise<void> {
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

/** Options of tc-netem(8), toxiproxy and UDPspeeder. */
const OTHER_OPTIONS = [
  ['--latency <time>', 'it is --delay here'],
  ['--bandwidth <rate>', 'it is --rate here, in bit/s'],
  ['--limit <packets>', 'it is --queue here, which counts what waits for the rate'],
  ['-r, --remote <address>', 'it is --forward here'],
  ['--upstream <address>', 'it is --forward here'],
  ['--duplicate <share>', 'no packet is sent twice here'],
  ['--corrupt <share>', 'no packet is damaged here'],
  ['--distribution <name>', 'jitter is uniform here'],
  ['--slot <time>', 'packets are not gathered in slots here'],
  ['--gap <packets>', 'which packets overtake others follows from --jitter here, with --reorder'],
] as const

export function addImpair(program: Command): void {
  const command = withOutput(program.command('impair'))
    .argument('[command...]', 'after --: a command to run over the link')
    .summary('put a bad link between two UDP endpoints')
    .description(
      'Carries datagrams from --listen to --forward and the answers back, over an emulated link: that of a profile, or one made of ' +
        '--loss, --delay, --jitter and --rate, which take the place of what the profile has, in both directions or that of --direction. The first client heard ' +
        'at --listen is the only one served; others are ignored, and the first of them is told of. For another client start it again, ' +
        'or a second one at another address. Ctrl-C ends it with a summary.\n\n' +
        'A command after -- is run over the link, which ends with it, and its exit code is that of impair. It finds the address to send to in ' +
        'PENSTOCK_IMPAIR_ADDRESS, in its parts in PENSTOCK_IMPAIR_HOST and PENSTOCK_IMPAIR_PORT, and that of the server in ' +
        'PENSTOCK_IMPAIR_FORWARD. Signals are passed on to it; what impair has to say goes to standard error.\n\n' +
        'With --json a line when the link is there, one a second, and one for the end.',
    )
    .option('-p, --profile <name|file>', 'a profile of --list, or a file of your own by its path')
    .option('-l, --listen <address>', 'where the client sends to, ip:port or name:port; port 0 lets the system choose')
    .option('-f, --forward <address>', 'where the server is, ip:port or name:port')
    .option('--loss <share>', 'share of the packets that are lost, at random: 5%, 0.05', share('A loss'))
    .option('--burst <packets>', 'lose so many packets in a row, on average: 4, 2.5', burstLength)
    .option('--delay <time>', 'one-way delay: 40ms', milliseconds)
    .option(
      '--jitter <time>',
      'largest deviation from the delay, either way; order is kept without --reorder: 10ms',
      milliseconds,
    )
    .option('--reorder', 'with --jitter: packets overtake those that are held longer')
    .option('--rate <rate>', 'bit/s of UDP payload: 500k, 10M, 1G', bitRate)
    .option(
      '--queue <packets>',
      'packets that wait for the rate (1000, or as the profile has it)',
      whole(0, 2 ** 31 - 1),
    )
    .addOption(
      new Option(
        '--direction <way>',
        'where --loss and the like hold: up, from the client to the server, or down (both)',
      ).choices(DIRECTIONS),
    )
    .option(
      '--mtu <bytes>',
      `longest datagram carried (${PAYLOAD_V4}), in both directions; longer ones are dropped, and the first is warned of. Each packet under way takes a slot ` +
        'of that size: there are 131,072 of them up to some 7,900 bytes, fewer above, 16,000 at 65507, and what finds none is dropped too',
      whole(68, 65_535),
    )
    .option('-s, --seed <number>', 'the same losses and jitter again for the same packets', whole(0, 2 ** 31 - 1))
    .option('-d, --duration <time>', 'stop after this time: 10s, 500ms, 5m', waitingTime)
    .option('--list', 'list the profiles')
    .option('--print', 'print the pipeline configuration and do not run it')
    .action(impair)
  for (const [flags, what] of OTHER_OPTIONS) command.addOption(otherOption(flags, what))
}
