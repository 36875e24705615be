/** The live list of nodes that ask to join: arrows choose, enter approves, r rejects, q quits. */
import { emitKeypressEvents, type Key } from 'node:readline'
import type { AuthenticationByRequestRequest, Client } from '@penstock/client'
import { PenstockError } from '@penstock/client'
import { messageOf } from '../text/error-message.ts'
import { Failure } from './failure.ts'
import { metadataText } from './node-details.ts'
import { interruption } from './options.ts'
import { RequestSocket } from './request-socket.ts'
import { LiveRegion, named, paint, restoreAtQuit, table } from './terminal.ts'

/** How often the list is compared with the hub's: requests that go away, or come to be answered anew, are not told by the stream, ms. */
const COMPARE_MS = 1_000
/** A request that came under the cursor by itself is not answered by a key pressed sooner, ms: it was meant for another. */
const SETTLE_MS = 500
const NOTES = 5

/** What is on the screen, and what a key does to it; free of terminal and network. */
export class RequestList {
  #requests: AuthenticationByRequestRequest[] = []
  #chosen: string | undefined
  /** When the cursor came where it is; -Infinity when a key brought it there. */
  #chosenAt = Number.NEGATIVE_INFINITY
  /** Those answered here, each with how many answers had come to nothing before. */
  readonly #answered = new Map<string, number>()
  #lostAnswers = 0
  /** Comparisons begun, and the newest of them that was made: one may overtake another. */
  #comparisons = 0
  #compared = 0
  readonly #notes: string[] = []

  get chosen(): AuthenticationByRequestRequest | undefined {
    return this.#requests.find(({ requestId }) => requestId === this.#chosen)
  }

  has(requestId: string): boolean {
    return this.#requests.some((request) => request.requestId === requestId)
  }

  get ids(): readonly string[] {
    return this.#requests.map(({ requestId }) => requestId)
  }

