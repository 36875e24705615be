/** `penstock up`: runs a node until SIGTERM, SIGINT or SIGHUP; a service takes SIGHUP for the word to look at its files. */
import { finished } from 'node:stream'
import type { Command } from 'commander'
import type { LoadedConfig } from '../node/config.ts'
import { LogOutput, writerTo } from '../node/log-output.ts'
import type { StartedNode } from '../node/node.ts'
import { messageOf } from '../text/error-message.ts'
import { Failure } from './failure.ts'
import { loadNodeConfig, withNodeSettings } from './node-settings.ts'
import { hasTerminal, interruption } from './options.ts'
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
        'penstock ready http=127.0.0.1:8769 grpc=127.0.0.1:8770 node=<id>. ' +
        'Without a terminal, at SIGHUP a node with certificate files (http.tls) looks at once whether they were renewed, which it ' +
        'does by itself too, and goes on; so does what systemd runs, whatever its settings.',
    )
    .option('--until-stdin-ends', 'stop when standard input ends too: what started the node is gone')
    .action(async (options: Record<string, unknown>) => {
      const loaded = await loadNodeConfig(options)
      // All paths are absolute by now. No thread can be started in a directory that is deleted, and none that is held can be unmounted.
      leaveDirectory()
      goOnUnread()
      const reload = isReloaded(loaded) ? new Reload() : undefined
      const ending = interruption(reload?.ask)
      const stop = options.untilStdinEnds ? AbortSignal.any([ending, endOfInput()]) : ending
      try {
        await untilStopped(stop, loaded, reload)
      } finally {
        setTimeout(() => process.exit(), LEFT_MS).unref()
      }
    })
}

/**
 * SIGHUP asks a node to look at its files. One in a terminal ends at it, since that is how the terminal goes away; and one without files, as a
 * command does, unless it is the main process of a unit of systemd (SYSTEMD_EXEC_PID, systemd.exec(5)), where `systemctl reload` sends it.
 */
function isReloaded({ config }: LoadedConfig): boolean {
  if (hasTerminal()) return false
  return typeof config['http.tls'] === 'object' || process.env.SYSTEMD_EXEC_PID === String(process.pid)
}

/** What was asked of a node before it is up is done once it is. */
class Reload {
  #node: StartedNode | undefined
  #isAsked = false

  readonly ask = (): void => {
    if (this.#node === undefined) this.#isAsked = true
    else this.#node.reload()
  }

  up(node: StartedNode): void {
    this.#node = node
    if (this.#isAsked) node.reload()
  }
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
async function untilStopped(stop: AbortSignal, { config, chosen, file }: LoadedConfig, reload?: Reload): Promise<void> {
  const { startNode } = await import('../node/node.ts')
  const node = await startNode(config, { file, chosen, signal: stop }).catch((error: unknown) => {
    if (stop.aborted) return undefined
    throw new Failure(`the node did not start: ${messageOf(error)}`)
  })
  if (node === undefined) return
  reload?.up(node)
  say(`penstock ready http=${node.http ?? 'none'} grpc=${node.grpc ?? 'none'} node=${node.id}`)
  // A node that listens nowhere and has no link has nothing else that keeps the process.
  const alive = setInterval(() => undefined, MINUTE_MS)
  if (!stop.aborted) await new Promise((resolve) => stop.addEventListener('abort', resolve, { once: true }))
  clearInterval(alive)
  await node.close()
}
