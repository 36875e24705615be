/** `penstock authentication-requests`: shows the nodes that ask to join the hub, and answers them. */
import type { AuthenticationByRequestRequest, Client } from '@penstock/client'
import { PenstockError } from '@penstock/client'
import type { Command } from 'commander'
import { writeDuration } from '../text/durations.ts'
import { answerRequests } from './authentication-screen.ts'
import { hasCode } from './client.ts'
import { Failure, Interrupted, SilentFailure, UsageFailure } from './failure.ts'
import { meant, OF_BEGINNINGS } from './ids.ts'
import { metadataText } from './node-details.ts'
import { type Format, interruption, pause, waitingTime, withOutput } from './options.ts'
import { RequestSocket } from './request-socket.ts'
import { type ClientOptions, reachedBy, withClient } from './target.ts'
import { named, print, printJson, table } from './terminal.ts'
import { markDefault } from './usage.ts'

type Common = ClientOptions & { output: Format }

/** How long an approved node may take to be on the hub's list, ms. */
const LISTED_MS = 10_000

/** How often it is looked who asks, where nodes are waited for, ms. */
const LOOKED_AT_MS = 500

const NODE_ID = /^[a-z2-7]{26}$/

const COLUMNS = [
  { title: 'REQUEST' },
  { title: 'NAME' },
  { title: 'NODE', whole: true },
  { title: 'METADATA', wrap: true },
]

function requestRow({ requestId, node }: AuthenticationByRequestRequest): string[] {
  return [requestId, named(node?.name ?? ''), node?.id ?? '', node === undefined ? '' : metadataText(node)]
}

async function list(options: Common): Promise<void> {
  const { requests } = await (await reachedBy(options)).getPendingAuthenticationRequests()
  if (options.output === 'json') printJson(requests)
  else print(requests.length === 0 ? 'no node asks to join' : table(COLUMNS, requests.map(requestRow)))
}

interface Answered {
  requestId: string
  accepted?: boolean
  error?: string
}

/** Fulfilled when an approved node is on the hub's list; throws when it went away before. */
async function listed(client: Client, socket: RequestSocket, nodeId: string): Promise<void> {
  const patience = AbortSignal.timeout(LISTED_MS)
  while (!(await client.getNodes()).nodes.some(({ id }) => id === nodeId)) {
    socket.check()
    if (patience.aborted) throw new Failure(`node ${nodeId} was approved, but is not on the hub: it went away`)
    await pause(50, patience)
  }
}

/** Ids are 64-bit numbers that rise from 1. */
function isRequestId(text: string): boolean {
  return /^\d{1,20}$/.test(text) && BigInt(text) > 0n && BigInt(text) < 2n ** 64n
}

/**
 * The ids of the requests meant: one by its own, which is a number and is taken whole, or all of a node by the id of that, whose beginning will
 * do. Names are not taken: whoever asks chooses its own.
 */
function requestsOf(pending: readonly AuthenticationByRequestRequest[], given: string): string[] {
  if (isRequestId(given)) return [given]
  const ids = [...new Set(pending.map(({ node }) => node?.id ?? ''))]
  const found = meant(
    ids.map((id) => ({ id })),
    given,
    'nodes that ask',
  )
  if (found !== undefined) return pending.filter(({ node }) => node?.id === found.id).map(({ requestId }) => requestId)
  throw new UsageFailure(
    `"${given}" is no id of a request, nor of a node that asks (${OF_BEGINNINGS}): see "penstock authentication-requests list"`,
  )
}

interface AnswerOptions extends Common {
  all?: boolean
  /** ms */
  wait?: number
}

interface Answering {
  client: Client
  socket: RequestSocket
  accept: boolean
}

/** Answers one of the requests that wait; throws why that came to nothing. */
async function settle(
  { client, socket, accept }: Answering,
  pending: readonly AuthenticationByRequestRequest[],
  requestId: string,
): Promise<Answered> {
  await socket.settle(requestId, accept)
  const node = pending.find((request) => request.requestId === requestId)?.node
  if (accept && node !== undefined) await listed(client, socket, node.id)
  return { requestId, accepted: accept }
}

function unanswered(requestId: string, error: unknown): Answered {
  if (!(error instanceof Failure || error instanceof PenstockError)) throw error
  return { requestId, error: error.message }
}

const isNotFound = (error: unknown): boolean => hasCode(error, 'NOT_FOUND')

function printAnswered({ requestId, accepted, error }: Answered): void {
  if (error === undefined) print(`${accepted ? 'approved' : 'rejected'} ${requestId}`)
  else process.stderr.write(`penstock: ${named(error)}\n`)
}

