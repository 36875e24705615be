/** Which node a command talks to, and which one it means. */
import type { Command } from 'commander'
import { ApiClient, ApiFailure, DEFAULT_URL, type Pipeline } from './client.ts'
import { Failure, UsageFailure } from './failure.ts'

export interface TargetOptions {
  url?: string
  node?: string
}

/** Adds `--url` and `--node`. */
export function withTarget(command: Command): Command {
  return command
    .option('--url <url>', `the node to talk to (default: PENSTOCK_URL, else ${DEFAULT_URL})`)
    .option('--node <id|name>', 'the node meant (default: the one talked to)')
}

/** The client for the node to talk to. A token is taken from PENSTOCK_TOKEN. */
export function clientFor({ url = process.env.PENSTOCK_URL || DEFAULT_URL }: TargetOptions): ApiClient {
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) {
    throw new UsageFailure(`"${url}" is no address of a node: write it http://127.0.0.1:8769`)
  }
  return new ApiClient(url, process.env.PENSTOCK_TOKEN)
}

/** The client and the id of the node meant. */
export async function targetOf(options: TargetOptions): Promise<{ client: ApiClient; node: string }> {
  const client = clientFor(options)
  const { nodeId, isAuthenticated } = await client.getLocalNodeId()
  if (options.node === undefined || options.node === nodeId) return { client, node: nodeId }
  // Off a hub there is nobody to ask; the node itself says what is wrong with the id.
  if (!isAuthenticated) return { client, node: options.node }
  const nodes = await client.getNodes()
  const named = nodes.filter(({ id, name }) => id === options.node || name === options.node)
  if (named.length === 1) return { client, node: named[0].id }
  if (named.length > 1) {
    throw new Failure(
      `${named.length} nodes are called "${options.node}": use one of the ids ${named.map(({ id }) => id).join(', ')}`,
    )
  }
  throw new Failure(`no node on this hub is called "${options.node}", nor has that id`)
}

/** Finds a pipeline by id, else by name. */
export async function findPipeline(client: ApiClient, node: string, given: string): Promise<Pipeline> {
  try {
    return await client.getPipelineById(node, given)
  } catch (error) {
    if (!(error instanceof ApiFailure) || error.code !== 'NOT_FOUND') throw error
  }
  const pipelines = await client.getPipelines(node)
  const named = pipelines.filter(({ name }) => name === given)
  if (named.length === 1) return named[0]
  if (named.length > 1) {
    throw new Failure(
      `${named.length} pipelines are called "${given}": use one of the ids ${named.map(({ id }) => id).join(', ')}`,
    )
  }
  throw new Failure(`no pipeline has the id or name "${given}" on node ${node}`)
}

/** The id of the run meant: the one named, else the pipeline's current one. */
export async function findRun(
  client: ApiClient,
  node: string,
  pipeline: string | undefined,
  run: string | undefined,
): Promise<string> {
  if (run !== undefined) return run
  if (pipeline === undefined) throw new UsageFailure('name a pipeline, or a run with --run')
  const found = await findPipeline(client, node, pipeline)
  if (!found.currentRun) {
    throw new Failure(`pipeline "${found.name}" has no run now: start it, or name a past run with --run`)
  }
  return found.currentRun.id
}
