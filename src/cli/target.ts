/** Which node a command talks to, and which one it means. */
import { X509Certificate } from 'node:crypto'
import type { Client, Node, Pipeline } from '@penstock/client'
import type { Command } from 'commander'
import { isLoopbackHost } from '../contract/address.ts'
import { readSettingFile } from '../node/setting-file.ts'
import { messageOf } from '../text/error-message.ts'
import { clientOf, DEFAULT_URL, hasCode } from './client.ts'
import { Failure, UsageFailure } from './failure.ts'
import { isWholeId, mayBeginId, meant, OF_BEGINNINGS } from './ids.ts'
import { named } from './terminal.ts'
import { findToken, type TokenOptions } from './token-source.ts'

export interface ClientOptions extends TokenOptions {
  url?: string
  ca?: string
  fingerprint?: string
}

export interface TargetOptions extends ClientOptions {
  node?: string
}

/** Adds what it takes to reach a node and be let in. */
export function withClient(command: Command): Command {
  return command
    .option('--url <url>', `the node to talk to (default: PENSTOCK_URL, else ${DEFAULT_URL})`)
    .option('--ca <file>', 'trust certificates of these authorities, for https (default: PENSTOCK_CA)')
    .option('--fingerprint <sha256>', 'trust this certificate, for https (default: PENSTOCK_FINGERPRINT)')
    .option('--token-file <file>', 'a file with the token to send (default: PENSTOCK_TOKEN, PENSTOCK_TOKEN_FILE)')
    .option(
      '--data-dir <dir>',
      "the data directory of a node on this machine, whose token to send (default: PENSTOCK_DATA_DIRECTORY, else up's)",
    )
}

/** Adds what `withClient` does, and `--node`. */
export function withTarget(command: Command): Command {
  return withClient(command).option('--node <id|name>', 'the node meant (default: the one talked to)')
}

/** The client for the node to talk to. */
export function clientFor(options: ClientOptions): Client {
  const { PENSTOCK_URL, PENSTOCK_CA, PENSTOCK_FINGERPRINT } = process.env
  const url = options.url ?? (PENSTOCK_URL || DEFAULT_URL)
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) {
    throw new UsageFailure(`"${url}" is no address of a node: write it http://127.0.0.1:8769`)
  }
  refuseParts(new URL(url))
  refuseTrustOverHttp(url, options)
  const fingerprint = options.fingerprint ?? (PENSTOCK_FINGERPRINT || undefined)
  if (fingerprint !== undefined && !/^(sha256:)?([0-9a-f]{2}:?){32}$/i.test(fingerprint)) {
    throw new UsageFailure('a fingerprint is the SHA-256 of a certificate: 32 bytes in hexadecimal, AA:BB:…')
  }
  const file = options.ca ?? (PENSTOCK_CA || undefined)
  return clientOf(url, {
    ...findToken(url, options),
    ca: file === undefined ? undefined : certificates(file),
    fingerprint,
  })
}

/** Parts of an address that are of some other service's, or of a call. */
function refuseParts({ origin, username, password, pathname }: URL): void {
  if (username !== '' || password !== '') {
    throw new UsageFailure(
      `a node asks for a token, not for a user and password: write ${origin}, and PENSTOCK_TOKEN or --token-file`,
    )
  }
  const call = /\/v1(\/|$)/.exec(pathname)
  if (call)
    throw new UsageFailure(`/v1 is where the calls of a node begin: write ${origin}${pathname.slice(0, call.index)}`)
}

/**
 * Who says which certificate to trust means a node that shows one: over plain HTTP nothing would be compared, and the token sent to whoever answers. On this
 * machine variables may be meant for other nodes.
 */
function refuseTrustOverHttp(url: string, { fingerprint, ca }: ClientOptions): void {
  const { protocol, hostname } = new URL(url)
  if (protocol === 'https:') return
  const { PENSTOCK_CA, PENSTOCK_FINGERPRINT } = process.env
  const isHere = isLoopbackHost(hostname)
  const trusting =
    (fingerprint !== undefined && '--fingerprint') ||
    (ca !== undefined && '--ca') ||
    (!isHere && PENSTOCK_FINGERPRINT && 'PENSTOCK_FINGERPRINT') ||
    (!isHere && PENSTOCK_CA && 'PENSTOCK_CA')
  if (trusting) throw new UsageFailure(`${trusting} needs an https:// URL, not ${url}; nothing was sent`)
}

