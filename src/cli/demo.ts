/** `penstock demo`: real datagrams through a node's pipeline with emulated loss, repaired by error correction, shown live. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { TelemetrySample } from '@penstock/client'
import { type Command, Option } from 'commander'
import { packageRoot } from '../package-root.ts'
import { clientOf } from './client.ts'
import { bindLoopback, freePort, TrafficReceiver, TrafficSender } from './demo-traffic.ts'
import { Failure, Interrupted } from './failure.ts'
import { NodeProcess } from './node-process.ts'
import { type Format, interruption, pause, waitingTime, whole, withOutput } from './options.ts'
import { untilAborted } from './streams.ts'
import { number, paint, print, printJson } from './terminal.ts'

const EXAMPLE = 'examples/udp-fec.json'
/** Where the example listens, and where it sends to. */
const IN = 9000
const OUT = 9001

/** What telemetry says of the pipeline, summed over its components. */
interface Counts {
  /** Datagrams that its socket took in, and that it sent. */
  entered: number
  left: number
  lost: number
  recovered: number
  unrecovered: number
}

function countsOf(sample: TelemetrySample): Counts {
  const sum = (...wanted: string[]): number => {
    let total = 0
    for (const { metrics } of sample.metricCollections) {
      for (const [name, { uint64Value, int64Value, doubleValue }] of Object.entries(metrics)) {
        if (wanted.includes(name)) total += Number(uint64Value ?? int64Value ?? doubleValue ?? 0)
      }
    }
    return total
  }
  return {
    entered: sum('received_packets'),
    left: sum('sent_packets'),
    lost: sum('emulated_loss', 'emulated_loss_packets'),
    recovered: sum('recovered_packets'),
    unrecovered: sum('unrecovered_packets'),
  }
}

/** The example, on other ports where its own are taken. */
async function configFor(inPort: number, outPort: number): Promise<string> {
  const text = await readFile(join(packageRoot(), EXAMPLE), 'utf8')
  if (!text.includes(`127.0.0.1:${IN}`) || !text.includes(`127.0.0.1:${OUT}`)) {
    throw new Failure(`${EXAMPLE} does not use the ports ${IN} and ${OUT} of 127.0.0.1`)
  }
  return text.replaceAll(/127\.0\.0\.1:(9000|9001)\b/g, (_, port) => `127.0.0.1:${port === '9000' ? inPort : outPort}`)
}

interface DemoOptions {
  duration: number
  rate: number
  size: number
  output: Format
}

/** Titles of the table and their widths: a row fits a terminal of 80 columns. The last is the share of all that was sent. */
const COLUMNS = [
  ['time', 8],
  ['sent', 9],
  ['lost (emulated)', 15],
  ['recovered', 10],
  ['beyond repair', 13],
  ['delivered', 10],
  ['in all', 8],
] as const

/** Prints a row a second, fed by the telemetry stream of the run. */
class Display {
  private readonly sender: TrafficSender
  private readonly receiver: TrafficReceiver
  private readonly started = performance.now()
  private readonly quiet: boolean
  private before = { entered: 0, left: 0, sent: 0, delivered: 0, lost: 0, recovered: 0, unrecovered: 0 }

  constructor(sender: TrafficSender, receiver: TrafficReceiver, quiet: boolean) {
    this.sender = sender
    this.receiver = receiver
    this.quiet = quiet
    this.row(COLUMNS.map(([title, width]) => paint(title.padStart(width), 'bold')))
  }

  private row(cells: string[]): void {
    if (!this.quiet) print(cells.join(' '))
  }

  show(counts: Counts): void {
    const now = { ...counts, sent: this.sender.sent, delivered: this.receiver.delivered }
    const seconds = (performance.now() - this.started) / 1000
    const { before } = this
    const share = now.sent === 0 ? '' : `${((100 * now.delivered) / now.sent).toFixed(2)} %`
    const cells = [
      `${seconds.toFixed(1)} s`,
      ...(['sent', 'lost', 'recovered', 'unrecovered', 'delivered'] as const).map((key) =>
        number(now[key] - before[key]),
      ),
      share,
    ]
    const colours = [
      null,
      null,
      'yellow',
      'green',
      now.unrecovered > before.unrecovered ? 'red' : null,
      null,
      null,
    ] as const
    this.row(
      COLUMNS.map(([, width], i) => {
        const cell = cells[i].padStart(width)
        const colour = colours[i]
        return colour ? paint(cell, colour) : cell
      }),
    )
    this.before = now
  }
}