/** Answers the requests named, or all that wait; every one is told about, and one that failed makes the command fail. */
async function answer(ids: string[], accept: boolean, options: AnswerOptions): Promise<void> {
  if (options.all === true ? ids.length > 0 : ids.length === 0) {
    throw new UsageFailure('name requests by their ids, or all of them with --all')
  }
  const client = await reachedBy(options)
  const { requests: pending } = await client.getPendingAuthenticationRequests()
  const meant = options.all ? pending.map(({ requestId }) => requestId) : ids.flatMap((id) => requestsOf(pending, id))
  const asked = new Set(meant)
  const socket = await RequestSocket.open(client)
  const answered: Answered[] = []
  try {
    for (const requestId of asked) {
      const outcome = settle({ client, socket, accept }, pending, requestId)
      answered.push(await outcome.catch((error: unknown) => unanswered(requestId, error)))
    }
  } finally {
    socket.close()
  }
  if (options.output === 'json') printJson(answered)
  else {
    for (const each of answered) printAnswered(each)
    if (answered.length === 0) print('no node asks to join')
  }
  if (answered.some(({ error }) => error !== undefined)) throw new SilentFailure()
}

/** Whether a failure may be over soon: the hub is being restarted, or a node went away as it was approved. */
const mayPass = (error: unknown): error is Error => error instanceof Failure || hasCode(error, 'UNAVAILABLE')

/**
 * Lets the nodes join as soon as they ask, for `wait` ms. One that has not asked by then, or whose request failed, makes the command fail; one that gave
 * its request up, or was refused by another operator, may ask again, and one that another let in is in. A hub that goes away may come back.
 */
async function approveOnceAsked(ids: string[], { wait = 0, ...options }: AnswerOptions): Promise<void> {
  if (options.all) throw new UsageFailure('--wait is for nodes that are named: --all would let in whoever asks')
  const wrong = ids.find((id) => !NODE_ID.test(id))
  if (wrong !== undefined || ids.length === 0) {
    const given = wrong === undefined ? '' : `, not "${wrong}"`
    throw new UsageFailure(`--wait takes whole ids of nodes${given}: anybody can make a key whose id begins as another`)
  }
  const client = await reachedBy(options)
  const there = (await client.getNodes()).nodes.find(({ id }) => ids.includes(id))
  if (there !== undefined) throw new Failure(`node ${there.id} is on the hub already`)
  let socket: RequestSocket | undefined = await RequestSocket.open(client)
  const stop = interruption()
  const over = AbortSignal.any([stop, AbortSignal.timeout(wait)])
  const missing = new Set(ids)
  const answered: Answered[] = []
  const look = async () => {
    socket ??= await RequestSocket.open(client)
    const { requests: pending } = await client.getPendingAuthenticationRequests()
    for (const { requestId, node } of pending) {
      if (node === undefined || !missing.has(node.id)) continue
      const outcome = await settle({ client, socket, accept: true }, pending, requestId).catch((error: unknown) => {
        if (mayPass(error)) throw error
        return isNotFound(error) ? undefined : unanswered(requestId, error)
      })
      if (outcome === undefined) continue
      missing.delete(node.id)
      answered.push(outcome)
      if (options.output !== 'json') printAnswered(outcome)
    }
    // Somebody else may have approved it since.
    for (const { id } of (await client.getNodes()).nodes) {
      if (missing.delete(id) && options.output !== 'json') print(`node ${id} is on the hub: another has approved it`)
    }
  }
  let failure: Error | undefined
  try {
    for (;;) {
      failure = undefined
      await look().catch((error: unknown) => {
        if (!mayPass(error)) throw error
        failure = error
        socket?.close()
        socket = undefined
      })
      if (missing.size === 0 || over.aborted) break
      await pause(LOOKED_AT_MS, over)
    }
  } finally {
    socket?.close()
    if (options.output === 'json') printJson(answered)
  }
  const late = [...missing].join(', ')
  if (late !== '' && stop.aborted) throw new Interrupted(`interrupted: ${late} did not ask to join`, stop.reason)
  if (late !== '' && failure !== undefined) throw failure
  if (late !== '') throw new Failure(`not within ${writeDuration(wait)}: ${late} did not ask to join`)
  if (answered.some(({ error }) => error !== undefined)) throw new SilentFailure()
}

export function addAuthenticationRequests(program: Command): void {
  const requests = program
    .command('authentication-requests')
    .summary('nodes that ask to join the hub')
    .description('Shows the nodes that ask to join the hub, and answers them.')
  const add = (usage: string, summary: string, isDefault = false): Command =>
    withClient(withOutput(requests.command(usage, { isDefault })))
      .summary(summary)
      .description(`${summary[0].toUpperCase()}${summary.slice(1)}.`)

  const watching = add('watch', 'show them live and answer by key (the default on a terminal)', true)
  markDefault(requests, watching)
  watching.action(async (options: Common) => {
    if (options.output === 'json' || !process.stdout.isTTY || !process.stdin.isTTY) await list(options)
    else await answerRequests(await reachedBy(options))
  })

  add('list', 'list the requests that wait now').action(list)

  for (const [name, accept, summary] of [
    ['approve', true, 'let nodes join'],
    ['reject', false, 'refuse nodes'],
  ] as const) {
    const command = add(name, summary)
      .argument('[request...]', 'ids of the requests, or of the nodes that ask, for all requests of each')
      .option('--all', 'all that wait now')
      .action((ids: string[], options: AnswerOptions) =>
        options.wait === undefined ? answer(ids, accept, options) : approveOnceAsked(ids, options),
      )
    if (accept) {
      command.option(
        '--wait <time>',
        'let nodes, named by their whole ids, join when they ask, within this time',
        waitingTime,
      )
    }
  }
}
