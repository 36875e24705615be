/** `penstock authenticate-by-request` and `penstock disconnect`: how a node joins a hub, and leaves it. */
import { setTimeout } from 'node:timers/promises'
import { type Client, createClient, PenstockError } from '@penstock/client'
import type { Command } from 'commander'
import { isLoopbackHost } from '../contract/address.ts'
import { hubAddress } from '../link/hub-address.ts'
import { messageOf } from '../text/error-message.ts'
import { explanationFor } from './client.ts'
import { Failure, Interrupted, UsageFailure } from './failure.ts'
import { type Format, interruption, withOutput } from './options.ts'
import { shownFingerprint } from './shown-fingerprint.ts'
import { Spinner } from './spinner.ts'
import { type ClientOptions, clientFor, withClient } from './target.ts'
import { named, paint, print, printJson } from './terminal.ts'

type Options = ClientOptions & { output: Format }

/** How long after Ctrl-C the node may turn out to have joined, milliseconds: what it has to write is small. */
const SETTLING_MS = 1_000
/** How often it is asked meanwhile, milliseconds. */
const LOOK_MS = 50

/** What to do about each way in which joining fails. */
const ADVICE: Readonly<Record<string, string>> = {
  UNAUTHENTICATED: 'ask its operator why, and whether this is the hub that was meant',
  DEADLINE_EXCEEDED: 'ask again, and have it answered on the hub: penstock authentication-requests',
  UNAVAILABLE: 'see that the hub is up, that the address is right, and that its HTTP port can be reached from the node',
  NOT_FOUND: 'a hub is started with: penstock up --hub',
  ALREADY_EXISTS: 'leave the other hub first: penstock disconnect',
}

async function explained(error: unknown, client: Client, nodeId: string): Promise<unknown> {
  if (!(error instanceof PenstockError)) return error
  // A node that hosts a hub has none to leave.
  const hasNone = error.code === 'ALREADY_EXISTS' && (await hubOf(client))?.id === nodeId
  const advice = hasNone ? undefined : ADVICE[error.code]
  return advice === undefined ? error : new Failure(`${error.message}\n  ${advice}`)
}

/** A hub's address as it was typed: `hub.example` and `10.0.0.1:8769` stand for http. */
function addressOf(given: string): string {
  const url = /^[a-z][a-z0-9+.-]*:\/\//i.test(given) ? given : `http://${given}`
  try {
    hubAddress(url)
  } catch (error) {
    throw new UsageFailure(`"${given}" ${messageOf(error)}`)
  }
  return url
}

/** The hub's own node, as it tells of itself. */
async function hubOf(client: Client) {
  const hubs = await client.getNodes({ serviceFilters: ['HUB_SERVER'] }).catch(() => undefined)
  return hubs?.nodes[0]
}

async function nameOfHub(client: Client, address: string): Promise<string> {
  const hub = await hubOf(client)
  return hub === undefined ? address : `${named(hub.name)} (${hub.id})`
}

/** Whether the node has joined although nobody waits for it any more: an approval that it is writing to its disk cannot be called back. */
async function hasJoined(client: Client): Promise<boolean> {
  const signal = AbortSignal.timeout(SETTLING_MS)
  try {
    while (!(await client.getLocalNodeId({}, { signal })).isAuthenticated)
      await setTimeout(LOOK_MS, undefined, { signal })
    return true
  } catch {
    // Its time is over, or the node cannot be asked.
    return false
  }
}

async function authenticate(given: string, options: Options): Promise<void> {
  const client = clientFor(options)
  const address = addressOf(given)
  const { nodeId, isAuthenticated } = await client.getLocalNodeId()
  const note = (text: string) => process.stderr.write(`${text}\n`)
  if (!isAuthenticated) {
    const fingerprint = await shownFingerprint(address)
    if (fingerprint !== undefined) {
      note(`the hub's certificate has the SHA-256 fingerprint ${fingerprint}`)
      note('compare it with the one that the hub logged when it started')
    } else if (address.startsWith('http://') && !isLoopbackHost(new URL(address).hostname)) {
      note(`${paint('note:', 'yellow', process.stderr)} http is for trusted networks; use https between machines`)
    }
    note(`on the hub, approve node ${paint(nodeId, 'bold', process.stderr)}: penstock authentication-requests`)
  }
  // UNAUTHENTICATED is what a node is told that the hub rejects: nothing that a token would help.
  const asking = createClient({ ...client.connection, explain: explanationFor(client.connection.url) })
  const stop = interruption()
  const spinner = new Spinner(`waiting for ${address} to answer; Ctrl-C withdraws the request`)
  try {
    await asking.authenticateByRequest({ hubServerAddress: address }, { signal: stop })
  } catch (error) {
    // One that was signed in before asked for nothing.
    if (stop.aborted && !isAuthenticated && (await hasJoined(client))) {
      const hub = await nameOfHub(client, address)
      throw new Interrupted(
        `joined the hub ${hub} before the request was withdrawn\n  leave it: penstock disconnect`,
        stop.reason,
      )
    }
    if (stop.aborted) throw new Interrupted('withdrawn', stop.reason)
    throw await explained(error, client, nodeId)
  } finally {
    spinner.stop()
  }
  if (options.output === 'json') {
    const hub = await hubOf(client)
    printJson({ nodeId, hubServerAddress: address, hubNodeId: hub?.id, hubName: hub?.name })
    return
  }
  const hub = await nameOfHub(client, address)
  print(`${paint('joined', 'green')} the hub ${hub}: this node is ${nodeId} there, and signs in by itself from now on`)
}

export function addAuthenticate(program: Command): void {
  withClient(withOutput(program.command('authenticate-by-request')))
    .summary('ask a hub to let this node join')
    .description(
      'Asks the hub at the address to let the node join, and waits until an operator of the hub approves or rejects it ' +
        '(there: penstock authentication-requests). Ctrl-C withdraws the request.',
    )
    .argument('<url>', 'HTTP or HTTPS address of the hub, as in https://hub.example:8769')
    .action(authenticate)

  withClient(withOutput(program.command('disconnect')))
    .summary('leave the hub')
    .description('Makes the node leave its hub, whether the hub can be told or not.')
    .action(async (options: Options) => {
      const client = clientFor(options)
      const { isAuthenticated } = await client.getLocalNodeId()
      await client.disconnect()
      if (options.output === 'json') printJson({ left: isAuthenticated })
      else print(isAuthenticated ? 'left the hub' : 'the node was on no hub')
    })
}
