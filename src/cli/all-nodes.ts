/** Asks every node of the hub the same, in bounded time, and tells which did not answer and why. */
import { type CallOptions, type Client, type Node, PenstockError, type Pipeline } from '@penstock/client'
import { type Command, Option } from 'commander'
import { PartFailure } from './failure.ts'
import { ago } from './node-details.ts'
import { waitingTime } from './options.ts'
import { named } from './terminal.ts'

/** How long a node has for its answer unless told otherwise, ms. */
const PATIENCE_MS = 10_000
/** Nodes asked at the same time. */
const ASKED_AT_ONCE = 64

export interface AllNodesOptions {
  allNodes?: boolean
  timeout: number
}

/** Adds `--all-nodes` and `--timeout`. */
export function withAllNodes(command: Command): Command {
  return command
    .addOption(new Option('--all-nodes', 'every node of the hub').conflicts('node'))
    .addOption(
      new Option('--timeout <duration>', 'with several nodes, how long each has for its answer')
        .argParser(waitingTime)
        .default(PATIENCE_MS, '10s'),
    )
}

/** A node with its answer, or why there is none. */
export interface Asked<R> {
  readonly id: string
  readonly name: string
  readonly answer?: R
  readonly error?: { readonly code: string; readonly message: string }
}

/**
 * Asks all nodes that run pipelines; `ask` gets the id and `patience`, ms, as the timeout of its call. A node on no hub is the only one; where
 * the hub does not answer, the node talked to is, and the hub is in the list with that failure.
 */
export async function askAll<R>(
  client: Client,
  patience: number,
  ask: (node: string, options: CallOptions) => Promise<R>,
): Promise<Asked<R>[]> {
  const { nodeId, isAuthenticated } = await client.getLocalNodeId()
  const nodes = isAuthenticated
    ? await attempt(patience, async (options) => (await client.getNodes({}, options)).nodes)
    : { answer: undefined, error: undefined }
  const running = nodes.answer?.filter(({ services }) => services.includes('PIPELINES'))
  const all: Pick<Node, 'id' | 'name' | 'online' | 'lastSeen'>[] = running ?? [
    { ...(await client.getNode({ nodeId })).node!, online: true },
  ]
  all.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : a.id < b.id ? -1 : 1))
  const asked = await askThese(
    all.map((node) => (node.id === nodeId ? { ...node, online: true } : node)),
    patience,
    ask,
  )
  if (nodes.error !== undefined) asked.push({ id: '', name: 'the hub', error: nodes.error })
  return asked
}

/** Asks these, as `askAll` does; the answers are in their order. */
export async function askThese<R>(
  nodes: readonly Pick<Node, 'id' | 'name' | 'online' | 'lastSeen'>[],
  patience: number,
  ask: (node: string, options: CallOptions) => Promise<R>,
): Promise<Asked<R>[]> {
  const asked: Asked<R>[] = new Array(nodes.length)
  const waiting = nodes.entries()
  const askNext = async () => {
    for (const [i, { id, name, online, lastSeen }] of waiting) {
      const outcome = online ? await attempt(patience, (options) => ask(id, options)) : offline(lastSeen)
      asked[i] = { id, name, ...outcome }
    }
  }
  await Promise.all(Array.from({ length: Math.min(ASKED_AT_ONCE, nodes.length) }, askNext))
  return asked
}

type Outcome<R> = Pick<Asked<R>, 'answer' | 'error'>

function offline(lastSeen: string | undefined): Outcome<never> {
  const when = lastSeen === undefined ? 'it is offline' : `it is offline, last seen ${ago(lastSeen)}`
  return { error: { code: 'UNAVAILABLE', message: when } }
}

async function attempt<R>(timeout: number, call: (options: CallOptions) => Promise<R>): Promise<Outcome<R>> {
  try {
    return { answer: await call({ timeout }) }
  } catch (error) {
    if (!(error instanceof PenstockError)) throw error
    const { code, loss, message } = error
    const isLate = loss === 'NO_ANSWER' && code === 'DEADLINE_EXCEEDED'
    return { error: { code, message: isLate ? `no answer within ${timeout / 1000} s (--timeout)` : message } }
  }
}

/** What asks a node for its pipelines. */
export const pipelinesOf =
  (client: Client) =>
  async (nodeId: string, options?: CallOptions): Promise<Pipeline[]> =>
    (await client.getPipelines({ nodeId }, options)).pipelines

/** Throws when a node did not answer, with all of those and their reasons. */
export function requireAll(asked: readonly Asked<unknown>[]): void {
  const silent = asked.filter(({ error }) => error !== undefined)
  if (silent.length === 0) return
  const lines = silent.map(({ id, name, error }) => `  ${named(name)}${id && ` ${id}`}: ${named(error?.message ?? '')}`)
  throw new PartFailure(`${silent.length} of ${asked.length} did not answer:\n${lines.join('\n')}`)
}