  /** Adds a request, unless it is there; newer ones come below. */
  add(request: AuthenticationByRequestRequest, now: number): void {
    if (this.has(request.requestId)) return
    this.#requests.push(request)
    this.#requests.sort((a, b) => (BigInt(a.requestId) < BigInt(b.requestId) ? -1 : 1))
    if (this.#chosen === undefined) this.#choose(request.requestId, now)
  }

  /** Takes a request away; the cursor goes to the next one. Returns it when it was there. */
  remove(requestId: string, now: number): AuthenticationByRequestRequest | undefined {
    const at = this.#requests.findIndex((request) => request.requestId === requestId)
    if (at < 0) return undefined
    const [gone] = this.#requests.splice(at, 1)
    if (this.#chosen === requestId) this.#choose((this.#requests[at] ?? this.#requests[at - 1])?.requestId, now)
    return gone
  }

  /** Takes away a request that is being answered. */
  answer(requestId: string, now: number): void {
    this.remove(requestId, now)
    this.#answered.set(requestId, this.#lostAnswers)
  }

  /** An answer came to nothing; which one is not told. */
  answerLost(): void {
    this.#lostAnswers++
  }

  /**
   * What to do with the requests that wait on the hub, asked for from now on: what was here before and waits no more goes; what waits is here, of what was
   * answered here only once an answer has come to nothing since. While an answer is being stored its request does not wait.
   */
  comparison(): (pending: readonly AuthenticationByRequestRequest[], now: number) => void {
    const known = this.ids
    const lostAnswers = this.#lostAnswers
    const number = ++this.#comparisons
    return (pending, now) => {
      if (number < this.#compared) return
      this.#compared = number
      const waiting = new Set(pending.map(({ requestId }) => requestId))
      for (const requestId of known) {
        const gone = waiting.has(requestId) ? undefined : this.remove(requestId, now)
        if (gone !== undefined) this.note(`${nameOf(gone)} waits no more: answered elsewhere, withdrawn or timed out`)
      }
      for (const request of pending) {
        const before = this.#answered.get(request.requestId)
        if (before !== undefined && before >= lostAnswers) continue
        this.add(request, now)
        if (this.#answered.delete(request.requestId)) this.note(`${nameOf(request)} still waits for an answer`)
      }
    }
  }

  /** Moves the cursor by `step` rows. */
  move(step: number): void {
    if (this.#requests.length === 0) return
    const at = this.#requests.findIndex(({ requestId }) => requestId === this.#chosen)
    const to = Math.min(this.#requests.length - 1, Math.max(0, at + step))
    this.#choose((this.#requests[to] as AuthenticationByRequestRequest).requestId, Number.NEGATIVE_INFINITY)
  }

  /** The request to answer now; undefined while the cursor's row is too new to have been meant. */
  answerable(now: number): AuthenticationByRequestRequest | undefined {
    return now - this.#chosenAt >= SETTLE_MS ? this.chosen : undefined
  }

  /** A line below the list; the last few stay. */
  note(text: string): void {
    this.#notes.push(text)
    if (this.#notes.length > NOTES) this.#notes.shift()
  }

  /** In `room` lines: where there is none for all requests, those around the cursor are shown, which is never out of sight. */
  text(url: string, room = Number.POSITIVE_INFINITY): string {
    const count = this.#requests.length
    const nodes = new Set(this.#requests.map(({ node }) => node?.id)).size
    const asking =
      count === 0 ? 'no node asks to join' : nodes === 1 ? '1 node asks to join' : `${nodes} nodes ask to join`
    const title = nodes === count ? asking : `${asking}, by ${count} requests,`
    const [first, end] = this.#visible(room)
    const rows = this.#requests.slice(first, end).map(({ requestId, node }) => {
      const isChosen = requestId === this.#chosen
      const name = named(node?.name ?? '')
      return [
        isChosen ? paint('❯', 'cyan') : ' ',
        requestId,
        isChosen ? paint(name, 'bold') : name,
        node?.id ?? '',
        node === undefined ? '' : metadataText(node),
      ]
    })
    const columns = [{ title: '' }, { title: 'REQUEST' }, { title: 'NAME' }, { title: 'NODE' }, { title: 'METADATA' }]
    return [
      `${paint(title, 'bold')} the hub of ${url}`,
      ...(count === 0 ? [] : [table(columns, rows)]),
      ...(rows.length === count ? [] : [paint(`${first + 1} to ${end} of ${count} requests`, 'dim')]),
      paint('↑ ↓ choose   enter approves   r rejects   q quits', 'dim'),
      ...this.#notes,
    ].join('\n')
  }

  /** Which requests are shown, from the first to before the second. */
  #visible(room: number): [first: number, end: number] {
    const count = this.#requests.length
    // The title, the head of the table and the keys, and where not all are shown the line that says so.
    const least = 3 + this.#notes.length
    if (least + count <= room) return [0, count]
    const shown = Math.max(1, Math.min(count, room - least - 1))
    const at = this.#requests.findIndex(({ requestId }) => requestId === this.#chosen)
    const first = Math.max(0, Math.min(at - Math.floor(shown / 2), count - shown))
    return [first, first + shown]
  }

  #choose(requestId: string | undefined, at: number): void {
    this.#chosen = requestId
    this.#chosenAt = at
  }
}

const nameOf = ({ requestId, node }: AuthenticationByRequestRequest): string =>
  node === undefined ? `request ${requestId}` : `${named(node.name)} ${node.id}`

/** Runs the screen on standard input and output, both terminals, until q, Ctrl-C or a signal; throws when the stream breaks. */
export async function answerRequests(client: Client): Promise<void> {
  const list = new RequestList()
  const live = new LiveRegion()
  const draw = () => live.draw(list.text(client.connection.url, live.room))
  const socket = await RequestSocket.open(client)
  // After the socket is open, so that nothing falls between the list and the stream.
  const { requests } = await client.getPendingAuthenticationRequests()
  for (const request of requests) list.add(request, performance.now())
  const { stdin } = process
  // Before, signals end the process at once, whatever the node does.
  const stop = interruption()
  const forgetQuit = restoreAtQuit(() => stdin.setRawMode(false))
  emitKeypressEvents(stdin)
  stdin.setRawMode(true)
  draw()
  let comparing: NodeJS.Timeout | undefined
  let onKey: ((text: string | undefined, key: Key) => void) | undefined
  try {
    await new Promise<void>((resolve, reject) => {
      stop.addEventListener('abort', () => resolve())
      if (stop.aborted) resolve()
      comparing = setInterval(() => compare(client, list).then(draw, reject), COMPARE_MS)
      onKey = (_, key) => {
        if (key.name === 'q' || (key.ctrl === true && (key.name === 'c' || key.name === 'd'))) resolve()
        else press(key, list, socket)
        draw()
      }
      stdin.on('keypress', onKey)
      follow(socket, list, draw).catch(reject)
    })
  } finally {
    clearInterval(comparing)
    if (onKey !== undefined) stdin.off('keypress', onKey)
    stdin.setRawMode(false)
    forgetQuit()
    stdin.pause()
    socket.close()
    live.keep()
  }
}

function press(key: Key, list: RequestList, socket: RequestSocket): void {
  if (key.name === 'up' || key.name === 'k') list.move(-1)
  else if (key.name === 'down' || key.name === 'j') list.move(1)
  else if (key.name === 'return' || key.name === 'enter' || key.name === 'r') {
    const now = performance.now()
    const request = list.answerable(now)
    if (request === undefined) return
    const accept = key.name !== 'r'
    socket.answer(request.requestId, accept)
    list.answer(request.requestId, now)
    list.note(`${accept ? paint('approved', 'green') : paint('rejected', 'yellow')} ${nameOf(request)}`)
  }
}

async function follow(socket: RequestSocket, list: RequestList, draw: () => void): Promise<never> {
  for (;;) {
    const frame = await socket.next()
    if ('request' in frame) list.add(frame.request, performance.now())
    else {
      list.answerLost()
      list.note(paint(named(frame.failure.message), 'red'))
    }
    draw()
  }
}

/** Brings the list in line with the hub: others answer too, nodes withdraw, requests time out, and an answer may come to nothing. */
async function compare(client: Client, list: RequestList): Promise<void> {
  const take = list.comparison()
  try {
    take((await client.getPendingAuthenticationRequests()).requests, performance.now())
  } catch (error) {
    // The stream tells when the node is gone for good.
    if (error instanceof Failure || error instanceof PenstockError) return
    throw new Failure(messageOf(error))
  }
}