/** The PEM of the authorities in a file. */
function certificates(file: string): string {
  let pem: string
  try {
    pem = readSettingFile(file).toString('utf8')
  } catch (error) {
    throw new Failure(`cannot read the certificates to trust, ${file}: ${messageOf(error)}`)
  }
  try {
    new X509Certificate(pem)
  } catch {
    throw new Failure(`${file} holds no certificate in PEM form: name a file that begins -----BEGIN CERTIFICATE-----`)
  }
  return pem
}

/** The same, once the node has said which it is: other calls are not given up where nobody answers, and of some any server's `{}` is an answer. */
export async function reachedBy(options: ClientOptions): Promise<Client> {
  const client = clientFor(options)
  await client.getLocalNodeId()
  return client
}

/** The client and the id of the node meant. */
export async function targetOf(options: TargetOptions): Promise<{ client: Client; node: string }> {
  const client = clientFor(options)
  const { nodeId, isAuthenticated } = await client.getLocalNodeId()
  if (options.node === undefined || options.node === nodeId) return { client, node: nodeId }
  // Off a hub there is nobody to ask; the node itself says what is wrong with the id.
  if (!isAuthenticated) return { client, node: meant([{ id: nodeId }], options.node, 'nodes')?.id ?? options.node }
  return { client, node: (await findNode(client, options.node)).id }
}

/** Finds a node on the hub by its id, its name or the beginning of its id. */
export async function findNode(client: Client, given: string): Promise<Node> {
  const found = meant((await client.getNodes()).nodes, given, 'nodes')
  if (found !== undefined) return found
  throw new Failure(`no node on this hub has the id or name "${named(given)}" (${OF_BEGINNINGS}): see "penstock nodes"`)
}

/** Finds a pipeline by its id, its name or the beginning of its id. */
export async function findPipeline(client: Client, node: string, given: string): Promise<Pipeline> {
  const found = await pipelineCalled(client, node, given)
  if (found !== undefined) return found
  throw new Failure(
    `no pipeline has the id or name "${named(given)}" on node ${node} (${OF_BEGINNINGS}): see "penstock pipelines list"`,
  )
}

/**
 * The same; undefined when there is none. The whole list, which may be longer than what comes over a link, is asked for only where an id may begin so, or
 * the name is not that of one pipeline.
 */
export async function pipelineCalled(client: Client, node: string, given: string): Promise<Pipeline | undefined> {
  try {
    return (await client.getPipelineById({ nodeId: node, id: given })).pipeline
  } catch (error) {
    if (!hasCode(error, 'NOT_FOUND')) throw error
  }
  const inList = async () => meant((await client.getPipelines({ nodeId: node })).pipelines, given, 'pipelines')
  const byName = async () => (await client.getPipelineByName({ nodeId: node, name: given })).pipeline
  const [first, second] = mayBeginId(given) ? [inList, byName] : [byName, inList]
  try {
    return await first()
  } catch (error) {
    if (!hasCode(error, first === byName ? 'NOT_FOUND' : 'RESOURCE_EXHAUSTED')) throw error
    return await second().catch((other: unknown) => {
      // Of a name that there is none of, or several, that matters; of what may be the beginning of an id that the list is too long.
      throw hasCode(other, 'RESOURCE_EXHAUSTED') || hasCode(other, 'NOT_FOUND') ? error : other
    })
  }
}

/**
 * The id of the run whose id is `given` or begins with it, of the last ones of all pipelines; of older ones only the node knows: `given` as it is. Of a whole
 * id the list is not asked for.
 */
export async function findRunId(client: Client, node: string, given: string): Promise<string> {
  if (isWholeId(given)) return given
  const { pipelines } = await client.getPipelines({ nodeId: node })
  const runs = pipelines.flatMap(({ currentRun }) => (currentRun ? [currentRun] : []))
  return meant(runs, given, 'runs')?.id ?? given
}

/** The id of the run meant: the one named, else the pipeline's current one. */
export async function findRun(
  client: Client,
  node: string,
  pipeline: string | undefined,
  run: string | undefined,
): Promise<string> {
  if (run !== undefined) return findRunId(client, node, run)
  if (pipeline === undefined) throw new UsageFailure('name a pipeline, or a run with --run')
  const found = await findPipeline(client, node, pipeline)
  if (!found.currentRun) {
    throw new Failure(`pipeline "${named(found.name)}" has no run now: start it, or name a past run with --run`)
  }
  return found.currentRun.id
}
