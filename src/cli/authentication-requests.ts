/** `penstock authentication-requests`: shows the nodes that ask to join the hub, and answers them. */
import type { AuthenticationByRequestRequest, Client } from '@penstock/client'
import { PenstockError } from '@penstock/client'
import type { Command } from 'commander'
import { answerRequests } from './authentication-screen.ts'
import { Failure, SilentFailure, UsageFailure } from './failure.ts'
import { meant, OF_BEGINNINGS } from './ids.ts'
import { metadataText } from './node-details.ts'
import { type Format, pause, withOutput } from './options.ts'
import { RequestSocket } from './request-socket.ts'
import { type ClientOptions, reachedBy, withClient } from './target.ts'
import { named, print, printJson, table } from './terminal.ts'
import { markDefault } from './usage.ts'

type Common = ClientOptions & { output: Format }

/** How long an approved node may take to be on the hub's list, ms. */
const LISTED_MS = 10_000

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

/** Answers the requests named, or all that wait; every one is told about, and one that failed makes the command fail. */
async function answer(ids: string[], accept: boolean, options: Common & { all?: boolean }): Promise<void> {
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
      try {
        await socket.settle(requestId, accept)
        const node = pending.find((request) => request.requestId === requestId)?.node
        if (accept && node !== undefined) await listed(client, socket, node.id)
        answered.push({ requestId, accepted: accept })
      } catch (error) {
        if (!(error instanceof Failure || error instanceof PenstockError)) throw error
        answered.push({ requestId, error: error.message })
      }
    }
  } finally {
    socket.close()
  }
  if (options.output === 'json') printJson(answered)
  else {
    for (const { requestId, error } of answered) {
      if (error === undefined) print(`${accept ? 'approved' : 'rejected'} ${requestId}`)
      else process.stderr.write(`penstock: ${named(error)}\n`)
    }
    if (answered.length === 0) print('no node asks to join')
  }
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
    add(name, summary)
      .argument('[request...]', 'ids of the requests, or of the nodes that ask, for all requests of each')
      .option('--all', 'all that wait now')
      .action((ids: string[], options: Common & { all?: boolean }) => answer(ids, accept, options))
  }
}