async function demo(options: DemoOptions): Promise<void> {
  const json = options.output === 'json'
  const say = (text: string) => {
    if (!json) print(text)
  }
  const stop = interruption()
  const outSocket = await bindLoopback(OUT)
  const sendSocket = await bindLoopback(0)
  const inPort = await freePort(IN)
  const outPort = outSocket.address().port
  const jsonConfig = await configFor(inPort, outPort)
  if (inPort !== IN) say(`UDP port ${IN} is taken: the pipeline listens on ${inPort} instead`)
  if (outPort !== OUT) say(`UDP port ${OUT} is taken: the pipeline sends to ${outPort} instead`)
  let node: NodeProcess | null = null
  try {
    node = await NodeProcess.start()
    const client = clientOf(`http://${node.http}`)
    const nodeId = node.id
    const { url } = client.connection
    const created = await client.createPipeline({ nodeId, name: 'udp-fec', jsonConfig })
    const { id } = created.pipeline!
    const { runId } = await client.startPipeline({ nodeId, id })
    const streams = `${url}/v1/streams/nodes/${nodeId}/pipeline-runs/${runId}`
    say(`node ${paint(node.id, 'cyan')} is up: REST ${url}, gRPC ${node.grpc}`)
    say(`pipeline ${paint('udp-fec', 'cyan')} (${EXAMPLE}) is running: UDP 127.0.0.1:${inPort} → 127.0.0.1:${outPort}`)
    say(`try while it lasts:\n  curl ${url}/v1/nodes/${node.id}/pipelines\n  curl -N ${streams}/telemetry\n`)
    if (stop.aborted) throw new Interrupted('interrupted before anything was sent', stop.reason)

    const receiver = new TrafficReceiver(outSocket)
    const sender = new TrafficSender(sendSocket, inPort, options.rate, options.size)
    const display = new Display(sender, receiver, json)
    const over = new AbortController()
    let counts: Counts = { entered: 0, left: 0, lost: 0, recovered: 0, unrecovered: 0 }
    const samples = () =>
      untilAborted(client.openTelemetryStream({ nodeId, runId }, { signal: over.signal }), over.signal)
    const follow = async () => {
      for await (const sample of samples()) {
        counts = countsOf(sample)
        if (sender.sent > 0) display.show(counts)
      }
    }
    const followed = follow()
    followed.catch(() => stop.aborted || over.abort())
    sender.start()
    await pause(options.duration, AbortSignal.any([stop, over.signal]))
    sender.stop()
    // The last datagrams are on their way: wait until none came for a while, then for the counters that tell of them.
    while (performance.now() - receiver.lastAt < 200 && receiver.delivered > 0) await pause(50, over.signal)
    for await (const sample of samples()) {
      counts = countsOf(sample)
      break
    }
    over.abort()
    await followed
    await client.stopPipeline({ nodeId, id })
    const { sent } = sender
    const { delivered, duplicate, corrupt } = receiver
    const summary = { sent, ...counts, delivered, missing: sent - delivered, duplicate, corrupt }
    if (json) printJson(summary)
    else {
      print(
        `\n${number(sent)} datagrams sent, ${number(counts.lost)} packets lost on the emulated path, repair packets included`,
      )
      print(`${number(counts.recovered)} recovered by error correction, ${number(counts.unrecovered)} beyond repair`)
      print(
        `${number(delivered)} delivered (${((100 * delivered) / Math.max(sent, 1)).toFixed(2)} %), ${number(sent - delivered)} missing, ${number(duplicate)} duplicate, ${number(corrupt)} corrupt`,
      )
    }
    const overflow = sent - counts.entered + counts.left - delivered
    if (overflow > 0)
      say(`${number(overflow)} of them found a socket buffer full before or behind the pipeline: try a lower --rate`)
    if (stop.aborted && (delivered === 0 || counts.recovered === 0)) {
      throw new Interrupted('interrupted before anything was recovered', stop.reason)
    }
    if (delivered === 0) throw new Failure('nothing was delivered')
    if (counts.recovered === 0) throw new Failure('nothing was recovered')
    if (corrupt > 0) throw new Failure(`${corrupt} datagrams arrived corrupt`)
  } finally {
    outSocket.close()
    sendSocket.close()
    await node?.stop()
  }
}

export function addDemo(program: Command): void {
  withOutput(program.command('demo'))
    .summary('datagrams through loss and error correction, live')
    .description(
      `Starts a node of its own, runs ${EXAMPLE} on it through its REST API, feeds it with UDP datagrams and shows ` +
        'what was sent, lost on the emulated path, recovered and delivered.',
    )
    .addOption(
      new Option('-d, --duration <time>', 'how long: 10s, 500ms, 5m').argParser(waitingTime).default(10_000, '10s'),
    )
    .option('-r, --rate <number>', 'datagrams a second', whole(1, 50_000), 5_000)
    .option('--size <bytes>', 'bytes of a datagram', whole(16, 1_200), 1_000)
    .action(demo)
}
