/** `penstock up`: runs a node until SIGTERM, SIGINT or SIGHUP. */
import { finished } from 'node:stream'
import type { Command } from 'commander'
import type { LoadedConfig } from '../node/config.ts'
import { LogOutput, writerTo } from '../node/log-output.ts'
import { messageOf } from '../text/error-message.ts'
import { Failure } from './failure.ts'
import { loadNodeConfig, withNodeSettings } from './node-settings.ts'
import { interruption } from './options.ts'
import { goOnUnread } from './output.ts'
import { print } from './terminal.ts'

const MINUTE_MS = 60_000
/** How long what is still on its way when the node is down, such as an attempt to connect to a NATS server that says nothing, keeps the process. */
const LEFT_MS = 1000

/** Aborts when standard input ends, or cannot be read; what comes of it is of no interest. */
function endOfInput(): AbortSignal {
  const controller = new AbortController()
  finished(process.stdin.resume(), { writable: false }, () => controller.abort())
  // It keeps no node that has stopped; a file, which ends by itself, has no such call.
  process.stdin.unref?.()
  return controller.signal
}

export function addUp(program: Command): void {
  withNodeSettings(program.command('up'))
    .summary('run a node')
    .description(
      'Runs a node until SIGTERM, SIGHUP or Ctrl-C. Prints one line when it is ready: ' +
        'penstock ready http=127.0.0.1:8769 grpc=127.0.0.1:8770 node=<id>',
    )
    .option('--until-stdin-ends', 'stop when standard input ends too: what started the node is gone')
    .action(async (options: Record<string, unknown>) => {
      const loaded = await loadNodeConfig(options)
      // All paths are absolute by now. No thread can be started in a directory that is deleted, and none that is held can be unmounted.
      leaveDirectory()
      goOnUnread()
      const stop = options.untilStdinEnds ? AbortSignal.any([interruption(), endOfInput()]) : interruption()
      try {
        await untilStopped(stop, loaded)
      } finally {
        setTimeout(() => process.exit(), LEFT_MS).unref()
      }
    })
}

function leaveDirectory(): void {
  try {
    process.chdir('/')
  } catch (error) {
    throw new Failure(
      `the node did not start: it works in the directory / and cannot enter it (${messageOf(error)}): let this user enter it`,
    )
  }
}

/** Prints a line, also on a terminal that takes nothing at the moment: it does not hold the node. */
function say(line: string): void {
  if (process.stdout.isTTY) new LogOutput(writerTo(1)).write(`${line}\n`)
  else print(line)
}

/** Runs a node until `stop` aborts, which ends a start as well; resolves once it is down. */
async function untilStopped(stop: AbortSignal, { config, chosen, file }: LoadedConfig): Promise<void> {
  const { startNode } = await import('../node/node.ts')
  const node = await startNode(config, { file, chosen, signal: stop }).catch((error: unknown) => {
    if (stop.aborted) return undefined
    throw new Failure(`the node did not start: ${messageOf(error)}`)
  })
  if (node === undefined) return
  say(`penstock ready http=${node.http ?? 'none'} grpc=${node.grpc ?? 'none'} node=${node.id}`)
  // A node that listens nowhere and has no link has nothing else that keeps the process.
  const alive = setInterval(() => undefined, MINUTE_MS)
  if (!stop.aborted) await new Promise((resolve) => stop.addEventListener('abort', resolve, { once: true }))
  clearInterval(alive)
  await node.close()
}
